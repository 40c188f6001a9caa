// NodeRoutes over rtnetlink.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lib/netlink/socket.h"
#include "netagent/node/node_routes.h"

namespace spoke::netagent {

// Works in the network namespace that it was made in.
class NetlinkNodeRoutes : public NodeRoutes {
 public:
  // Makes one for the calling thread's network namespace. Errors: kResourceExhausted; kInternal.
  static absl::StatusOr<std::unique_ptr<NetlinkNodeRoutes>> Create();

  absl::StatusOr<NodeNetwork> Read(const std::string& uplink) override;

 private:
  explicit NetlinkNodeRoutes(netlink::Socket socket) : socket_(std::move(socket)) {}

  absl::Status ReadFamily(ip::Family family, NodeNetwork& network);

  netlink::Socket socket_;
};

}  // namespace spoke::netagent
