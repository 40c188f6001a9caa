#include "netagent/egress/egress_parts.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "netagent/egress/nat_host.h"

namespace spoke::netagent {

EgressParts::EgressParts(Settings settings, const Edges& edges, Callbacks callbacks)
    : settings_(std::move(settings)),
      edges_(edges),
      callbacks_(std::move(callbacks)),
      gateways_({edges.routes, edges.probe, edges.clock, edges.log}) {
  if (!settings_.ip_masq_path.empty()) {
    ip_masq_.emplace(
        settings_.ip_masq_path, settings_.ip_masq_ipv6,
        [this](const IpMasqConfig& config) { return callbacks_.on_ip_masq(config); }, edges.log);
  }
  if (settings_.gateway) {
    gateway_.emplace(
        *settings_.gateway, [this] { return in_force_; }, edges.loop, edges.log);
  }
  if (settings_.nat_host) {
    nat_host_.emplace(*settings_.nat_host, edges.tables, edges.log);
    nat_host_port_.emplace(edges.loop, [this] { return nat_host_->Health(edges_.clock.Now()); });
  }
}

// Removes the rules of a NAT host from a node that is none any more: nothing else touches them.
absl::Status EgressParts::EndFormerNatHost() {
  const auto seen = edges_.tables.ReadRules(kSpokeTable);
  if (absl::IsNotFound(seen.status())) return absl::OkStatus();
  RETURN_IF_ERROR(seen.status());
  if (std::none_of(seen->begin(), seen->end(), [](const nft::RuleReading& rule) {
        return rule.chain.starts_with(kNatHostPrefix);
      })) {
    return absl::OkStatus();
  }
  nft::Transaction transaction;
  AppendNoNatHost(*seen, transaction);
  return edges_.tables.Apply(transaction);
}

absl::StatusOr<EgressSettings> EgressParts::Start() {
  if (!nat_host_) {
    RETURN_IF_ERROR(base::Annotate(EndFormerNatHost(), "remove the rules of a former NAT host"));
  }
  EgressSettings out{.platform = settings_.platform,
                     .is_gateway = settings_.gateway.has_value(),
                     .gateway_addresses = settings_.gateway_addresses};
  if (settings_.gateway) out.gateway_health_port = settings_.gateway->health_port;
  auto found = gateways_.Start();
  if (!found.ok()) return base::Annotate(found.status(), "read the ways to gateways");
  out.known_marks = std::move(found->known_marks);
  out.known_tunnel_port = found->known_tunnel_port;
  // Flows may still go by these gateways.
  out.tracked = !out.known_marks.empty() || out.known_tunnel_port.has_value();
  if (ip_masq_) out.ip_masq = ip_masq_->Start(edges_.clock.Now());
  return out;
}

void EgressParts::OnRules(const EgressRules& rules, const ClassMap& classes) {
  in_force_ = true;
  gateways_.SetTargets(rules.Gateways());
  // New gateways count as healthy, which the rules do not know yet.
  tell_ = tell_ || gateways_.healthy() != told_;
  if (nat_host_) nat_host_->SetClasses(classes);
}

void EgressParts::TickNatHost(absl::Time now) {
  nat_host_->Tick(now);
  if (nat_host_port_->is_open()) return;
  absl::Status status = nat_host_port_->Open(ip::Address::V6(0, 0), settings_.nat_host_port);
  if (!status.ok()) status = nat_host_port_->Open(ip::Address::V4(0), settings_.nat_host_port);
  if (!status.ok() && !port_failed_) {
    edges_.log.Warn("health_port_failed", {{"error", status}});
  }
  port_failed_ = !status.ok();
}

void EgressParts::Tick() {
  const absl::Time now = edges_.clock.Now();
  tell_ = gateways_.Tick() || tell_;
  if (tell_) {
    // A call that fails is tried again at the next tick.
    const std::set<GatewayEndpoint> healthy = gateways_.healthy();
    // It is cleared before the call, since the rules that come of it may ask for more.
    tell_ = false;
    const absl::Status status = callbacks_.on_gateways(healthy);
    if (status.ok()) {
      told_ = healthy;
    } else {
      tell_ = true;
    }
  }
  if (ip_masq_) ip_masq_->Tick(now);
  if (gateway_) gateway_->Tick(now);
  if (nat_host_) TickNatHost(now);
}

absl::Time EgressParts::NextWake() const {
  absl::Time next = gateways_.NextWake();
  if (ip_masq_) next = std::min(next, ip_masq_->NextWake());
  if (gateway_) next = std::min(next, gateway_->NextWake());
  if (nat_host_) next = std::min(next, nat_host_->NextWake());
  return next;
}

}  // namespace spoke::netagent
