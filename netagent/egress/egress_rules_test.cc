#include "netagent/egress/egress_rules.h"

#include <list>
#include <map>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/claims.h"
#include "netagent/nftables/testing/rule_machine.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr uint32_t kConfirmed = 8;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(const std::string& text) { return ip::Prefix::Parse(text).value(); }

template <typename T>
void Put(Policy& policy, const std::string& key, T value) {
  policy.entries[key] = {.key = key, .bytes = {}, .value = std::move(value)};
}

Policy Network() {
  Policy policy{.version = 1};
  Put(policy, "ClusterNetwork/main",
      policy::ClusterNetwork{.cluster = policy::Blocks({"10.1.0.0/16", "fd00:1::/32"}),
                             .hub = policy::Blocks({"10.2.0.0/16", "fd00:2::/32"}),
                             .peer_spoke = policy::Blocks({"10.3.0.0/16"}),
                             .platform = {},
                             .storage = {},
                             .services = policy::Blocks({"10.96.0.0/16"})});
  Put(policy, "Team/vision", policy::Team{.namespaces = {"team-a", "team-b"}});
  Put(policy, "DestinationGroup/mirror",
      policy::DestinationGroup{.cidrs = policy::Blocks({"151.101.0.0/16"})});
  return policy;
}

policy::EgressPolicy All(policy::EgressMode mode) {
  return {.destination_cidrs = policy::Blocks({"0.0.0.0/0", "::/0"}), .mode = mode};
}

policy::EgressPolicy ByGateways(std::initializer_list<std::string_view> addresses,
                                policy::EgressMode fallback) {
  policy::EgressPolicy policy = All(policy::EgressMode::kGateway);
  policy.gateway = policy::EgressGateway{.addresses = policy::Addresses(addresses)};
  policy.fallback = fallback;
  return policy;
}

const TrafficPod kPod = {.host_link = "spk1",
                         .host_index = 7,
                         .addresses = {A("10.1.0.5"), A("fd00:1::5")},
                         .pod_namespace = "team-a"};
const TrafficPod kOther = {
    .host_link = "spk2", .host_index = 8, .addresses = {A("10.1.0.6")}, .pod_namespace = "other"};

// A node whose rules change, and flows that go on.
class Node {
 public:
  // The counters and what the gateways are stay, as they do on a node.
  absl::Status Set(const Policy& policy, const std::set<GatewayEndpoint>& healthy = {}) {
    const ClassMap classes = ClassMap::Compile(policy, {}).value();
    auto rules = EgressRules::Compile(policy, classes, healthy, settings);
    if (!rules.ok()) return rules.status();
    nft::Transaction transaction;
    rules->AppendTables(machine.Rules(), transaction);
    rules->AppendPod(kPod, transaction);
    rules->AppendPod(kOther, transaction);
    machine.Apply(transaction);
    settings.known_marks = rules->GatewayMarks();
    settings.tracked = rules->NeedsTracking();
    current.emplace(*std::move(rules));
    return absl::OkStatus();
  }

  // Returns "drop", "masquerade", "as is", "to ADDRESS", or "leak" when the guard had to catch it.
  std::string Send(TestFlow* flow, const std::string& from, const std::string& to) {
    TestPacket packet{
        .in = "spk1", .out = "eth0", .source = A(from), .destination = A(to), .flow = flow};
    const bool first = flow != nullptr && (flow->status & kConfirmed) == 0;
    packet.state = first ? nft::kCtNew : nft::kCtEstablished;
    packet.priority = 6;
    machine.Run(nft::Hook::kPrerouting, packet);
    // What the decision kept in it must not reach a device's queue.
    const bool decided = flow != nullptr && first && flow->mark != 0;
    EXPECT_TRUE(packet.dropped || packet.priority == 0 || (packet.priority == 6 && !decided))
        << packet.priority;
    // Only a flow's first packet is translated by rules; the other packets as that one was.
    TestPacket behind = packet;
    if (masqueraded_.contains(flow)) behind.source = kNodeAddressV4;
    machine.Run(nft::Hook::kPostrouting, behind);
    if (behind.masqueraded) masqueraded_.insert(flow);
    if (packet.dropped) return "drop";
    if (behind.dropped) return "leak";
    if (flow != nullptr) flow->status |= kConfirmed;
    const uint32_t mark = packet.mark & claims::kFlowMarkMask;
    if (mark != 0) return "to " + current->GatewayMarks().at(mark).ToString();
    return masqueraded_.contains(flow) ? "masquerade" : "as is";
  }
  std::string SendFirst(const std::string& from, const std::string& to) {
    flows.emplace_back();
    return Send(&flows.back(), from, to);
  }

  EgressSettings settings;
  RuleMachine machine;
  std::optional<EgressRules> current;
  std::list<TestFlow> flows;

 private:
  std::set<const TestFlow*> masqueraded_;
};

TEST(EgressRules, WithoutPoliciesNothingIsTracked) {
  Node node;
  ASSERT_TRUE(node.Set(Network()).ok());
  EXPECT_FALSE(node.current->NeedsTracking());
  EXPECT_TRUE(node.machine.Rules().empty());
  EXPECT_FALSE(node.machine.HasChain("egress_first"));
  EXPECT_FALSE(node.machine.HasSet("egress_pods4"));
}

struct Sent {
  const char* name;
  policy::EgressMode mode;
  const char* to;
  const char* want;
};

class EgressModeTest : public testing::TestWithParam<Sent> {};

TEST_P(EgressModeTest, DecidesByDestination) {
  const Sent& c = GetParam();
  Node node;
  Policy policy = Network();
  Put(policy, "EgressPolicy/all", All(c.mode));
  ASSERT_TRUE(node.Set(policy).ok());
  const bool v4 = A(c.to).is_v4();
  EXPECT_EQ(node.SendFirst(v4 ? "10.1.0.5" : "fd00:1::5", c.to), c.want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EgressModeTest,
    testing::Values(
        Sent{"Internet", policy::EgressMode::kMasquerade, "8.8.8.8", "masquerade"},
        Sent{"Internet6", policy::EgressMode::kMasquerade, "2600::1", "masquerade"},
        Sent{"Group", policy::EgressMode::kMasquerade, "151.101.1.1", "masquerade"},
        Sent{"Cluster", policy::EgressMode::kMasquerade, "10.1.9.9", "as is"},
        Sent{"Cluster6", policy::EgressMode::kMasquerade, "fd00:1::9", "as is"},
        Sent{"Hub", policy::EgressMode::kMasquerade, "10.2.9.9", "as is"},
        Sent{"PeerSpoke", policy::EgressMode::kMasquerade, "10.3.9.9", "as is"},
        Sent{"Service", policy::EgressMode::kMasquerade, "10.96.0.1", "as is"},
        Sent{"Routed", policy::EgressMode::kRouted, "8.8.8.8", "as is"},
        Sent{"Dropped", policy::EgressMode::kDrop, "8.8.8.8", "drop"},
        Sent{"Dropped6", policy::EgressMode::kDrop, "2600::1", "drop"},
        Sent{"ClusterNotDropped", policy::EgressMode::kDrop, "10.1.9.9", "as is"},
        Sent{"MetadataRouted", policy::EgressMode::kRouted, "169.254.169.254", "masquerade"},
        Sent{"MetadataNotDropped", policy::EgressMode::kDrop, "169.254.169.254", "masquerade"},
        Sent{"WireServer", policy::EgressMode::kDrop, "168.63.129.16", "masquerade"}),
    [](const auto& test) { return test.param.name; });

TEST(EgressRules, TheFirstPolicyThatSelectsPodAndDestinationDecides) {
  Policy policy = Network();
  policy::EgressPolicy mirror{.namespaces = {},
                              .teams = {"vision"},
                              .destination_groups = {"mirror"},
                              .mode = policy::EgressMode::kMasquerade,
                              .priority = 1};
  Put(policy, "EgressPolicy/z-mirror", mirror);
  policy::EgressPolicy drop = All(policy::EgressMode::kDrop);
  drop.namespaces = {"team-a"};
  drop.excluded_cidrs = policy::Blocks({"9.0.0.0/8"});
  drop.priority = 2;
  Put(policy, "EgressPolicy/b-drop", drop);
  policy::EgressPolicy later = All(policy::EgressMode::kRouted);
  later.priority = 2;
  Put(policy, "EgressPolicy/c-routed", later);
  Node node;
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_EQ(node.SendFirst("10.1.0.5", "151.101.0.1"), "masquerade");
  EXPECT_EQ(node.SendFirst("10.1.0.5", "8.8.8.8"), "drop");
  EXPECT_EQ(node.machine.Counted("drop/egress-b-drop"), 1U);
  EXPECT_EQ(node.SendFirst("10.1.0.5", "9.8.8.8"), "as is");
  EXPECT_EQ(node.SendFirst("10.1.0.6", "151.101.0.1"), "as is") << "not of the team";
  EXPECT_EQ(node.SendFirst("10.1.0.6", "8.8.8.8"), "as is");
}

// Each mode is tried with each other: a flow goes on as it began, and a new one does as the policy
// says now.
TEST(EgressRules, FlowsGoOnAsTheyBegan) {
  const std::map<std::string, Policy> policies = [] {
    std::map<std::string, Policy> all;
    for (const char* name : {"masquerade", "as is", "drop", "to 10.1.0.100", "none"}) {
      all[name] = Network();
    }
    Put(all["masquerade"], "EgressPolicy/p", All(policy::EgressMode::kMasquerade));
    Put(all["as is"], "EgressPolicy/p", All(policy::EgressMode::kRouted));
    Put(all["drop"], "EgressPolicy/p", All(policy::EgressMode::kDrop));
    Put(all["to 10.1.0.100"], "EgressPolicy/p",
        ByGateways({"10.1.0.100"}, policy::EgressMode::kDrop));
    return all;
  }();
  for (const auto& [before, first] : policies) {
    for (const auto& [after, second] : policies) {
      if (before == "drop" || before == "none") continue;
      Node node;
      ASSERT_TRUE(node.Set(first, {A("10.1.0.100")}).ok());
      TestFlow old;
      ASSERT_EQ(node.Send(&old, "10.1.0.5", "8.8.8.8"), before);
      ASSERT_TRUE(node.Set(second, {A("10.1.0.100")}).ok());
      EXPECT_EQ(node.Send(&old, "10.1.0.5", "8.8.8.8"), before) << "now " << after;
      EXPECT_EQ(node.SendFirst("10.1.0.5", "8.8.8.8"), after == "none" ? "as is" : after)
          << "before " << before;
      EXPECT_EQ(node.machine.Counted("drop/leak"), 0U);
    }
  }
}

TEST(EgressRules, AFlowThatIsOlderThanAnyPolicyGoesOn) {
  Node node;
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kMasquerade));
  ASSERT_TRUE(node.Set(policy).ok());
  TestFlow old{.mark = 0xFFFF4000, .status = kConfirmed};
  EXPECT_EQ(node.Send(&old, "10.1.0.5", "8.8.8.8"), "as is");
  EXPECT_EQ(old.mark, 0xFFFF4000);
}

TEST(EgressRules, OthersBitsOfTheMarkStay) {
  Node node;
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kMasquerade));
  ASSERT_TRUE(node.Set(policy).ok());
  TestFlow flow{.mark = 0xABCD4F80};
  EXPECT_EQ(node.Send(&flow, "10.1.0.5", "8.8.8.8"), "masquerade");
  EXPECT_EQ(flow.mark, 0xABCD4F80 | claims::kFlowMasqueraded);
}

TEST(EgressRules, WhatTheTrackingDoesNotKnowDoesNotLeak) {
  Node node;
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kMasquerade));
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_EQ(node.Send(nullptr, "10.1.0.5", "8.8.8.8"), "drop");
  EXPECT_EQ(node.machine.Counted("drop/leak"), 1U);
  EXPECT_EQ(node.Send(nullptr, "10.1.0.5", "10.1.9.9"), "as is") << "nothing is to be translated";
}

TEST(EgressRules, TheGuardCatchesWhatWasNotTranslated) {
  Node node;
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kMasquerade));
  ASSERT_TRUE(node.Set(policy).ok());
  // The flow is decided upon, but the translation has not happened.
  TestFlow flow{.mark = claims::kFlowMasqueraded, .status = kConfirmed};
  EXPECT_EQ(node.Send(&flow, "10.1.0.5", "8.8.8.8"), "leak");
  TestFlow flow6{.mark = claims::kFlowMasqueraded, .status = kConfirmed};
  EXPECT_EQ(node.Send(&flow6, "fd00:1::5", "2600::1"), "leak");
  EXPECT_EQ(node.machine.Counted("drop/leak"), 2U);
}

TEST(EgressRules, AFlowByAForgottenGatewayDoesNotLeak) {
  Node node;
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kMasquerade));
  ASSERT_TRUE(node.Set(policy).ok());
  TestFlow flow{.mark = claims::kFirstGatewayMark + 5, .status = kConfirmed};
  EXPECT_EQ(node.Send(&flow, "10.1.0.5", "8.8.8.8"), "drop");
  EXPECT_EQ(node.machine.Counted("drop/leak"), 1U);
}

TEST(EgressRules, RepliesAreNotDecidedUpon) {
  Node node;
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kDrop));
  ASSERT_TRUE(node.Set(policy).ok());
  TestFlow flow{.status = kConfirmed};
  TestPacket packet{.in = "spk1",
                    .out = "eth0",
                    .source = A("10.1.0.5"),
                    .destination = A("8.8.8.8"),
                    .flow = &flow,
                    .state = nft::kCtEstablished,
                    .reply = true};
  node.machine.Run(nft::Hook::kPrerouting, packet);
  EXPECT_FALSE(packet.dropped);
  EXPECT_EQ(flow.mark, 0U);
}

std::map<std::string, int> WhereTo(Node& node, int flows) {
  std::map<std::string, int> count;
  for (int i = 0; i < flows; ++i) {
    ++count[node.SendFirst("10.1.0.5", fmt::format("8.{}.{}.8", i / 250, i % 250))];
  }
  return count;
}

TEST(EgressGateways, ShareFlowsAndADeadOneMovesOnlyNewOnes) {
  const std::set<GatewayEndpoint> all = {A("10.1.0.100"), A("10.1.0.101"), A("10.1.0.102")};
  Policy policy = Network();
  Put(policy, "EgressPolicy/p",
      ByGateways({"10.1.0.100", "10.1.0.101", "10.1.0.102"}, policy::EgressMode::kDrop));
  Node node;
  ASSERT_TRUE(node.Set(policy, all).ok());
  std::map<std::string, std::string> began;
  std::map<std::string, int> count;
  for (int i = 0; i < 300; ++i) {
    const std::string to = fmt::format("8.8.{}.{}", i / 250, i % 250);
    began[to] = node.SendFirst("10.1.0.5", to);
    ++count[began[to]];
  }
  EXPECT_EQ(count.size(), 3U);
  for (const auto& [gateway, flows] : count) EXPECT_GT(flows, 50) << gateway;

  ASSERT_TRUE(node.Set(policy, {A("10.1.0.100"), A("10.1.0.102")}).ok());
  int i = 0;
  for (TestFlow& flow : node.flows) {
    const std::string to = fmt::format("8.8.{}.{}", i / 250, i % 250);
    EXPECT_EQ(node.Send(&flow, "10.1.0.5", to), began[to]);
    if (++i == 300) break;
  }
  for (const auto& [to, gateway] : began) {
    const std::string now = node.SendFirst("10.1.0.5", to);
    // New flows go elsewhere only where they have to.
    if (gateway == "to 10.1.0.101") {
      EXPECT_NE(now, gateway);
    } else {
      EXPECT_EQ(now, gateway) << to;
    }
  }
}

TEST(EgressGateways, ADrainingOneGetsNoNewFlows) {
  Policy policy = Network();
  policy::EgressPolicy egress = ByGateways({"10.1.0.100", "10.1.0.101"}, policy::EgressMode::kDrop);
  Put(policy, "EgressPolicy/p", egress);
  const std::set<GatewayEndpoint> healthy = {A("10.1.0.100"), A("10.1.0.101")};
  Node node;
  ASSERT_TRUE(node.Set(policy, healthy).ok());
  EXPECT_EQ(WhereTo(node, 100).size(), 2U);
  TestFlow old;
  std::string began;
  for (int i = 0; began != "to 10.1.0.100"; ++i) {
    old = {};
    began = node.Send(&old, "10.1.0.5", fmt::format("9.9.9.{}", i));
  }
  egress.gateway->draining = policy::Addresses({"10.1.0.100"});
  Put(policy, "EgressPolicy/p", egress);
  ASSERT_TRUE(node.Set(policy, healthy).ok());
  EXPECT_THAT(WhereTo(node, 100), ElementsAre(Pair("to 10.1.0.101", 100)));
  EXPECT_EQ(node.Send(&old, "10.1.0.5", "9.9.9.9"), began);
}

TEST(EgressGateways, FallBackWhenNoneIsHealthyAndByFamily) {
  for (const auto& [fallback, want] : {std::pair(policy::EgressMode::kDrop, "drop"),
                                       std::pair(policy::EgressMode::kMasquerade, "masquerade"),
                                       std::pair(policy::EgressMode::kRouted, "as is")}) {
    Policy policy = Network();
    Put(policy, "EgressPolicy/p", ByGateways({"10.1.0.100"}, fallback));
    Node node;
    ASSERT_TRUE(node.Set(policy, {}).ok());
    EXPECT_EQ(node.SendFirst("10.1.0.5", "8.8.8.8"), want);
    ASSERT_TRUE(node.Set(policy, {A("10.1.0.100")}).ok());
    EXPECT_EQ(node.SendFirst("10.1.0.5", "8.8.8.8"), "to 10.1.0.100");
    EXPECT_EQ(node.SendFirst("fd00:1::5", "2600::1"), want) << "it has no gateway of IPv6";
  }
}

TEST(EgressGateways, ThisNodeIsItsOwnPodsGateway) {
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", ByGateways({"10.1.0.100"}, policy::EgressMode::kDrop));
  Node node;
  node.settings.own = {A("10.1.0.100")};
  ASSERT_TRUE(node.Set(policy, {}).ok());
  EXPECT_EQ(node.SendFirst("10.1.0.5", "8.8.8.8"), "masquerade");
  EXPECT_TRUE(node.current->Gateways().empty());
}

TEST(EgressGateways, KeepTheirMarks) {
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", ByGateways({"10.1.0.101"}, policy::EgressMode::kDrop));
  Node node;
  ASSERT_TRUE(node.Set(policy).ok());
  const std::map<uint32_t, GatewayEndpoint> before = node.current->GatewayMarks();
  ASSERT_THAT(before, ElementsAre(Pair(claims::kFirstGatewayMark, A("10.1.0.101"))));
  Put(policy, "EgressPolicy/p", ByGateways({"10.1.0.100"}, policy::EgressMode::kDrop));
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_THAT(node.current->GatewayMarks(),
              ElementsAre(Pair(claims::kFirstGatewayMark, A("10.1.0.101")),
                          Pair(claims::kFirstGatewayMark + 1, A("10.1.0.100"))));
  // Many gateways come and go: the room is used again, and never a mark twice.
  for (int i = 0; i < 100; ++i) {
    Put(policy, "EgressPolicy/p",
        ByGateways({fmt::format("10.1.7.{}", i)}, policy::EgressMode::kDrop));
    ASSERT_TRUE(node.Set(policy).ok());
  }
  EXPECT_EQ(node.current->GatewayMarks().size(), claims::kGatewayMarks);
}

TEST(EgressGateways, ATranslatesWhatOtherNodesSendThroughIt) {
  Node node;
  node.settings.is_gateway = true;
  ASSERT_TRUE(node.Set(Network()).ok());
  const auto through = [&](const std::string& from, const std::string& to) {
    TestFlow flow;
    TestPacket packet{
        .in = "eth0", .out = "eth0", .source = A(from), .destination = A(to), .flow = &flow};
    node.machine.Run(nft::Hook::kPrerouting, packet);
    node.machine.Run(nft::Hook::kPostrouting, packet);
    if (packet.source_to) return packet.source_to->ToString();
    return std::string(packet.masqueraded ? "masquerade" : "as is");
  };
  EXPECT_EQ(through("10.1.8.8", "8.8.8.8"), "masquerade");
  EXPECT_EQ(through("fd00:1::8", "2600::1"), "masquerade");
  EXPECT_EQ(through("10.1.8.8", "10.1.9.9"), "as is");
  EXPECT_EQ(through("10.2.8.8", "8.8.8.8"), "as is") << "the hub's is not its business";
  node.settings.gateway_addresses = {A("10.1.0.100"), A("10.1.0.101"), A("fd00:1::100")};
  ASSERT_TRUE(node.Set(Network()).ok());
  const std::string first = through("10.1.8.8", "8.8.8.8");
  EXPECT_THAT(first, testing::AnyOf("10.1.0.100", "10.1.0.101"));
  EXPECT_EQ(through("10.1.8.8", "9.9.9.9"), first) << "a pod keeps its address";
  EXPECT_EQ(through("fd00:1::8", "2600::1"), "fd00:1::100");
}

TEST(EgressLimits, EndWhatIsBeyondThemAndCountIt) {
  Policy policy = Network();
  policy::EgressPolicy egress = All(policy::EgressMode::kRouted);
  egress.limits = {.connections = 5, .connections_per_destination = 3};
  Put(policy, "EgressPolicy/p", egress);
  Node node;
  ASSERT_TRUE(node.Set(policy).ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(node.SendFirst("10.1.0.5", "8.8.8.8"), "as is");
  EXPECT_EQ(node.SendFirst("10.1.0.5", "8.8.8.8"), "drop");
  EXPECT_EQ(node.SendFirst("10.1.0.5", "9.9.9.9"), "as is");
  EXPECT_EQ(node.SendFirst("10.1.0.5", "9.9.9.9"), "drop") << "the pod has its five";
  EXPECT_EQ(node.machine.Counted("drop/egress-limit-p"), 2U);
  EXPECT_EQ(node.SendFirst("10.1.0.6", "8.8.8.8"), "as is") << "another pod has its own";
  EXPECT_EQ(node.SendFirst("10.1.0.5", "10.1.9.9"), "as is") << "no policy has a say there";
  // The same limit goes on where it was, another begins anew.
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_EQ(node.SendFirst("10.1.0.5", "9.9.9.9"), "drop");
  egress.limits = {.new_connections_per_second = 2,
                   .new_connections_per_second_per_destination = 1};
  Put(policy, "EgressPolicy/p", egress);
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_EQ(node.SendFirst("10.1.0.5", "9.9.9.9"), "as is");
  EXPECT_EQ(node.SendFirst("fd00:1::5", "2600::1"), "as is");
  EXPECT_EQ(node.SendFirst("fd00:1::5", "2600::1"), "drop");
}

TEST(EgressIpMasq, DoesAsIpMasqAgent) {
  Node node;
  node.settings.ip_masq = IpMasqConfig{.non_masquerade = {P("10.0.0.0/8"), P("9.9.0.0/16")}};
  ASSERT_TRUE(node.Set(Network()).ok());
  EXPECT_EQ(node.SendFirst("10.1.0.5", "8.8.8.8"), "masquerade");
  EXPECT_EQ(node.SendFirst("10.1.0.5", "9.9.1.1"), "as is");
  EXPECT_EQ(node.SendFirst("10.1.0.5", "10.77.1.1"), "as is");
  EXPECT_EQ(node.SendFirst("10.1.0.5", "169.254.1.1"), "as is");
  EXPECT_EQ(node.SendFirst("fd00:1::5", "2600::1"), "as is") << "IPv6 is off";
  node.settings.ip_masq->masquerade_link_local = true;
  node.settings.ip_masq->ipv6 = true;
  Policy policy = Network();
  policy::EgressPolicy drop = All(policy::EgressMode::kDrop);
  drop.namespaces = {"other"};
  Put(policy, "EgressPolicy/p", drop);
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_EQ(node.SendFirst("10.1.0.5", "169.254.1.1"), "masquerade");
  EXPECT_EQ(node.SendFirst("fd00:1::5", "2600::1"), "masquerade");
  EXPECT_EQ(node.SendFirst("10.1.0.6", "8.8.8.8"), "drop") << "a policy comes before it";
}

TEST(EgressRules, OnlyPoliciesAboutTheClusterKeepPodsFromTheFastPath) {
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kMasquerade));
  Node node;
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_FALSE(node.current->KeepsFromFastPath(kPod));
  Put(policy, "EgressPolicy/q",
      policy::EgressPolicy{.namespaces = {"team-a"},
                           .destination_cidrs = policy::Blocks({"10.1.7.0/24"}),
                           .mode = policy::EgressMode::kDrop});
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_TRUE(node.current->KeepsFromFastPath(kPod));
  EXPECT_FALSE(node.current->KeepsFromFastPath(kOther));
  EXPECT_EQ(node.SendFirst("10.1.0.5", "10.1.7.1"), "drop") << "p does not mean the cluster";
}

TEST(EgressRules, APodThatHasGoneLeavesNoElement) {
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kMasquerade));
  Node node;
  ASSERT_TRUE(node.Set(policy).ok());
  EXPECT_EQ(node.machine.SizeOf("egress_pods4"), 2U);
  nft::Transaction transaction;
  node.current->AppendPodRemoval(kPod, transaction);
  node.machine.Apply(transaction);
  EXPECT_EQ(node.machine.SizeOf("egress_pods4"), 1U);
  EXPECT_EQ(node.machine.SizeOf("egress_pods6"), 0U);
}

TEST(EgressRules, WhatIsNoPodsIsNotDecidedAbout) {
  Policy policy = Network();
  Put(policy, "EgressPolicy/p", All(policy::EgressMode::kDrop));
  Node node;
  ASSERT_TRUE(node.Set(policy).ok());
  TestFlow flow;
  TestPacket packet{.in = "spk1",
                    .out = "eth0",
                    .source = A("10.1.0.77"),
                    .destination = A("8.8.8.8"),
                    .flow = &flow,
                    // The priority is as if it had a profile.
                    .priority = 0x0001'0000};
  node.machine.Run(nft::Hook::kPrerouting, packet);
  EXPECT_FALSE(packet.dropped);
  EXPECT_EQ(flow.mark, 0U);
}

struct Refused {
  const char* name;
  policy::EgressPolicy policy;
  const char* text;
};

class EgressRefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(EgressRefusedTest, NamesThePolicyAndTheReason) {
  Policy policy = Network();
  Put(policy, "EgressPolicy/good", ByGateways({"10.1.0.100"}, policy::EgressMode::kDrop));
  policy::EgressPolicy tunnel = ByGateways({"10.1.0.101"}, policy::EgressMode::kDrop);
  tunnel.gateway->transport = policy::GatewayTransport::kVxlan;
  Put(policy, "EgressPolicy/good-too", tunnel);
  Put(policy, "EgressPolicy/off", GetParam().policy);
  Node node;
  const absl::Status status = node.Set(policy);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("EgressPolicy/off"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().text));
}

policy::EgressPolicy OtherPort() {
  policy::EgressPolicy policy = ByGateways({"10.1.0.100"}, policy::EgressMode::kDrop);
  policy.gateway->health_port = 80;
  return policy;
}

policy::EgressPolicy OtherTunnelPort() {
  policy::EgressPolicy policy = ByGateways({"10.1.0.100"}, policy::EgressMode::kDrop);
  policy.gateway->transport = policy::GatewayTransport::kVxlan;
  policy.gateway->tunnel_port = 8473;
  return policy;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EgressRefusedTest,
    testing::Values(Refused{"Team", {.teams = {"x"}, .mode = policy::EgressMode::kDrop}, "team x"},
                    Refused{"Group",
                            {.destination_groups = {"y"}, .mode = policy::EgressMode::kDrop},
                            "destination group y"},
                    Refused{"NoMode", {}, "no mode"},
                    Refused{"NoGateway", {.mode = policy::EgressMode::kGateway}, "no gateway"},
                    Refused{"FallsBackOnItself",
                            ByGateways({"10.1.0.9"}, policy::EgressMode::kGateway), "falls back"},
                    Refused{"TwoPorts", OtherPort(), "another policy at 9467"},
                    Refused{"TwoTunnelPorts", OtherTunnelPort(),
                            "tunnelPort 8473, another policy 4789: a node listens at one"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent
