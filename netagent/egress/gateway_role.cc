#include "netagent/egress/gateway_role.h"

#include <unistd.h>

#include <utility>

namespace spoke::netagent {

GatewayRole::GatewayRole(GatewayRoleSettings settings, std::function<bool()> works,
                         os::EventLoop& loop, telemetry::Log& log)
    : settings_(std::move(settings)),
      works_(std::move(works)),
      log_(log),
      port_(loop, [] { return absl::OkStatus(); }) {}

void GatewayRole::Tick(absl::Time now) {
  if (now < next_) return;
  next_ = now + kLook;
  const bool drains = settings_.draining || (!settings_.drain_file.empty() &&
                                             ::access(settings_.drain_file.c_str(), F_OK) == 0);
  if (drains || !works_()) {
    if (port_.is_open()) log_.Info("gateway_closed", {{"draining", drains}});
    port_.Close();
    return;
  }
  if (port_.is_open()) return;
  // The address stands for both families, where there is IPv6.
  absl::Status status = port_.Open(ip::Address::V6(0, 0), settings_.health_port);
  if (!status.ok()) status = port_.Open(ip::Address::V4(0), settings_.health_port);
  if (!status.ok()) {
    if (!failed_) log_.Warn("health_port_failed", {{"error", status}});
    failed_ = true;
    return;
  }
  failed_ = false;
  log_.Info("gateway_open", {{"port", port_.port()}});
}

}  // namespace spoke::netagent
