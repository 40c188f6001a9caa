#include "netagent/egress/gateways/gateways.h"

#include <algorithm>

#include "lib/base/status.h"
#include "netagent/claims.h"

namespace spoke::netagent {

absl::StatusOr<Gateways::Found> Gateways::Start() {
  Found found;
  ASSIGN_OR_RETURN(found.known_marks, edges_.routes.Read());
  ASSIGN_OR_RETURN(found.known_tunnel_port, edges_.routes.TunnelPort());
  ways_ = found.known_marks;
  return found;
}

bool Gateways::PutTunnel() {
  if (!tunnel_port_) return false;
  const absl::Status status = edges_.routes.PutTunnel(*tunnel_port_);
  if (!status.ok() && tunnel_failed_ != status.message()) {
    edges_.log.Warn("gateway_tunnel_failed", {{"port", *tunnel_port_}, {"error", status}});
  }
  tunnel_failed_ = status.ok() ? std::string() : std::string(status.message());
  return status.ok();
}

absl::Status Gateways::Prepare(const std::map<uint32_t, GatewayEndpoint>& marks,
                               std::optional<uint16_t> tunnel_port) {
  if (tunnel_port != tunnel_port_) {
    tunnel_port_ = tunnel_port;
    PutTunnel();
    // With another port it is another device, and the ways to it are gone.
    std::erase_if(ways_, [](const auto& way) { return way.second.is_tunnel(); });
  }
  for (const auto& [mark, gateway] : marks) {
    const auto known = ways_.find(mark);
    if (known != ways_.end() && known->second == gateway) continue;
    const absl::Status status = edges_.routes.Lead(mark, gateway);
    if (!status.ok() && gateway.is_tunnel() && absl::IsFailedPrecondition(status)) {
      edges_.log.Warn("gateway_tunnel_failed",
                      {{"gateway", gateway.ToString()}, {"error", status}});
    } else {
      RETURN_IF_ERROR(base::Annotate(status, "lead to gateway " + gateway.ToString()));
    }
    ways_.insert_or_assign(mark, gateway);
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

void Gateways::SetTargets(const std::map<GatewayEndpoint, uint16_t>& targets) {
  if (targets == targets_) return;
  targets_ = targets;
  std::set<GatewayEndpoint> gateways;
  for (const auto& [gateway, port] : targets) gateways.insert(gateway);
  health_.SetTargets(gateways);
  next_check_ = edges_.clock.Now();
}

void Gateways::RepairWays() {
  const bool has_tunnel = PutTunnel();
  const auto ways = edges_.routes.Read();
  if (!ways.ok()) return;  // A failed reading is tried again soon.
  for (const auto& [mark, gateway] : ways_) {
    if (gateway.is_tunnel() && !has_tunnel) continue;
    const auto found = ways->find(mark);
    if (found != ways->end() && found->second == gateway) continue;
    const absl::Status status = edges_.routes.Lead(mark, gateway);
    edges_.log.Warn("gateway_way_repaired",
                    {{"gateway", gateway.ToString()}, {"mark", mark}, {"status", status}});
  }
}

void Gateways::Ask(absl::Time now) {
  waiting_.clear();
  std::map<GatewayEndpoint, uint32_t> marks;
  for (const auto& [mark, gateway] : ways_) marks.emplace(gateway, mark);
  for (const auto& [gateway, port] : targets_) {
    TcpProbeTarget target{.address = gateway.address, .port = port};
    if (gateway.is_tunnel()) {
      target.address = gateway.address.is_v4() ? claims::kProbeV4 : claims::kProbeV6;
      target.mark = marks[gateway];
    }
    edges_.probe.Begin(target, now);
    waiting_.emplace(target, gateway);
  }
}

bool Gateways::Tick() {
  const absl::Time now = edges_.clock.Now();
  bool changed = false;
  for (const auto& [target, works] : edges_.probe.Collect(now)) {
    const auto asked = waiting_.find(target);
    if (asked == waiting_.end()) continue;
    const GatewayEndpoint gateway = asked->second;
    waiting_.erase(asked);
    if (!health_.OnResult(gateway, works)) continue;
    changed = true;
    if (works) {
      edges_.log.Info("gateway_healthy", {{"gateway", gateway.ToString()}});
    } else {
      edges_.log.Warn("gateway_unhealthy", {{"gateway", gateway.ToString()}});
    }
  }
  if (now >= next_check_) {
    Ask(now);
    next_check_ = targets_.empty() ? absl::InfiniteFuture() : now + kPeriod;
  }
  next_listen_ = !waiting_.empty() ? now + kListen : absl::InfiniteFuture();
  if (now >= next_look_) {
    if (!ways_.empty() || tunnel_port_) RepairWays();
    next_look_ = now + kLook;
  }
  return changed;
}

absl::Time Gateways::NextWake() const { return std::min({next_check_, next_listen_, next_look_}); }

}  // namespace spoke::netagent
