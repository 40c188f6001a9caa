// A NAT host against the real kernel: the hub asks a Service, a pod of another node answers.
#include <cerrno>
#include <set>

#include "fmt/core.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/egress/nat_host.h"
#include "tests/netns/egress/egress_world.h"

namespace spoke::netagent {
namespace {

ip::Address A(const char* text) { return ip::Address::Parse(text).value(); }

ClassMap Classes() {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main",
      .bytes = {},
      .value =
          policy::ClusterNetwork{.cluster = policy::Blocks({"10.1.0.0/16", "fd00:1::/32"}),
                                 .hub = policy::Blocks({"10.2.0.0/16", "fd00:2::/32"}),
                                 .peer_spoke = {},
                                 .platform = {},
                                 .storage = {},
                                 .services = policy::Blocks({"10.96.0.0/16", "fd00:96::/64"})}};
  return ClassMap::Compile(policy, {}).value();
}

// The node of the world is a NAT host, and so is its first gateway; the server inside the cluster
// is the endpoint of a Service, on a port of its own.
class NatHostFlowTest : public testing::TestWithParam<ip::Family> {
 protected:
  void SetUp() override {
    world_ = EgressWorld::Make();
    if (world_ == nullptr) {
      ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr);
      GTEST_SKIP() << "needs CAP_SYS_ADMIN";
    }
    const bool v4 = GetParam() == ip::Family::kV4;
    service_ = A(v4 ? "10.96.0.10" : "fd00:96::10");
    empty_ = A(v4 ? "10.96.0.11" : "fd00:96::11");
    ServicesVia(at().node);
  }

  // Sets what the hub's route table says.
  void ServicesVia(const ip::Address& host) {
    const bool v4 = GetParam() == ip::Family::kV4;
    Ip(world_->network(), fmt::format("{} replace {} via {} dev br0", v4 ? "route" : "-6 route",
                                      v4 ? "10.96.0.0/16" : "fd00:96::/64", host.ToString()));
  }

  EndpointTable Table() const {
    return {.generated = absl::UnixEpoch(),
            .services = {{service_, EgressWorld::kPort, 17, {{at().peer, 8443}}},
                         {empty_, EgressWorld::kPort, 17, {}}}};
  }

  void Set(nft::Connection& tables, const std::optional<EndpointTable>& table) {
    nft::Transaction transaction;
    transaction.Add(kSpokeTable, nft::AddTable{});
    const auto seen = tables.ReadRules(kSpokeTable);
    ASSERT_TRUE(
        AppendNatHost(Classes(), table, seen.value_or(std::vector<nft::RuleReading>()), transaction)
            .ok());
    const absl::Status status = tables.Apply(transaction);
    ASSERT_TRUE(status.ok()) << status;
  }

  UdpFlow FromHub(const ip::Address& to) const {
    return {world_->network(), at().hub, to, EgressWorld::kPort};
  }
  const WorldAddresses& at() const { return AddressesOf(GetParam()); }

  std::unique_ptr<EgressWorld> world_;
  ip::Address service_;
  ip::Address empty_;
};

TEST_P(NatHostFlowTest, TranslatesBothWays) {
  Set(world_->tables(), Table());
  UdpServer endpoint(world_->network(), at().peer, 8443);
  UdpFlow flow = FromHub(service_);
  // Connected sockets hear nobody but whom they asked: the answer came from the Service's address.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Ask(flow, endpoint), at().node.ToString());
}

TEST_P(NatHostFlowTest, FlowsOutliveTheirEndpointsEntry) {
  Set(world_->tables(), Table());
  UdpServer endpoint(world_->network(), at().peer, 8443);
  UdpFlow flow = FromHub(service_);
  ASSERT_EQ(Ask(flow, endpoint), at().node.ToString());
  EndpointTable next = Table();
  next.services[0].endpoints.clear();
  Set(world_->tables(), next);
  EXPECT_EQ(Ask(flow, endpoint), at().node.ToString());
  UdpFlow late = FromHub(service_);
  EXPECT_EQ(Ask(late, endpoint), "nothing");
}

TEST_P(NatHostFlowTest, RefusesAtOnceWhereNothingIs) {
  Set(world_->tables(), Table());
  for (const ip::Address& to : {empty_, service_}) {
    UdpFlow flow(world_->network(), at().hub, to,
                 to == empty_ ? EgressWorld::kPort : uint16_t{9999});
    ASSERT_TRUE(flow.Send());
    errno = 0;
    EXPECT_FALSE(flow.Receive());
    EXPECT_EQ(errno, ECONNREFUSED) << to.ToString();
  }
}

TEST_P(NatHostFlowTest, SeveralHostsWorkSideBySide) {
  Set(world_->tables(), Table());
  Set(world_->gateway_tables(0), Table());
  UdpServer endpoint(world_->network(), at().peer, 8443);
  UdpFlow first = FromHub(service_);
  EXPECT_EQ(Ask(first, endpoint), at().node.ToString());
  // The load balancer sends new flows to the other one.
  ServicesVia(at().gateways[0]);
  UdpFlow second = FromHub(service_);
  EXPECT_EQ(Ask(second, endpoint), at().gateways[0].ToString());
}

INSTANTIATE_TEST_SUITE_P(Families, NatHostFlowTest,
                         testing::Values(ip::Family::kV4, ip::Family::kV6), [](const auto& test) {
                           return test.param == ip::Family::kV4 ? "V4" : "V6";
                         });

}  // namespace
}  // namespace spoke::netagent
