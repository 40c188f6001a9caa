// GatewayRoutes that keeps what it was told. For tests.
#pragma once

#include <map>
#include <optional>

#include "fmt/core.h"
#include "netagent/claims.h"
#include "netagent/egress/gateways/gateway_routes.h"

namespace spoke::netagent {

class FakeGatewayRoutes final : public GatewayRoutes {
 public:
  absl::StatusOr<std::map<uint32_t, GatewayEndpoint>> Read() override {
    if (!fails.ok()) return fails;
    return ways_;
  }
  absl::Status Lead(uint32_t mark, const GatewayEndpoint& gateway) override {
    if (!fails.ok()) return fails;
    if (mark - claims::kFirstGatewayMark >= claims::kGatewayMarks) {
      return absl::InternalError(fmt::format("mark {} is no gateway's", mark));
    }
    if (gateway.is_tunnel() && !tunnel_) {
      return absl::FailedPreconditionError("there is no tunnel to gateways");
    }
    ways_.insert_or_assign(mark, gateway);
    return absl::OkStatus();
  }
  absl::Status Forget(uint32_t mark) override {
    if (!fails.ok()) return fails;
    ways_.erase(mark);
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<uint16_t>> TunnelPort() override {
    if (!fails.ok()) return fails;
    return tunnel_;
  }
  absl::Status PutTunnel(uint16_t port) override {
    if (!fails.ok()) return fails;
    if (port == taken_port) {
      return absl::FailedPreconditionError(fmt::format("somebody else listens at {}", port));
    }
    if (tunnel_ != port) DeleteTunnel();
    tunnel_ = port;
    return absl::OkStatus();
  }

  // Deletes the tunnel as somebody else does.
  void DeleteTunnel() {
    tunnel_.reset();
    std::erase_if(ways_, [](const auto& way) { return way.second.is_tunnel(); });
  }

  absl::Status fails;       // The error that each call returns, until it is OK again.
  uint16_t taken_port = 0;  // The UDP port that somebody else has.

 private:
  std::map<uint32_t, GatewayEndpoint> ways_;
  std::optional<uint16_t> tunnel_;
};

}  // namespace spoke::netagent
