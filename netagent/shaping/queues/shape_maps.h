// The values that the programs that shape go by, and what they have counted: their maps in the
// kernel, and the same in memory.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/bpf/programs.h"
#include "netagent/classes/address_ranges.h"
#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

// Not thread-safe. Each function puts or erases only what differs from what is there; after an
// error some of it may have been done, and Refresh() is due. Errors: kInternal.
class ShapeMaps {
 public:
  using ScopeBlock = AddressBlock<ClassNumber>;

  // Loads the programs and, with `found` (the id of one that an earlier agent has left; 0: none),
  // takes over its maps unless those are of another layout. Errors: those of Programs::Load().
  static absl::StatusOr<ShapeMaps> Load(uint32_t found);

  const Programs& programs() const { return programs_; }

  // Reads all maps anew.
  absl::Status Refresh();

  // Put the wanted buckets, before flows name them; and keep those alone, when no other is named.
  absl::Status PutBuckets(const std::vector<ConnectionBucket>& wanted);
  absl::Status KeepBuckets(const std::vector<ConnectionBucket>& wanted);

  // Puts the flow; a new one begins to be counted.
  absl::Status PutFlow(const ShapedFlow& wanted);
  // Erases all other flows, and what they have counted.
  absl::Status KeepFlows(const std::vector<ShapedFlow>& wanted);

  // Sets the scopes of blocks, which are sorted, each once. What is new is there before what is old
  // has gone.
  absl::Status SetScopes(const std::vector<ScopeBlock>& wanted);

  // Sets exactly these links, by index: SPOKE_OUTER_LINK, SPOKE_SCOPED_LINK or SPOKE_QUEUES.
  absl::Status SetLinks(const std::map<uint32_t, uint32_t>& wanted);

  absl::StatusOr<std::vector<ShapedFlowReading>> ReadFlows() const;

 private:
  struct FlowKey {
    uint32_t link = 0;
    ClassNumber scope = 0;
    TrafficDirection direction = TrafficDirection::kIngress;
    auto operator<=>(const FlowKey&) const = default;
  };
  struct FlowValue {
    ShapeClassId class_id = 0;
    uint16_t bucket = 0;
    bool operator==(const FlowValue&) const = default;
  };

  explicit ShapeMaps(Programs programs) : programs_(std::move(programs)) {}

  static FlowKey KeyOf(const ShapedFlow& flow);
  absl::Status ReadScopes();
  absl::Status PutScopes(const std::vector<ScopeBlock>& blocks);
  absl::Status EraseScopes(const std::vector<ScopeBlock>& blocks);
  absl::Status EraseFlow(const FlowKey& key);

  Programs programs_;
  size_t processors_ = 0;  // The number of processors: a flow has as many counts.
  // The contents of the maps.
  std::vector<ScopeBlock> scopes_;
  std::map<FlowKey, FlowValue> flows_;
  std::map<uint16_t, uint32_t> buckets_;  // The rate a second of each bucket.
  std::map<uint32_t, uint32_t> links_;    // The kind of each link.
};

}  // namespace spoke::netagent
