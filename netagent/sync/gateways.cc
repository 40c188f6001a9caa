#include "netagent/sync/gateways.h"

#include <algorithm>

#include "lib/base/status.h"

namespace spoke::netagent {

absl::StatusOr<std::map<uint32_t, ip::Address>> Gateways::Start() {
  auto ways = edges_.routes.Read();
  if (ways.ok()) ways_ = *ways;
  return ways;
}

absl::Status Gateways::Prepare(const std::map<uint32_t, ip::Address>& marks) {
  for (const auto& [mark, address] : marks) {
    const auto known = ways_.find(mark);
    if (known != ways_.end() && known->second == address) continue;
    RETURN_IF_ERROR(
        base::Annotate(edges_.routes.Lead(mark, address), "lead to gateway " + address.ToString()));
    ways_.insert_or_assign(mark, address);
  }
  absl::Status first_error;
  for (auto way = ways_.begin(); way != ways_.end();) {
    if (marks.contains(way->first)) {
      ++way;
      continue;
    }
    const absl::Status status = edges_.routes.Forget(way->first);
    first_error.Update(base::Annotate(status, "forget a gateway"));
    way = status.ok() ? ways_.erase(way) : std::next(way);
  }
  return first_error;
}

void Gateways::SetTargets(const std::map<ip::Address, uint16_t>& targets) {
  if (targets == targets_) return;
  targets_ = targets;
  std::set<ip::Address> addresses;
  for (const auto& [address, port] : targets) addresses.insert(address);
  health_.SetTargets(addresses);
  next_check_ = edges_.clock.Now();
}

void Gateways::RepairWays() {
  const auto ways = edges_.routes.Read();
  if (!ways.ok()) return;  // Looked at again soon.
  for (const auto& [mark, address] : ways_) {
    const auto found = ways->find(mark);
    if (found != ways->end() && found->second == address) continue;
    const absl::Status status = edges_.routes.Lead(mark, address);
    edges_.log.Warn("gateway_way_repaired",
                    {{"gateway", address.ToString()}, {"mark", mark}, {"status", status}});
  }
}

bool Gateways::Tick() {
  const absl::Time now = edges_.clock.Now();
  bool changed = false;
  for (const auto& [address, works] : edges_.probe.Collect(now)) {
    waiting_ -= std::min<size_t>(waiting_, 1);
    if (!health_.OnResult(address, works)) continue;
    changed = true;
    if (works) {
      edges_.log.Info("gateway_healthy", {{"gateway", address.ToString()}});
    } else {
      edges_.log.Warn("gateway_unhealthy", {{"gateway", address.ToString()}});
    }
  }
  if (now >= next_check_) {
    for (const auto& [address, port] : targets_) edges_.probe.Begin(address, port, now);
    waiting_ = targets_.size();
    next_check_ = targets_.empty() ? absl::InfiniteFuture() : now + kPeriod;
  }
  next_listen_ = waiting_ > 0 ? now + kListen : absl::InfiniteFuture();
  if (now >= next_look_) {
    if (!ways_.empty()) RepairWays();
    next_look_ = now + kLook;
  }
  return changed;
}

absl::Time Gateways::NextWake() const { return std::min({next_check_, next_listen_, next_look_}); }

}  // namespace spoke::netagent
