// GatewayRoutes against the real kernel.
#include <cstdlib>

#include "fmt/core.h"
#include "netagent/egress/gateways/netlink_gateway_routes.h"
#include "netagent/egress/gateways/testing/gateway_routes_contract.h"
#include "tests/netns/egress/egress_world.h"

namespace spoke::netagent {
namespace {

struct Real final : GatewayRoutesUnderTest {
  GatewayRoutes& routes() override { return *real; }
  uint16_t TakenPort() override {
    other.emplace(world->node(), ip::Address::V4(0), 8472);
    return 8472;
  }
  void DeleteTunnel() override {
    Ip(world->node(), "link del " + std::string(claims::kTunnelLink));
  }
  std::unique_ptr<EgressWorld> world;
  std::unique_ptr<NetlinkGatewayRoutes> real;
  std::optional<UdpServer> other;
};

INSTANTIATE_TEST_SUITE_P(Kernel, GatewayRoutesContract, testing::Values(MakeGatewayRoutes([] {
                           auto made = std::make_unique<Real>();
                           made->world = EgressWorld::Make();
                           if (made->world == nullptr) return std::unique_ptr<Real>();
                           made->real = NetlinkGatewayRoutes::Create(EgressWorld::kNic).value();
                           return made;
                         })));

TEST(NetlinkGatewayRoutes, LeavesOthersRulesAlone) {
  const auto world = EgressWorld::Make();
  if (world == nullptr) {
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr);
    GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  }
  const auto routes = NetlinkGatewayRoutes::Create(EgressWorld::kNic).value();
  Ip(world->node(), fmt::format("rule add priority {} fwmark 8/0x3f table {}",
                                claims::kGatewayPriority, claims::kFirstGatewayTable + 8));
  EXPECT_TRUE(routes->Read().value().empty()) << "it is not of our protocol";
  ASSERT_TRUE(routes->Lead(8, AddressesOf(ip::Family::kV4).gateways[0]).ok());
  ASSERT_TRUE(routes->Forget(8).ok());
  EXPECT_TRUE(routes->Read().value().empty());
  const auto gone = NetlinkGatewayRoutes::Create("eth7").value();
  EXPECT_EQ(gone->Lead(8, AddressesOf(ip::Family::kV4).gateways[0]).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::netagent
