// GatewayRoutes that keeps what it was told. For tests.
#pragma once

#include <map>

#include "fmt/core.h"
#include "netagent/core/claims.h"
#include "netagent/kernel/gateway_routes.h"

namespace spoke::netagent {

class FakeGatewayRoutes final : public GatewayRoutes {
 public:
  absl::StatusOr<std::map<uint32_t, ip::Address>> Read() override {
    if (!fails.ok()) return fails;
    return ways_;
  }
  absl::Status Lead(uint32_t mark, const ip::Address& gateway) override {
    if (!fails.ok()) return fails;
    if (mark - claims::kFirstGatewayMark >= claims::kGatewayMarks) {
      return absl::InternalError(fmt::format("mark {} is no gateway's", mark));
    }
    ways_.insert_or_assign(mark, gateway);
    return absl::OkStatus();
  }
  absl::Status Forget(uint32_t mark) override {
    if (!fails.ok()) return fails;
    ways_.erase(mark);
    return absl::OkStatus();
  }

  absl::Status fails;  // What each call answers, until it is OK again.

 private:
  std::map<uint32_t, ip::Address> ways_;
};

}  // namespace spoke::netagent
