#include "netagent/egress/egress_tunnel.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/claims.h"
#include "netagent/egress/egress_rules.h"
#include "netagent/nftables/testing/rule_machine.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr uint16_t kPort = 8473;
constexpr uint8_t kTcp = 6;
constexpr uint8_t kUdp = 17;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }

const GatewayEndpoint kTunnel(A("10.1.0.100"), policy::GatewayTransport::kVxlan);

Policy ByTunnel() {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main",
      .bytes = {},
      .value = policy::ClusterNetwork{.cluster = policy::Blocks({"10.1.0.0/16"}),
                                      .hub = policy::Blocks({"10.2.0.0/16"})}};
  policy::EgressPolicy egress{.destination_cidrs = policy::Blocks({"0.0.0.0/0"}),
                              .mode = policy::EgressMode::kGateway};
  egress.gateway = policy::EgressGateway{.addresses = policy::Addresses({"10.1.0.100"})};
  egress.gateway->transport = policy::GatewayTransport::kVxlan;
  egress.gateway->tunnel_port = kPort;
  egress.fallback = policy::EgressMode::kDrop;
  policy.entries["EgressPolicy/p"] = {.key = "EgressPolicy/p", .bytes = {}, .value = egress};
  return policy;
}

class EgressTunnelRulesTest : public testing::Test {
 protected:
  void Set(const Policy& policy, const EgressSettings& settings) {
    const ClassMap classes = ClassMap::Compile(policy, {}).value();
    auto rules = EgressRules::Compile(policy, classes, {kTunnel}, settings);
    ASSERT_TRUE(rules.ok()) << rules.status();
    nft::Transaction transaction;
    rules->AppendTables(machine_.Rules(), transaction);
    rules->AppendPod({.host_link = "spk1",
                      .host_index = 7,
                      .addresses = {A("10.1.0.5")},
                      .pod_namespace = "team-a"},
                     transaction);
    machine_.Apply(transaction);
    rules_.emplace(*std::move(rules));
  }
  void SetGateway() { Set(ByTunnel(), {.own = {A("10.1.0.100")}, .is_gateway = true}); }

  TestPacket Packet(const std::string& in, const std::string& out, const std::string& from,
                    const std::string& to) {
    return {.in = in, .out = out, .source = A(from), .destination = A(to), .flow = &flow_};
  }
  // Makes a packet of the tunnel itself.
  static TestPacket Outer(const std::string& in, const std::string& from) {
    return {.in = in,
            .out = "",
            .source = A(from),
            .destination = A("10.1.0.100"),
            .protocol = kUdp,
            .destination_port = kPort};
  }
  bool Passes(nft::Hook hook, TestPacket packet) {
    machine_.Run(hook, packet);
    return !packet.dropped;
  }

  static constexpr const char* kLink = "spoke-tunnel";
  RuleMachine machine_;
  TestFlow flow_;
  std::optional<EgressRules> rules_;
};

TEST_F(EgressTunnelRulesTest, TheMarkThatLeadsIntoTheTunnelEndsThere) {
  Set(ByTunnel(), {});
  EXPECT_THAT(rules_->GatewayMarks(), ElementsAre(Pair(claims::kFirstGatewayMark, kTunnel)));
  EXPECT_EQ(rules_->TunnelPort(), kPort);
  TestPacket packet = Packet("spk1", kLink, "10.1.0.5", "8.8.8.8");
  machine_.Run(nft::Hook::kPrerouting, packet);
  EXPECT_EQ(packet.mark, claims::kFirstGatewayMark);
  packet.mark |= 0x4000;
  machine_.Run(nft::Hook::kPostrouting, packet);
  EXPECT_FALSE(packet.dropped);
  EXPECT_EQ(packet.mark, 0x4000U) << "others' bits stay";
  packet.out = "eth0";
  machine_.Run(nft::Hook::kPostrouting, packet);
  EXPECT_TRUE(packet.dropped) << "it does not go where it should";
  EXPECT_EQ(machine_.Counted("drop/leak"), 1U);
}

TEST_F(EgressTunnelRulesTest, PodsDoNotSendToItsPort) {
  Set(ByTunnel(), {});
  TestPacket packet = Packet("spk1", "eth0", "10.1.0.5", "10.1.0.100");
  EXPECT_TRUE(Passes(nft::Hook::kPostrouting, packet));
  packet.destination_port = kPort;
  EXPECT_TRUE(Passes(nft::Hook::kPostrouting, packet));
  packet.protocol = kUdp;
  EXPECT_FALSE(Passes(nft::Hook::kPostrouting, packet));
  packet.source = kNodeAddressV4;
  EXPECT_FALSE(Passes(nft::Hook::kPostrouting, packet)) << "nor translated";
  packet.destination = A("10.1.0.7");
  EXPECT_TRUE(Passes(nft::Hook::kPostrouting, packet)) << "others' overlays are theirs";
  EXPECT_EQ(machine_.Counted("drop/tunnel"), 2U);
}

TEST_F(EgressTunnelRulesTest, AGatewayTakesItFromTheClusterButNotFromItsPods) {
  SetGateway();
  EXPECT_TRUE(Passes(nft::Hook::kInput, Outer("eth0", "10.1.255.1")));
  EXPECT_FALSE(Passes(nft::Hook::kInput, Outer("spk1", "10.1.0.5")));
  EXPECT_FALSE(Passes(nft::Hook::kInput, Outer("eth0", "10.2.0.5")));
  EXPECT_FALSE(Passes(nft::Hook::kInput, Outer("eth0", "8.8.8.8")));
  EXPECT_EQ(machine_.Counted("drop/tunnel"), 3U);
  // A node that is no gateway takes nothing.
  Set(ByTunnel(), {});
  EXPECT_FALSE(Passes(nft::Hook::kInput, Outer("eth0", "10.1.255.1")));
}

TEST_F(EgressTunnelRulesTest, WhatComesOutGoesToTheInternetOrNowhere) {
  SetGateway();
  EXPECT_TRUE(Passes(nft::Hook::kPrerouting, Packet(kLink, "", "10.1.7.7", "8.8.8.8")));
  for (const char* to : {"10.1.7.8", "10.2.0.1", "10.1.0.100", "169.254.169.254"}) {
    EXPECT_FALSE(Passes(nft::Hook::kPrerouting, Packet(kLink, "", "10.1.7.7", to))) << to;
  }
  EXPECT_FALSE(Passes(nft::Hook::kPrerouting, Packet(kLink, "", "8.8.8.8", "9.9.9.9")));
  Set(ByTunnel(), {});
  EXPECT_FALSE(Passes(nft::Hook::kPrerouting, Packet(kLink, "", "10.1.7.7", "8.8.8.8")));
}

TEST_F(EgressTunnelRulesTest, NothingLeavesAGatewayUntranslated) {
  SetGateway();
  TestPacket packet = Packet(kLink, "eth0", "10.1.7.7", "8.8.8.8");
  machine_.Run(nft::Hook::kPostrouting, packet);
  EXPECT_TRUE(packet.masqueraded && !packet.dropped);
  TestFlow untranslated{.status = 8};
  packet.source = A("10.1.7.7");
  packet.flow = &untranslated;
  packet.state = nft::kCtEstablished;
  EXPECT_FALSE(Passes(nft::Hook::kPostrouting, packet));
  packet.flow = nullptr;
  EXPECT_FALSE(Passes(nft::Hook::kPostrouting, packet));
  EXPECT_EQ(machine_.Counted("drop/leak"), 2U);
  packet.in = "";
  EXPECT_TRUE(Passes(nft::Hook::kPostrouting, packet)) << "the node's own";
}

TEST_F(EgressTunnelRulesTest, AQuestionIsAnsweredOnlyTranslated) {
  SetGateway();
  TestPacket packet = Packet(kLink, "", "10.1.255.1", claims::kProbeV4.ToString());
  packet.destination_port = kGatewayHealthPort;
  packet.protocol = kTcp;
  machine_.Run(nft::Hook::kPrerouting, packet);
  EXPECT_FALSE(packet.dropped);
  EXPECT_EQ(packet.destination_to, A("10.1.0.100"));
  packet.destination = A("10.1.0.100");
  machine_.Run(nft::Hook::kInput, packet);
  EXPECT_FALSE(packet.dropped);
  EXPECT_EQ(packet.source_to, A("10.1.0.100"));
  flow_.status = 8;
  packet.state = nft::kCtEstablished;
  EXPECT_FALSE(Passes(nft::Hook::kInput, packet)) << "its translation is gone";
  // Another port of the gateway's cannot be reached so.
  flow_ = {};
  TestPacket other = Packet(kLink, "", "10.1.255.1", claims::kProbeV4.ToString());
  other.destination_port = 22;
  machine_.Run(nft::Hook::kPrerouting, other);
  EXPECT_FALSE(other.destination_to.has_value());
}

TEST_F(EgressTunnelRulesTest, GoesWithThePolicyUnlessFlowsMayGoOn) {
  Set(ByTunnel(), {});
  EXPECT_TRUE(machine_.HasChain("egress_from_tunnel"));
  const EgressSettings after{.tracked = true,
                             .known_marks = rules_->GatewayMarks(),
                             .known_tunnel_port = rules_->TunnelPort()};
  Policy without = ByTunnel();
  without.entries.erase("EgressPolicy/p");
  Set(without, after);
  EXPECT_EQ(rules_->TunnelPort(), kPort);
  EXPECT_TRUE(machine_.HasChain("egress_from_tunnel"));
  Set(without, {});
  EXPECT_FALSE(machine_.HasChain("egress_from_tunnel"));
  EXPECT_FALSE(machine_.HasChain("egress_arrived"));
  EXPECT_TRUE(machine_.Rules().empty());
}

}  // namespace
}  // namespace spoke::netagent
