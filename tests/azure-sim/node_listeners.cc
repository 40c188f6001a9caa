#include "tests/azure-sim/node_listeners.h"

#include <cerrno>
#include <utility>

#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "lib/netns/netns.h"

namespace spoke::azure_sim {
namespace {

constexpr int32_t kLoopback = 1;  // The loopback's index is the same in every namespace.
constexpr int kThreads = 8;

absl::Status PutOnLoopback(const char* text) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text));
  const std::vector<netlink::Request> batch = {
      netlink::SetLinkUp(kLoopback, true),
      netlink::AddAddress(kLoopback, address).Tolerate(EEXIST)};
  return netlink::SendBatch(socket, batch).status;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<HttpServer>>> ListenOnNode(
    SimService& service, const std::string& netns_path, const std::string& instance_id) {
  RETURN_IF_ERROR(service.CheckInstance(instance_id));
  ASSIGN_OR_RETURN(const netns::Netns netns, netns::Netns::Open(netns_path));
  std::vector<std::unique_ptr<HttpServer>> servers;
  const auto listen = [&](const char* address, HttpServer::Handler handler) -> absl::Status {
    RETURN_IF_ERROR(PutOnLoopback(address));
    ListenOptions options;
    options.host = address;
    options.port = 80;
    options.threads = kThreads;
    ASSIGN_OR_RETURN(auto server, HttpServer::Open(options, std::move(handler)));
    servers.push_back(std::move(server));
    return absl::OkStatus();
  };
  const absl::Status status = netns.Run([&]() -> absl::Status {
    RETURN_IF_ERROR(listen(kImdsAddress, [&service, instance_id](const http::Request& request) {
      return service.HandleImds(request, instance_id);
    }));
    return listen(kWireserverAddress, [&service, instance_id](const http::Request& request) {
      return service.HandleWireserver(request, instance_id);
    });
  });
  if (!status.ok()) return base::Annotate(status, netns_path);
  return servers;
}

}  // namespace spoke::azure_sim
