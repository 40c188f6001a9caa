// Egress policies against the real kernel: where packets go, and from which address.
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fmt/core.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/claims.h"
#include "netagent/connections/netlink_conntrack_table.h"
#include "netagent/egress/egress_rules.h"
#include "tests/netns/egress/egress_world.h"

namespace spoke::netagent {
namespace {

Policy With(const policy::EgressPolicy& egress) {
  Policy policy = NetworkPolicy();
  Put(policy, "EgressPolicy/p", egress);
  return policy;
}

policy::EgressPolicy All(policy::EgressMode mode) {
  return {.destination_cidrs = policy::Blocks({"0.0.0.0/0", "::/0"}), .mode = mode};
}

policy::EgressPolicy ByGateways(policy::EgressMode fallback) {
  policy::EgressPolicy policy = All(policy::EgressMode::kGateway);
  policy.gateway = policy::EgressGateway{};
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const auto& gateways = AddressesOf(family).gateways;
    policy.gateway->addresses.insert(policy.gateway->addresses.end(), gateways.begin(),
                                     gateways.end());
  }
  policy.fallback = fallback;
  return policy;
}

std::set<GatewayEndpoint> AllGateways() {
  std::set<GatewayEndpoint> all;
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    all.insert(AddressesOf(family).gateways.begin(), AddressesOf(family).gateways.end());
  }
  return all;
}

class EgressFlowTest : public testing::TestWithParam<ip::Family> {
 protected:
  void SetUp() override {
    world_ = EgressWorld::Make();
    if (world_ == nullptr) {
      ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr);
      GTEST_SKIP() << "needs CAP_SYS_ADMIN";
    }
    for (size_t i = 0; i < 2; ++i) {
      EgressSettings settings{.is_gateway = true};
      const ClassMap classes = ClassMap::Compile(NetworkPolicy(), {}).value();
      Apply(world_->gateway_tables(i),
            EgressRules::Compile(NetworkPolicy(), classes, {}, settings).value(), false);
    }
  }

  void Apply(nft::Connection& tables, const EgressRules& rules, bool pods) {
    nft::Transaction transaction;
    transaction.Add(kSpokeTable, nft::AddTable{});
    const auto seen = tables.ReadRules(kSpokeTable);
    rules.AppendTables(seen.value_or(std::vector<nft::RuleReading>()), transaction);
    if (pods) rules.AppendPod(pod_, transaction);
    const absl::Status status = tables.Apply(transaction);
    ASSERT_TRUE(status.ok()) << status;
  }

  void Set(const Policy& policy, const std::set<GatewayEndpoint>& healthy = AllGateways()) {
    const ClassMap classes = ClassMap::Compile(policy, {}).value();
    const auto rules = EgressRules::Compile(policy, classes, healthy, settings_);
    ASSERT_TRUE(rules.ok()) << rules.status();
    RouteMarks(rules->GatewayMarks());
    Apply(world_->tables(), *rules, true);
    settings_.known_marks = rules->GatewayMarks();
    settings_.tracked = rules->NeedsTracking();
  }

  void RouteMarks(const std::map<uint32_t, GatewayEndpoint>& marks) {
    for (const auto& [mark, gateway] : marks) {
      if (settings_.known_marks.contains(mark)) continue;
      const ip::Address& address = gateway.address;
      const char* family = address.is_v4() ? "" : "-6 ";
      const uint32_t table = claims::kFirstGatewayTable + mark;
      Ip(world_->node(), fmt::format("{}route add default via {} dev {} onlink table {}", family,
                                     address.ToString(), EgressWorld::kNic, table));
      Ip(world_->node(), fmt::format("{}rule add priority {} fwmark {}/{} table {}", family,
                                     claims::kGatewayPriority, mark, claims::kFlowMarkMask, table));
    }
  }

  uint64_t Counted(const std::string& name) {
    const auto counters = world_->tables().ReadCounters(kSpokeTable);
    EXPECT_TRUE(counters.ok()) << counters.status();
    if (!counters.ok()) return 0;
    for (const nft::CounterReading& counter : *counters) {
      if (counter.name == name) return counter.packets;
    }
    return 0;
  }

  const WorldAddresses& at() const { return AddressesOf(GetParam()); }
  std::string Node() const { return at().node.ToString(); }
  std::string Pod() const { return at().pod.ToString(); }
  bool IsGateway(const std::string& address) const {
    return address == at().gateways[0].ToString() || address == at().gateways[1].ToString();
  }

  std::unique_ptr<EgressWorld> world_;
  EgressSettings settings_;
  const TrafficPod pod_ = {
      .host_link = EgressWorld::kPodLink,
      .addresses = {AddressesOf(ip::Family::kV4).pod, AddressesOf(ip::Family::kV6).pod},
      .pod_namespace = "team-a"};
};

TEST_P(EgressFlowTest, EachModeFromTheFirstPacket) {
  UdpServer internet = world_->Serve(at().internet);
  UdpServer peer = world_->Serve(at().peer);
  UdpServer hub = world_->Serve(at().hub);
  const auto ask = [&](UdpServer& server, const ip::Address& to) {
    UdpFlow flow = world_->Flow(to);
    return Ask(flow, server);
  };
  EXPECT_EQ(ask(internet, at().internet), Pod()) << "the world is whole";
  Set(With(All(policy::EgressMode::kMasquerade)));
  EXPECT_EQ(ask(internet, at().internet), Node());
  EXPECT_EQ(ask(peer, at().peer), Pod());
  EXPECT_EQ(ask(hub, at().hub), Pod());
  Set(With(All(policy::EgressMode::kRouted)));
  EXPECT_EQ(ask(internet, at().internet), Pod());
  Set(With(All(policy::EgressMode::kDrop)));
  EXPECT_EQ(ask(internet, at().internet), "nothing");
  EXPECT_EQ(ask(peer, at().peer), Pod());
  EXPECT_EQ(Counted("drop/egress-p"), 1U);
  Set(With(ByGateways(policy::EgressMode::kDrop)));
  EXPECT_TRUE(IsGateway(ask(internet, at().internet)));
  EXPECT_EQ(ask(peer, at().peer), Pod());
  Set(With(ByGateways(policy::EgressMode::kDrop)), {});
  EXPECT_EQ(ask(internet, at().internet), "nothing");
  EXPECT_EQ(Counted("drop/egress-p"), 2U);
  Set(With(ByGateways(policy::EgressMode::kMasquerade)), {});
  EXPECT_EQ(ask(internet, at().internet), Node());
  EXPECT_EQ(Counted("drop/leak"), 0U);
}

TEST_P(EgressFlowTest, EstablishedFlowsSurviveEachChange) {
  UdpServer server = world_->Serve(at().internet);
  const std::map<std::string, Policy> policies = {
      {"masquerade", With(All(policy::EgressMode::kMasquerade))},
      {"routed", With(All(policy::EgressMode::kRouted))},
      {"gateway", With(ByGateways(policy::EgressMode::kDrop))},
      {"drop", With(All(policy::EgressMode::kDrop))},
      {"none", NetworkPolicy()},
  };
  std::list<std::pair<UdpFlow, std::string>> began;
  for (const auto& [before, first] : policies) {
    for (const auto& [after, second] : policies) {
      Set(first);
      UdpFlow flow = world_->Flow(at().internet);
      const std::string from = Ask(flow, server);
      EXPECT_EQ(from == "nothing", before == "drop") << before;
      if (from != "nothing") began.emplace_back(std::move(flow), from);
      Set(second);
      for (auto& [old, address] : began) {
        ASSERT_EQ(Ask(old, server), address) << before << " to " << after;
      }
      if (began.size() > 8) began.pop_front();
    }
  }
  EXPECT_EQ(Counted("drop/leak"), 0U);
}

TEST_P(EgressFlowTest, TheGuardDropsWhatWasNotTranslated) {
  UdpServer server = world_->Serve(at().internet);
  Set(With(All(policy::EgressMode::kMasquerade)));
  // Somebody takes the translation away.
  nft::Transaction transaction;
  transaction.Add(kSpokeTable, nft::FlushChain{"egress_translate"});
  ASSERT_TRUE(world_->tables().Apply(transaction).ok());
  UdpFlow flow = world_->Flow(at().internet);
  EXPECT_EQ(Ask(flow, server), "nothing");
  EXPECT_EQ(Counted("drop/leak"), 1U);
}

TEST_P(EgressFlowTest, AGatewaysEndMovesNewFlowsOnly) {
  UdpServer server = world_->Serve(at().internet);
  UdpServer other = world_->Serve(at().internet_too);
  Set(With(ByGateways(policy::EgressMode::kDrop)));
  UdpFlow flow = world_->Flow(at().internet);
  const std::string first = Ask(flow, server);
  ASSERT_TRUE(IsGateway(first)) << first;
  const ip::Address gone = ip::Address::Parse(first).value();
  // It answers no health check any more, but the flow it has goes on.
  std::set<GatewayEndpoint> healthy = AllGateways();
  healthy.erase(gone);
  Set(With(ByGateways(policy::EgressMode::kDrop)), healthy);
  EXPECT_EQ(Ask(flow, server), first);
  UdpFlow next = world_->Flow(at().internet);
  const std::string second = Ask(next, server);
  EXPECT_TRUE(IsGateway(second)) << second;
  EXPECT_NE(second, first);
  // The same for one that is told to drain.
  policy::EgressPolicy draining = ByGateways(policy::EgressMode::kDrop);
  draining.gateway->draining = {ip::Address::Parse(second).value()};
  Set(With(draining));
  EXPECT_EQ(Ask(flow, server), first);
  EXPECT_EQ(Ask(next, server), second);
  UdpFlow third = world_->Flow(at().internet_too);
  EXPECT_EQ(Ask(third, other), first);
  EXPECT_EQ(Counted("drop/leak"), 0U);
}

TEST_P(EgressFlowTest, LimitsEndWhatIsBeyondThem) {
  UdpServer server = world_->Serve(at().internet);
  UdpServer other = world_->Serve(at().internet_too);
  policy::EgressPolicy egress = All(policy::EgressMode::kMasquerade);
  egress.limits = {.connections = 5, .connections_per_destination = 3};
  Set(With(egress));
  std::list<UdpFlow> flows;
  const auto open = [&](UdpServer& to, const ip::Address& address) {
    flows.push_back(world_->Flow(address));
    return Ask(flows.back(), to) == Node();
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(open(server, at().internet)) << i;
  EXPECT_FALSE(open(server, at().internet));
  EXPECT_TRUE(open(other, at().internet_too));
  EXPECT_TRUE(open(other, at().internet_too));
  EXPECT_FALSE(open(other, at().internet_too));
  EXPECT_EQ(Ask(flows.front(), server), Node()) << "those that are open go on";
  EXPECT_EQ(Counted("drop/egress-limit-p"), 2U);
  egress.limits = {.new_connections_per_second = 4};
  Set(With(egress));
  int passed = 0;
  for (int i = 0; i < 12; ++i) {
    flows.push_back(world_->Flow(at().internet));
    EXPECT_TRUE(flows.back().Send());
  }
  while (!server.AnswerOne().empty()) ++passed;
  // This is a burst of four, and what the time for twelve packets allows.
  EXPECT_GE(passed, 4);
  EXPECT_LT(passed, 12);
}

TEST_P(EgressFlowTest, OnceItsConnectionsAreDeletedTheNextPodMeetsNeitherAnswersNorLimits) {
  policy::EgressPolicy egress = All(policy::EgressMode::kMasquerade);
  egress.limits = {.connections = 2};
  Set(With(egress));
  UdpServer server = world_->Serve(at().internet);
  UdpFlow last = world_->Flow(at().internet);
  UdpFlow too = world_->Flow(at().internet);
  EXPECT_EQ(Ask(last, server), Node());
  EXPECT_EQ(Ask(too, server), Node());
  UdpFlow next = world_->Flow(at().internet);
  EXPECT_EQ(Ask(next, server), "nothing") << "two connections are there already";
  EXPECT_TRUE(last.Send());
  const auto table = NetlinkConntrackTable::Open();
  ASSERT_TRUE(table.ok()) << table.status();
  const auto outcome = (*table)->DeleteConnectionsOf({at().pod});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.deleted, 2U);
  EXPECT_EQ(server.AnswerOne(), Node()) << "to what was sent before";
  EXPECT_FALSE(last.Receive()) << "nobody translates it back";
  EXPECT_EQ(Ask(next, server), Node());
}

TEST_P(EgressFlowTest, APolicyThatCutsEndsFlowsThatBeganBeforeIt) {
  UdpServer server = world_->Serve(at().internet);
  UdpServer other = world_->Serve(at().internet_too);
  const auto table = NetlinkConntrackTable::Open();
  ASSERT_TRUE(table.ok()) << table.status();
  const auto cut = [&](const Policy& policy) {
    const ClassMap classes = ClassMap::Compile(policy, {}).value();
    const EgressRules rules =
        EgressRules::Compile(policy, classes, AllGateways(), settings_).value();
    return (*table)->Cut({policy, classes, rules, {{pod_.host_link, pod_}}},
                         ConntrackTable::Act::kCut);
  };
  for (const policy::EgressMode mode :
       {policy::EgressMode::kMasquerade, policy::EgressMode::kRouted}) {
    SCOPED_TRACE(static_cast<int>(mode));
    ASSERT_TRUE((*table)->DeleteConnectionsOf({at().pod}).status.ok()) << "of the mode before";
    Set(With(All(mode)));
    UdpFlow flow = world_->Flow(at().internet);
    UdpFlow admitted = world_->Flow(at().internet_too);
    const std::string from = Ask(flow, server);
    ASSERT_NE(from, "nothing");
    ASSERT_EQ(Ask(admitted, other), from);
    policy::EgressPolicy closed = All(policy::EgressMode::kDrop);
    closed.destination_cidrs = {ip::Prefix::Host(at().internet)};
    Set(With(closed));
    EXPECT_EQ(cut(With(closed)).marked, 0U);
    EXPECT_EQ(Ask(flow, server), from) << "it keeps, unless it says otherwise";

    ASSERT_TRUE(flow.Send());  // This is what the server answers once the flow is cut.
    closed.established = policy::Established::kCut;
    Set(With(closed));
    const auto outcome = cut(With(closed));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.marked, 1U);
    EXPECT_EQ(server.AnswerOne(), from);
    EXPECT_FALSE(flow.Receive()) << "from outside";
    EXPECT_EQ(Ask(flow, server), "nothing") << "from the pod";
    EXPECT_EQ(Ask(admitted, other), from) << "what the policy admits goes on";
    EXPECT_EQ(cut(With(closed)).found.egress, 0U) << "what is cut is cut";

    Set(With(All(mode)));
    EXPECT_EQ(cut(With(All(mode))).released, 1U);
    EXPECT_EQ(Ask(flow, server), from) << "decided about anew";
  }
  EXPECT_EQ(Counted("drop/cut"), 4U);
  EXPECT_EQ(Counted("drop/leak"), 0U);
}

TEST_P(EgressFlowTest, WithoutPolicyNothingIsLeftInTheKernel) {
  Set(With(ByGateways(policy::EgressMode::kDrop)));
  settings_ = {};
  Set(NetworkPolicy());
  EXPECT_TRUE(world_->tables().ReadRules(kSpokeTable).value().empty());
  EXPECT_EQ(world_->tables().ReadSet(kSpokeTable, "egress_pods4").status().code(),
            absl::StatusCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Families, EgressFlowTest,
                         testing::Values(ip::Family::kV4, ip::Family::kV6), [](const auto& test) {
                           return test.param == ip::Family::kV4 ? "V4" : "V6";
                         });

}  // namespace
}  // namespace spoke::netagent
