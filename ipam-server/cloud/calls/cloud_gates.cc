#include "ipam-server/cloud/calls/cloud_gates.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace spoke::ipam {
namespace {

// The most doublings: more than any wait here takes to reach its longest.
constexpr int kMostDoublings = 16;
// The time after opening from which another closing is another story, and starts anew.
constexpr absl::Duration kRemembered = absl::Hours(1);

}  // namespace

absl::Time CloudGates::Close(std::string_view scope, const ParkTime& park, std::string why,
                             absl::Time now, double jitter) {
  if (gates_.size() >= forget_at_) Forget(now);
  CloudGate& gate = gates_[std::string(scope)];
  if (gate.closings > 0 && now > gate.closed_until + kRemembered) gate.closings = 0;
  // Calls that were under way together fail together: that is one failure.
  const bool again = gate.closings == 0 || now >= gate.closed_until;
  if (again) ++gate.closings;
  const int doublings = std::min(gate.closings - 1, kMostDoublings);
  const absl::Duration wait = std::min(park.most, park.first * (int64_t{1} << doublings));
  gate.why = std::move(why);
  gate.closed_until = std::max(gate.closed_until, now + wait * (1 + jitter / 10));
  return gate.closed_until;
}

void CloudGates::Open(std::string_view scope) {
  if (const auto it = gates_.find(scope); it != gates_.end()) gates_.erase(it);
}

const CloudGate* CloudGates::ClosedAt(std::string_view scope, absl::Time now) const {
  const auto it = gates_.find(scope);
  return it != gates_.end() && now < it->second.closed_until ? &it->second : nullptr;
}

void CloudGates::Forget(absl::Time now) {
  std::erase_if(gates_,
                [&](const auto& gate) { return now > gate.second.closed_until + kRemembered; });
  forget_at_ = std::max<size_t>(1024, gates_.size() * 2);
}

}  // namespace spoke::ipam
