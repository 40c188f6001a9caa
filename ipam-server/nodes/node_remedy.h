// What becomes of pods on nodes that are not fit for them, as the policy NodeRemedy says it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/kubernetes/node_objects.h"

namespace spoke::ipam {

// The effect of a taint, in the words of Kubernetes (Taints and Tolerations).
enum class TaintEffect : uint8_t { kNone, kNoSchedule, kNoExecute };

// Returns "none", "NoSchedule" or "NoExecute".
std::string_view NameOf(TaintEffect effect);
// Errors: kInvalidArgument, with the words that are allowed.
absl::StatusOr<TaintEffect> ParseTaintEffect(std::string_view text);

// What becomes of pods for one cause.
struct Remedy {
  TaintEffect effect = TaintEffect::kNoSchedule;
  // With kNoExecute: the time for which only new pods are kept away before those that run there
  // have to go.
  absl::Duration evict_after = absl::ZeroDuration();

  bool operator==(const Remedy&) const = default;
};

struct NodeRemedies {
  Remedy unfit;         // Nodes whose network is not ready: kNotReadyTaint.
  Remedy no_addresses;  // Nodes without a free address: kNoAddressesTaint; never kNoExecute.
  Remedy maintenance;   // Nodes whose machine is to be interrupted: kMaintenanceTaint.

  bool operator==(const NodeRemedies&) const = default;
};

// What a taint is to say, beside its effect.
struct TaintCause {
  std::string_view key;
  std::string_view value;
  absl::Duration since;   // The time for which the cause has been there.
  bool may_evict = true;  // False: pods that run there work.
};

// Returns the taint that is due for the cause; nullopt: none. `present`: the node's taint of that
// key, nullptr for none. Pods that have to go already are not let off: a server that has just
// become the leader does not know since when the cause is there.
std::optional<kubernetes::Taint> DueTaint(const TaintCause& cause, const Remedy& remedy,
                                          const kubernetes::Taint* present);

}  // namespace spoke::ipam
