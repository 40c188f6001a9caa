// The inspector against the real kernel: its contract, and what only a kernel can show.
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "lib/netlink/address.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/link.h"
#include "lib/netlink/neighbour.h"
#include "lib/netlink/route.h"
#include "netagent/core/claims.h"
#include "netagent/kernel/inspector_contract.h"
#include "netagent/kernel/netlink_inspector.h"
#include "netagent/kernel/netlink_router.h"
#include "tests/netns/node_world.h"

namespace spoke::netagent {
namespace {

netlink::Request DeleteAddress(int32_t link, const ip::Address& address) {
  ifaddrmsg fixed{};
  fixed.ifa_family = netlink::FamilyNumber(address.family());
  fixed.ifa_prefixlen = static_cast<uint8_t>(address.bits());
  fixed.ifa_index = static_cast<uint32_t>(link);
  netlink::Request request("delete address", RTM_DELADDR, 0, fixed);
  request.PutAddress(IFA_LOCAL, address);
  return request;
}

ip::Address GatewayFor(const ip::Address& address) {
  return address.is_v4() ? claims::kGatewayV4 : claims::kGatewayV6;
}

netlink::Socket OpenSocketIn(int netns) {
  std::optional<netlink::Socket> socket;
  const auto pod = netns::Netns::FromDescriptor(netns).value();
  EXPECT_TRUE(pod.Run([&] {
                   socket = netlink::Socket::Open().value();
                   return absl::OkStatus();
                 })
                  .ok());
  return *std::move(socket);
}

// What a namespace holds, once the kernel has done what it does in its own time.
std::vector<std::string> SettledSnapshot(netlink::Socket& socket) {
  const auto addresses = netlink::DumpAddresses(socket, ip::Family::kV6, 0).value();
  for (const netlink::LinkAddress& address : addresses) {
    if (address.scope == RT_SCOPE_UNIVERSE) AwaitLocal(socket, address.address);
  }
  return Snapshot(socket);
}

class KernelWorld final : public InspectorWorld {
 public:
  static std::unique_ptr<InspectorWorld> Make() {
    auto node = NodeWorld::Make();
    if (node == nullptr) return nullptr;
    return std::unique_ptr<InspectorWorld>(new KernelWorld(std::move(node)));
  }

  Inspector& inspector() override { return *inspector_; }
  NodeWorld& node() { return *node_; }
  NetlinkRouter& router() { return *router_; }

  os::UniqueFd NewPodNetns() override {
    os::UniqueFd netns = testing_support::NewNetns();
    netlink::Socket socket = OpenSocketIn(netns.get());
    MustSend(socket, {netlink::SetLinkUp(1, true)});
    return netns;
  }
  void Build(const AttachSpec& spec, int pod_netns) override {
    const absl::Status built = router_->Attach(spec, pod_netns);
    ASSERT_TRUE(built.ok()) << built;
  }
  void Remove(const AttachSpec& spec) override {
    MustSend(node_->socket(), {netlink::DeleteLink(spec.host_link)});
  }
  void Break(const AttachSpec& spec, int pod_netns, Part part, const ip::Address& address) override;
  void AddForeignRoute(const AttachSpec& spec, const ip::Address& address) override {
    const auto host = netlink::GetLink(node_->socket(), spec.host_link).value();
    MustSend(node_->socket(), {netlink::AddRoute({.destination = ip::Prefix::Host(address),
                                                  .protocol = RTPROT_STATIC,
                                                  .scope = RT_SCOPE_LINK,
                                                  .link = host.index})});
  }
  std::vector<std::string> Snapshot(int pod_netns) override {
    std::vector<std::string> lines = SettledSnapshot(node_->socket());
    netlink::Socket socket = OpenSocketIn(pod_netns);
    for (std::string& line : SettledSnapshot(socket)) lines.push_back("pod: " + std::move(line));
    return lines;
  }

 private:
  explicit KernelWorld(std::unique_ptr<NodeWorld> node)
      : node_(std::move(node)),
        router_(NetlinkRouter::Create().value()),
        inspector_(NetlinkInspector::Create().value()) {}

  const std::unique_ptr<NodeWorld> node_;
  const std::unique_ptr<NetlinkRouter> router_;
  const std::unique_ptr<NetlinkInspector> inspector_;
};

void KernelWorld::Break(const AttachSpec& spec, int pod_netns, Part part,
                        const ip::Address& address) {
  netlink::Socket& node = node_->socket();
  netlink::Socket pod = OpenSocketIn(pod_netns);
  const int32_t host = netlink::GetLink(node, spec.host_link).value().index;
  const int32_t eth0 = netlink::GetLink(pod, spec.pod_link).value().index;
  switch (part) {
    case Part::kHostUp:
      return MustSend(node, {netlink::SetLinkUp(host, false)});
    case Part::kHostMac:
      return MustSend(node, {netlink::SetLinkMac(host, {{2, 0, 0, 0, 7, 7}})});
    case Part::kHostMtu:
      return MustSend(node, {netlink::SetLinkMtu(host, 1400)});
    case Part::kHostSetting:
      return MustSend(node, {netlink::ConfigureLink(
                                host, {.ipv4 = {{8, 0}}, .address_generation = std::nullopt})});
    case Part::kHostNeighbour:
      return MustSend(node, {netlink::DeleteNeighbour(host, address)});
    case Part::kHostRoute:
      return MustSend(node, {netlink::DeleteRoute({.destination = ip::Prefix::Host(address),
                                                   .protocol = claims::kRouteProtocol,
                                                   .link = host})});
    case Part::kPodUp:
      return MustSend(pod, {netlink::SetLinkUp(eth0, false)});
    case Part::kPodAddress:
      return MustSend(pod, {DeleteAddress(eth0, address)});
    case Part::kPodNeighbour:
      return MustSend(pod, {netlink::DeleteNeighbour(eth0, GatewayFor(address))});
    case Part::kPodRoute:
      return MustSend(pod,
                      {netlink::DeleteRoute({.destination = ip::Prefix::Of(address, 0).value(),
                                             .protocol = claims::kRouteProtocol,
                                             .link = eth0}),
                       netlink::DeleteRoute({.destination = ip::Prefix::Host(GatewayFor(address)),
                                             .protocol = claims::kRouteProtocol,
                                             .link = eth0})});
    default:
      ADD_FAILURE() << "no way to break " << NameOf(part);
  }
}

INSTANTIATE_TEST_SUITE_P(Inspectors, InspectorContract,
                         testing::Values(InspectorWorldFactory{"Netlink", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent
