#include "netagent/links/testing/router_contract.h"

#include <linux/rtnetlink.h>

#include <algorithm>

#include "lib/netlink/exchange.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"
#include "lib/netlink/rule.h"
#include "netagent/claims.h"
#include "netagent/links/netlink_router.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

class KernelWorld final : public RouterWorld {
 public:
  static std::unique_ptr<RouterWorld> Make() {
    auto node = NodeWorld::Make();
    if (node == nullptr) return nullptr;
    return std::unique_ptr<RouterWorld>(new KernelWorld(std::move(node)));
  }

  Router& router() override { return *router_; }
  os::UniqueFd NewPodNetns() override { return testing_support::NewNetns(); }
  os::UniqueFd NodeNetns() override { return testing_support::OpenCurrentNetns(); }
  void AddPodLink(int pod_netns, const std::string& name) override {
    // A veth that has both ends in the pod.
    const auto pod = netns::Netns::FromDescriptor(pod_netns).value();
    const absl::Status status = pod.Run([&] {
      auto socket = netlink::Socket::Open().value();
      MustSend(socket, {netlink::CreateVeth({name, 50, {{2, 0, 0, 0, 1, 1}}},
                                            {"other", 51, {{2, 0, 0, 0, 1, 2}}}, pod.fd(), 1500)});
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  Nic ExistingNic() override { return node_->nic(); }
  std::vector<ip::Address> Unreachable() override {
    std::vector<ip::Address> addresses;
    for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
      const auto routes = netlink::DumpAllRoutes(node_->socket(), family).value();
      for (const netlink::Route& route : routes) {
        if (route.type != RTN_UNREACHABLE || route.protocol != claims::kRouteProtocol) continue;
        EXPECT_EQ(route.metric, claims::kUnreachableMetric);
        EXPECT_EQ(route.table, uint32_t{RT_TABLE_MAIN});
        EXPECT_EQ(route.destination.length(), route.destination.base().bits());
        addresses.push_back(route.destination.base());
      }
    }
    std::sort(addresses.begin(), addresses.end());
    return addresses;
  }

  std::map<ip::Address, uint32_t> SourceTables() override {
    std::map<ip::Address, uint32_t> tables;
    for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
      const auto rules =
          netlink::DumpRules(node_->socket(), family, claims::kRouteProtocol).value();
      for (const netlink::Rule& rule : rules) {
        if (rule.priority != claims::kSourcePriority) continue;
        EXPECT_EQ(rule.from->length(), rule.from->base().bits());
        EXPECT_TRUE(tables.emplace(rule.from->base(), rule.table).second);
      }
    }
    return tables;
  }

 private:
  explicit KernelWorld(std::unique_ptr<NodeWorld> node)
      : node_(std::move(node)), router_(NetlinkRouter::Create().value()) {}

  const std::unique_ptr<NodeWorld> node_;
  const std::unique_ptr<NetlinkRouter> router_;
};

INSTANTIATE_TEST_SUITE_P(Routers, RouterContract,
                         testing::Values(RouterWorldFactory{"Netlink", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent
