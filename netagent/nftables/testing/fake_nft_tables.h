// An nft::Tables for tests: keeps tables as a kernel would, refuses what a kernel would, and fails
// when told to. No packet runs through it; a test counts in a packet's stead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/nft/tables.h"

namespace spoke::netagent {

// Keeps every promise of nft_tables.h (nft_tables_contract.h runs against it). Not thread-safe.
class FakeNftTables final : public nft::Tables {
 public:
  absl::Status Apply(const nft::Transaction& transaction) override;
  absl::StatusOr<std::vector<nft::ElementReading>> ReadSet(const nft::TableKey& table,
                                                           const std::string& set) override;
  absl::StatusOr<std::vector<nft::CounterReading>> ReadCounters(
      const nft::TableKey& table) override;
  absl::StatusOr<std::vector<nft::RuleReading>> ReadRules(const nft::TableKey& table) override;
  absl::StatusOr<uint32_t> Generation() override;

  // Does what a packet does: counts in the element, which must be there unless the set is dynamic;
  // there it appears. Returns false when the set is full.
  bool Count(const nft::TableKey& table, const std::string& set, const nft::Bytes& key,
             uint64_t packets, uint64_t bytes);
  // Does the same for a named counter, which must be there.
  void CountIn(const nft::TableKey& table, const std::string& counter, uint64_t packets,
               uint64_t bytes);
  // Does the same for the first counter of the first rule of the chain with that comment.
  void CountRule(const nft::TableKey& table, const std::string& chain, const std::string& comment,
                 std::pair<uint64_t, uint64_t> packets_and_bytes);

  // Lets Apply() fail so, and change nothing, until this is called with OK.
  void FailApply(absl::Status status) { apply_fault_ = std::move(status); }
  // Lets all reading fail so, in the same way.
  void FailReads(absl::Status status) { read_fault_ = std::move(status); }
  // Does what `nft flush ruleset` by somebody else does.
  void Wipe();

  // Return what is there, for tests to look at. Nothing is returned for what is not there.
  bool HasTable(const nft::TableKey& table) const { return tables_.count(table) != 0; }
  std::optional<nft::Chain> FindChain(const nft::TableKey& table, const std::string& chain) const;
  std::optional<nft::Set> FindSet(const nft::TableKey& table, const std::string& set) const;
  // Returns the rules in the chain's order.
  std::vector<nft::Rule> Rules(const nft::TableKey& table, const std::string& chain) const;
  // Returns all that Apply() did, in order; what was empty or failed is not in it.
  const std::vector<nft::Transaction>& applied() const { return applied_; }

 private:
  struct RuleState {
    nft::Rule rule;
    uint64_t handle = 0;
    uint64_t packets = 0;
    uint64_t bytes = 0;
  };
  struct ChainState {
    nft::Chain chain;
    std::vector<RuleState> rules;
  };
  struct ElementState {
    nft::Element element;
    uint64_t packets = 0;
    uint64_t bytes = 0;
  };
  struct SetState {
    nft::Set set;
    std::map<nft::Bytes, ElementState> elements;
  };
  struct Table {
    std::map<std::string, ChainState> chains;
    std::map<std::string, SetState> sets;
    std::map<std::string, nft::CountHere> counters;
    uint64_t handles = 0;
  };
  using Tables = std::map<nft::TableKey, Table>;
  class Editor;

  Table& TableOf(const nft::TableKey& table);
  absl::StatusOr<const Table*> Read(const nft::TableKey& table) const;

  Tables tables_;
  uint32_t generation_ = 1;
  absl::Status apply_fault_;
  absl::Status read_fault_;
  std::vector<nft::Transaction> applied_;
};

}  // namespace spoke::netagent
