// GatewayRoutes over rtnetlink.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/netlink/socket.h"
#include "netagent/kernel/gateway_routes.h"

namespace spoke::netagent {

class NetlinkGatewayRoutes final : public GatewayRoutes {
 public:
  // In the calling thread's network namespace; `nic` is looked up at each use. Errors: as
  // netlink::Socket::Open().
  static absl::StatusOr<std::unique_ptr<NetlinkGatewayRoutes>> Create(std::string nic);

  absl::StatusOr<std::map<uint32_t, ip::Address>> Read() override;
  absl::Status Lead(uint32_t mark, const ip::Address& gateway) override;
  absl::Status Forget(uint32_t mark) override;

 private:
  NetlinkGatewayRoutes(netlink::Socket socket, std::string nic)
      : socket_(std::move(socket)), nic_(std::move(nic)) {}

  netlink::Socket socket_;
  const std::string nic_;
};

}  // namespace spoke::netagent
