// GatewayRoutes over rtnetlink.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/netlink/link.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"
#include "netagent/egress/gateways/gateway_routes.h"

namespace spoke::netagent {

class NetlinkGatewayRoutes final : public GatewayRoutes {
 public:
  // Works in the calling thread's network namespace; `nic` is looked up at each use. Errors: those
  // of netlink::Socket::Open().
  static absl::StatusOr<std::unique_ptr<NetlinkGatewayRoutes>> Create(std::string nic);

  absl::StatusOr<std::map<uint32_t, GatewayEndpoint>> Read() override;
  absl::Status Lead(uint32_t mark, const GatewayEndpoint& gateway) override;
  absl::Status Forget(uint32_t mark) override;
  absl::StatusOr<std::optional<uint16_t>> TunnelPort() override;
  absl::Status PutTunnel(uint16_t port) override;

 private:
  NetlinkGatewayRoutes(netlink::Socket socket, std::string nic)
      : socket_(std::move(socket)), nic_(std::move(nic)) {}

  absl::StatusOr<netlink::Link> Nic();
  // Returns the tunnel's device; nothing: there is none, or its name is another device's.
  absl::StatusOr<std::optional<netlink::Link>> Tunnel();
  absl::Status MakeTunnel(uint16_t port, uint32_t mtu);
  absl::Status Send(const netlink::Request& request);

  netlink::Socket socket_;
  const std::string nic_;
};

}  // namespace spoke::netagent
