#include "netagent/egress/nat_host.h"

#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/claims.h"
#include "netagent/nftables/testing/rule_machine.h"

namespace spoke::netagent {
namespace {

constexpr uint32_t kDestinationNat = 32;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }

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

EndpointTable Table() {
  return {.generated = absl::UnixEpoch(),
          .services = {{A("10.96.0.10"), 80, 6, {{A("10.1.0.5"), 8080}, {A("10.1.0.6"), 8081}}},
                       {A("10.96.0.10"), 53, 17, {{A("10.1.0.7"), 5353}}},
                       {A("10.96.0.11"), 80, 6, {}},
                       {A("fd00:96::10"), 80, 6, {{A("fd00:1::5"), 8080}}}}};
}

class NatHostTest : public testing::Test {
 protected:
  void Set(const std::optional<EndpointTable>& table) {
    nft::Transaction transaction;
    const absl::Status status = AppendNatHost(Classes(), table, machine_.Rules(), transaction);
    ASSERT_TRUE(status.ok()) << status;
    machine_.Apply(transaction);
  }
  // Sends the packet; `translated` says that somebody, say kube-proxy, has given it an endpoint.
  TestPacket Send(TestFlow& flow, TestPacket packet, bool translated = false) {
    packet.in = packet.out = "eth0";
    packet.flow = &flow;
    machine_.Run(nft::Hook::kPrerouting, packet);
    if (translated || packet.destination_to) flow.status |= kDestinationNat;
    machine_.Run(nft::Hook::kForward, packet);
    machine_.Run(nft::Hook::kPostrouting, packet);
    return packet;
  }
  TestPacket Send(TestPacket packet, bool translated = false) {
    TestFlow flow;
    return Send(flow, std::move(packet), translated);
  }

  RuleMachine machine_;
};

TEST_F(NatHostTest, ChoosesAnEndpointAndTakesItsOwnSource) {
  Set(Table());
  std::map<std::string, int> chosen;
  for (uint16_t port = 30'000; port < 30'200; ++port) {
    const TestPacket sent = Send({.source = A("10.2.0.9"),
                                  .destination = A("10.96.0.10"),
                                  .source_port = port,
                                  .destination_port = 80});
    ASSERT_TRUE(sent.destination_to && sent.port_to && sent.masqueraded);
    ++chosen[sent.destination_to->ToString() + " " + std::to_string(*sent.port_to)];
  }
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_GT(chosen["10.1.0.5 8080"], 50);
  EXPECT_GT(chosen["10.1.0.6 8081"], 50);
}

TEST_F(NatHostTest, TellsProtocolsAndFamiliesApart) {
  Set(Table());
  const TestPacket dns = Send({.source = A("10.2.0.9"),
                               .destination = A("10.96.0.10"),
                               .protocol = 17,
                               .destination_port = 53});
  EXPECT_EQ(dns.destination_to, A("10.1.0.7"));
  EXPECT_EQ(dns.port_to, 5353);
  const TestPacket six =
      Send({.source = A("fd00:2::9"), .destination = A("fd00:96::10"), .destination_port = 80});
  EXPECT_EQ(six.destination_to, A("fd00:1::5"));
  EXPECT_TRUE(six.masqueraded);
}

TEST_F(NatHostTest, RefusesWhereNothingIs) {
  Set(Table());
  EXPECT_TRUE(
      Send({.source = A("10.2.0.9"), .destination = A("10.96.0.11"), .destination_port = 80})
          .rejected)
      << "no endpoint";
  EXPECT_TRUE(
      Send({.source = A("10.2.0.9"), .destination = A("10.96.0.10"), .destination_port = 81})
          .rejected)
      << "no such port";
  EXPECT_EQ(machine_.Counted(kNoEndpointCounter), 2U);
}

TEST_F(NatHostTest, LeavesAllOthersAlone) {
  Set(Table());
  for (const char* source : {"10.1.0.9", "8.8.8.8"}) {
    const TestPacket sent =
        Send({.source = A(source), .destination = A("10.96.0.10"), .destination_port = 80});
    EXPECT_FALSE(sent.destination_to || sent.masqueraded || sent.rejected) << source;
  }
  const TestPacket pod =
      Send({.source = A("10.2.0.9"), .destination = A("10.1.0.5"), .destination_port = 80});
  EXPECT_FALSE(pod.destination_to || pod.masqueraded || pod.rejected);
}

TEST_F(NatHostTest, LeavesTheChoiceToKubeProxy) {
  Set(std::nullopt);
  const TestPacket packet{
      .source = A("10.2.0.9"), .destination = A("10.96.0.10"), .destination_port = 80};
  const TestPacket sent = Send(packet, true);
  EXPECT_FALSE(sent.destination_to.has_value());
  EXPECT_TRUE(sent.masqueraded);
  EXPECT_TRUE(Send(packet, false).rejected) << "kube-proxy knows no endpoint";
}

TEST_F(NatHostTest, AnotherTableReplacesTheFirst) {
  Set(Table());
  EndpointTable next = Table();
  next.services.resize(1);
  next.services[0].endpoints.resize(1);
  Set(next);
  EXPECT_FALSE(machine_.HasChain("nathost_of_2"));
  EXPECT_EQ(machine_.SizeOf("nathost_services4"), 1U);
  nft::Transaction transaction;
  AppendNoNatHost(machine_.Rules(), transaction);
  machine_.Apply(transaction);
  EXPECT_TRUE(machine_.Rules().empty());
  EXPECT_FALSE(machine_.HasSet("nathost_hub4"));
}

TEST_F(NatHostTest, RefusesATableThatContradictsItself) {
  nft::Transaction transaction;
  EndpointTable twice = Table();
  twice.services.push_back(twice.services[0]);
  EndpointTable families = Table();
  families.services[0].endpoints.push_back({A("fd00:1::5"), 80});
  EndpointTable many = Table();
  many.services[0].endpoints.resize(kMaxNatEndpoints + 1, {A("10.1.0.5"), 80});
  for (const EndpointTable& table : {twice, families, many}) {
    EXPECT_EQ(AppendNatHost(Classes(), table, {}, transaction).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(transaction.empty());
}

}  // namespace
}  // namespace spoke::netagent
