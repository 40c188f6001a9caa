// Which addresses a node may be asked to give back now. Pure.
//
// This proposes; the agent may deny, and the MassReleaseBreaker may forbid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace spoke::ipam {

struct ReleasePolicy {
  // How long nobody has used an address that is given back: pods tend to come back.
  absl::Duration idle_time = absl::Minutes(5);
  // The time added to `idle_time`, times the node's jitter, so that after a large job not every
  // node changes its NIC in the same minute.
  absl::Duration jitter_spread = absl::Minutes(2);
  // A surplus above the target of fewer addresses is kept: it is not worth a call to the cloud.
  uint32_t hysteresis = 16;
  // How long a unit is left alone after a denial: its `denied_until` is the time of the
  // denial plus this. The caller remembers it.
  absl::Duration denial_backoff = absl::Minutes(5);

  bool operator==(const ReleasePolicy&) const = default;
};

// What is given back as a whole: one address, or a block.
struct ReleaseUnit {
  uint32_t size = 1;  // Addresses; positive.
  // None of its addresses is in use, in cooldown, attaching or quarantined.
  bool available = false;
  absl::Time available_since;                      // When the last of them became available.
  absl::Time denied_until = absl::InfinitePast();  // Set by the agent's last denial.
  bool scarce = false;  // Pods elsewhere wait for addresses of its pool, which has none left.
};

// The holdings of one node and family. Leave out what the node was asked for or is losing already:
// `target` would otherwise count it twice.
struct NodeHoldings {
  std::vector<ReleaseUnit> units;
  uint32_t target = 0;  // TargetAddresses()'s result; ignored when draining.
  double jitter = 0;    // This node's, in [0, 1) and always the same.
  // So many addresses may go sooner, of what is scarce.
  uint64_t wanted = 0;
  bool draining = false;
};

// Indices into `units`: the longest idle first, as many as may go while the node keeps its target.
// A draining node gives up all that is available at once. So does one that has a surplus of what is
// scarce, as far as it is wanted: neither idle time nor hysteresis count then. A unit whose denial
// has not run out stays.
//
// Planning again once they are given back gives nothing, and the node asks for nothing: with the
// same use, no address goes back and forth.
std::vector<size_t> PlanRelease(const ReleasePolicy& policy, const NodeHoldings& node,
                                absl::Time now);

}  // namespace spoke::ipam
