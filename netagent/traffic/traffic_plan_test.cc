#include "netagent/traffic/traffic_plan.h"

#include <algorithm>
#include <cstddef>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/claims.h"
#include "netagent/nftables/testing/rule_machine.h"
#include "netagent/traffic/traffic_rules.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(const std::string& text) { return ip::Prefix::Parse(text).value(); }

constexpr uint32_t kUplink = 2;

ClassMap Classes(policy::ClusterNetwork network) {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main", .bytes = {}, .value = std::move(network)};
  return ClassMap::Compile(policy, {}).value();
}

TEST(HotBlocksTest, AreTheLargestThatAreOfTheClusterAlone) {
  EXPECT_THAT(
      HotBlocks(Classes({.cluster = policy::Blocks({"10.0.0.0/8", "fd00::/16"})}), ip::Family::kV4),
      ElementsAre(P("10.0.0.0/8")));
  // A block with something else inside is never one.
  EXPECT_THAT(HotBlocks(Classes({.cluster = policy::Blocks({"10.0.0.0/8"}),
                                 .hub = policy::Blocks({"10.200.0.0/16"})}),
                        ip::Family::kV4),
              ElementsAre(P("10.0.0.0/9"), P("10.128.0.0/10"), P("10.224.0.0/11")));
  EXPECT_TRUE(HotBlocks(Classes({}), ip::Family::kV6).empty());
}

TEST(NamespaceCounterTest, IsReadAsItIsWritten) {
  const auto parsed = ParseNamespaceCounter("ns/web/peer-spoke/received");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->pod_namespace, "web");
  EXPECT_EQ(parsed->class_text, "peer-spoke");
  EXPECT_EQ(parsed->direction, Direction::kReceived);
  // The counter is of a pod whose namespace nobody knows.
  EXPECT_EQ(ParseNamespaceCounter("ns//17/sent")->pod_namespace, "");
  for (const char* none : {"", "ns/", "ns/web/sent", "ns/web/x/other", "drop/unknown-source"}) {
    EXPECT_FALSE(ParseNamespaceCounter(none)) << none;
  }
}

TEST(LabelsTest, AreReadFromCountersAndStrangersArePassedOver) {
  const TrafficLabels labels = ReadLabels({{"schema/3", 0, 0},
                                           {"epoch/1000", 0, 0},
                                           {"class/16/a/b", 0, 0},
                                           {"class/x/a", 0, 0},
                                           {"pod/10.0.1.7/web", 0, 0},
                                           {"pod/fd00::7/db", 0, 0},
                                           {"pod/nonsense/x", 0, 0},
                                           {"pod/10.0.1.8", 0, 0}});
  EXPECT_EQ(labels.schema, kTrafficSchema);
  EXPECT_EQ(labels.epoch, absl::FromUnixSeconds(1000));
  EXPECT_EQ(labels.groups, (std::map<std::string, ClassNumber>{{"a/b", 16}}));
  EXPECT_EQ(labels.namespaces,
            (std::map<ip::Address, std::string>{{A("10.0.1.7"), "web"}, {A("fd00::7"), "db"}}));
}

TEST(DecodeTest, TakesKeysOfTheSetsKindOnly) {
  for (const CountingSet& set : CountingSets()) {
    const bool v4 = set.family == ip::Family::kV4;
    const ip::Address address = v4 ? A("10.0.1.7") : A("fd00::7");
    const nft::Bytes bytes = nft::NetworkOrder(address);
    nft::Bytes key = bytes;
    if (set.key == CountingSet::Key::kIndexAddress) key = nft::Join({nft::HostOrder(9), bytes});
    if (set.key == CountingSet::Key::kAddressClass) {
      key = nft::Join({bytes, nft::HostOrder(kStorage)});
    }
    const auto counted = DecodeCounted(set, {.element = {.key = key}, .packets = 2, .bytes = 3});
    ASSERT_TRUE(counted) << set.name;
    EXPECT_EQ(counted->address, address);
    EXPECT_EQ(counted->number, set.key == CountingSet::Key::kAddressClass ? kStorage : kCluster);
    key.push_back(0);
    EXPECT_FALSE(DecodeCounted(set, {.element = {.key = key}})) << set.name;
    EXPECT_FALSE(DecodeCounted(set, {})) << set.name;
  }
}

TEST(FoldTest, MovesElementsIntoCountersInOneTransaction) {
  const ClassMap classes = Classes({.cluster = policy::Blocks({"10.0.0.0/8"})});
  TrafficReadings readings;
  for (CountingSet& set : CountingSets()) {
    readings.pods.push_back({std::move(set), {}});
  }
  const auto by_class = [](const char* address, ClassNumber number) {
    return nft::Element{.key = nft::Join({nft::NetworkOrder(A(address)), nft::HostOrder(number)})};
  };
  for (SetReading& reading : readings.pods) {
    if (reading.set.name != "sent4") continue;
    reading.elements = {{by_class("10.0.1.7", kInternet), 1, 10},
                        {by_class("10.0.1.8", kInternet), 2, 20},
                        {by_class("10.0.1.9", kInternet), 4, 40}};
  }
  readings.counters = {{"ns/web/internet/sent", 100, 1000}};
  readings.names = {{"pod/10.0.1.7/web", 0, 0}, {"pod/10.0.1.9/web", 0, 0}};
  nft::Transaction transaction;
  AppendFold({{A("10.0.1.7"), "web"}, {A("10.0.1.8"), "web"}}, readings, classes, transaction);
  uint64_t bytes = 0;
  size_t deleted = 0;
  std::vector<std::string> gone;
  for (const nft::Step& step : transaction.steps) {
    if (const auto* add = std::get_if<nft::AddCounter>(&step.change)) bytes += add->seed.bytes;
    if (const auto* set = std::get_if<nft::DeleteElements>(&step.change)) {
      deleted += set->elements.size();
    }
    if (const auto* counter = std::get_if<nft::DeleteCounter>(&step.change)) {
      gone.push_back(counter->name);
    }
  }
  EXPECT_EQ(bytes, 1030U);
  EXPECT_EQ(deleted, 2U);
  EXPECT_THAT(gone, ElementsAre("ns/web/internet/sent", "pod/10.0.1.7/web"));
}

TEST(TrafficTableTest, TracksConnectionsOnlyForTheFastPath) {
  const ClassMap classes = Classes({.cluster = policy::Blocks({"10.0.0.0/8"})});
  for (const bool mark : {false, true}) {
    bool tracks = false;
    for (const nft::Rule& rule :
         TrafficRules(classes, {.mark_translated = mark, .uplink = kUplink})) {
      for (const nft::Expression& expression : rule.expressions) {
        tracks = tracks || std::holds_alternative<nft::LoadCt>(expression);
      }
    }
    EXPECT_EQ(tracks, mark);
  }
}

// Makes a node with two pods, whose rules know of `uplink`.
RuleMachine Node(const ClassMap& classes, uint32_t uplink) {
  RuleMachine machine;
  nft::Transaction transaction;
  AppendTrafficTable(classes, {.uplink = uplink}, {}, transaction);
  for (const uint32_t number : {7U, 8U}) {
    const TrafficPod pod{.host_link = fmt::format("spk{}", number),
                         .host_index = number,
                         .addresses = {A(fmt::format("10.0.1.{}", number)),
                                       A(fmt::format("fd00:0:0:1::{}", number))},
                         .pod_namespace = "web"};
    AppendTrafficPod(pod, transaction);
  }
  machine.Apply(transaction);
  return machine;
}

TEST(TrafficTableTest, TheShortWayByTheUplinkSaysNothingElseThanTheLongOne) {
  const ClassMap classes =
      Classes({.cluster = policy::Blocks({"10.0.0.0/12", "20.1.0.0/24", "fd00::/16"}),
               .hub = policy::Blocks({"10.200.0.0/16"}),
               .peer_spoke = policy::Blocks({"10.96.0.0/11", "fc00::/16"})});
  RuleMachine without = Node(classes, 0);
  RuleMachine with = Node(classes, kUplink);
  ASSERT_GT(with.Rules().size(), without.Rules().size());
  struct Device {
    const char* name;
    uint32_t index;
  };
  constexpr Device kDevices[] = {
      {"eth0", kUplink}, {"eth1", 3}, {"spk7", 7}, {"spk8", 8}, {"spk9", 9}};
  const std::vector<ip::Address> v4 = {A("10.0.1.7"),  A("10.0.1.8"), A("10.0.1.9"),
                                       A("10.3.0.1"),  A("20.1.0.5"), A("10.200.0.1"),
                                       A("10.96.0.1"), A("8.8.8.8")};
  const std::vector<ip::Address> v6 = {A("fd00:0:0:1::7"), A("fd00:0:0:1::8"), A("fd00:0:0:1::9"),
                                       A("fd00:5::1"),     A("fc00::1"),       A("2001:db8::1"),
                                       A("fe80::1")};
  const auto run = [&](RuleMachine& machine, const TestPacket& packet) {
    TestPacket copy = packet;
    machine.Run(nft::Hook::kForward, copy);
    return copy.dropped;
  };
  for (const std::vector<ip::Address>* addresses : {&v4, &v6}) {
    for (const ip::Address& source : *addresses) {
      for (const ip::Address& destination : *addresses) {
        for (const Device& in : kDevices) {
          for (const Device& out : kDevices) {
            // Pods' addresses are routed to their links.
            const bool to_pod = out.index >= 7;
            const bool pods = destination == addresses->at(0) || destination == addresses->at(1);
            if (pods && (!to_pod || destination != addresses->at(out.index == 8 ? 1 : 0))) continue;
            const TestPacket packet{.in = in.name,
                                    .out = out.name,
                                    .source = source,
                                    .destination = destination,
                                    .in_index = in.index,
                                    .out_index = out.index};
            EXPECT_EQ(run(with, packet), run(without, packet))
                << in.name << " " << source.ToString() << " to " << out.name << " "
                << destination.ToString();
          }
        }
      }
    }
  }
  EXPECT_EQ(with.Seen(), without.Seen());
  EXPECT_EQ(with.counters(), without.counters());
  EXPECT_GT(with.Counted("drop/unknown-source"), 0U);
}

TEST(TrafficTableTest, ThereIsNoShortWayPastTheMarkOfWhatWasTranslated) {
  const ClassMap classes = Classes({.cluster = policy::Blocks({"10.0.0.0/8"})});
  const auto count = [&](const TrafficPlanSettings& settings) {
    return TrafficRules(classes, settings).size();
  };
  EXPECT_EQ(count({.mark_translated = true, .uplink = kUplink}), count({.mark_translated = true}));
  EXPECT_GT(count({.uplink = kUplink}), count({}));
}

TEST(TrafficTableTest, ChainsOfClassesComeAndGoWithThem) {
  const ClassMap with_hub =
      Classes({.cluster = policy::Blocks({"10.0.0.0/8"}), .hub = policy::Blocks({"10.2.0.0/16"})});
  const ClassMap with_peer = Classes(
      {.cluster = policy::Blocks({"10.0.0.0/8"}), .peer_spoke = policy::Blocks({"10.3.0.0/16"})});
  for (const bool known : {false, true}) {
    RuleMachine machine;
    nft::Transaction transaction;
    AppendTrafficTable(with_hub, {}, {}, transaction);
    machine.Apply(transaction);
    EXPECT_TRUE(machine.HasChain("destination4_hub"));
    EXPECT_FALSE(machine.HasChain("destination4_peer-spoke"));
    transaction.steps.clear();
    AppendTrafficTable(with_peer, {},
                       {.rules = machine.Rules(), .classes = known ? &with_hub : nullptr},
                       transaction);
    machine.Apply(transaction);
    EXPECT_FALSE(machine.HasChain("destination4_hub"));
    EXPECT_FALSE(machine.HasChain("source6_hub"));
    EXPECT_TRUE(machine.HasChain("source4_peer-spoke"));
    for (const auto& [set, keys] : ExpectedKeys(with_peer, {})) {
      EXPECT_EQ(machine.SizeOf(set), keys.size()) << set << (known ? " known" : "");
    }
  }
}

TEST(TrafficTableTest, WhatTheAgentTriesOfPeerSpokesIsDroppedAndIsNoLeak) {
  RuleMachine machine;
  nft::Transaction transaction;
  AppendTrafficTable(Classes({.hub = policy::Blocks({"10.2.0.0/16"}),
                              .peer_spoke = policy::Blocks({"10.3.0.0/16", "fd03::/16"})}),
                     {}, {}, transaction);
  machine.Apply(transaction);
  const auto drops = [&](const char* source, const char* destination, uint32_t mark) {
    TestPacket packet{
        .out = "eth0", .source = A(source), .destination = A(destination), .mark = mark};
    machine.Run(nft::Hook::kOutput, packet);
    return packet.dropped;
  };
  EXPECT_TRUE(drops("10.1.0.4", "10.3.0.1", claims::kReachProbeMark));
  EXPECT_TRUE(drops("fd01::4", "fd03::1", claims::kReachProbeMark));
  EXPECT_EQ(machine.Counted("drop/peer-spoke-sent"), 0U);
  EXPECT_FALSE(drops("10.1.0.4", "10.2.0.1", claims::kReachProbeMark)) << "the hub";
  EXPECT_TRUE(drops("10.1.0.4", "10.3.0.1", 0));
  EXPECT_TRUE(drops("10.1.0.4", "10.3.0.1", claims::kReachProbeMark | claims::kTranslatedMark));
  EXPECT_EQ(machine.Counted("drop/peer-spoke-sent"), 2U);
}

TEST(TrafficTableTest, OnlyWhatDiffersIsChangedWhereTheClassesAreKnown) {
  const ClassMap before =
      Classes({.cluster = policy::Blocks({"10.0.0.0/8"}), .hub = policy::Blocks({"11.2.0.0/16"})});
  const ClassMap after =
      Classes({.cluster = policy::Blocks({"10.0.0.0/8"}), .hub = policy::Blocks({"11.3.0.0/16"})});
  nft::Transaction transaction;
  AppendTrafficTable(after, {}, {.classes = &before}, transaction);
  size_t deleted = 0;
  size_t added = 0;
  for (const nft::Step& step : transaction.steps) {
    // The steps change elements and nothing else: the same classes have the same rules.
    EXPECT_TRUE(std::holds_alternative<nft::DeleteElements>(step.change) ||
                std::holds_alternative<nft::AddElements>(step.change));
    if (const auto* gone = std::get_if<nft::DeleteElements>(&step.change)) {
      deleted += gone->elements.size();
    }
    if (const auto* more = std::get_if<nft::AddElements>(&step.change)) {
      added += more->elements.size();
    }
  }
  // Each is in a map by destination and in one by source.
  EXPECT_EQ(deleted, 2U);
  EXPECT_EQ(added, 2U);
}

TEST(TrafficTableTest, RulesAreMadeAnewWhereTheyWouldBeOthers) {
  const ClassMap before = Classes({.cluster = policy::Blocks({"10.0.0.0/8"})});
  const ClassMap with_hub =
      Classes({.cluster = policy::Blocks({"10.0.0.0/8"}), .hub = policy::Blocks({"11.2.0.0/16"})});
  const ClassMap other_block = Classes({.cluster = policy::Blocks({"10.0.0.0/9"})});
  const TrafficPlanSettings marks{.mark_translated = true};
  const TrafficPlanSettings by_uplink{.uplink = kUplink};
  const auto rules = [&](const ClassMap& classes, const TrafficPlanSettings& settings) {
    nft::Transaction transaction;
    AppendTrafficTable(classes, settings, {.classes = &before}, transaction);
    return std::count_if(transaction.steps.begin(), transaction.steps.end(), [](const auto& step) {
      return std::holds_alternative<nft::AddRule>(step.change);
    });
  };
  const auto all = [](const ClassMap& classes, const TrafficPlanSettings& settings) {
    return static_cast<ptrdiff_t>(TrafficRules(classes, settings).size());
  };
  EXPECT_EQ(rules(before, {}), 0);
  for (const TrafficPlanSettings& settings : {marks, by_uplink}) {
    EXPECT_EQ(rules(before, settings), all(before, settings));
  }
  EXPECT_EQ(rules(with_hub, {}), all(with_hub, {}));
  EXPECT_EQ(rules(other_block, {}), all(other_block, {}));
}

TEST(TrafficTableTest, AGroupThatIsNewIsNamedEvenWhereItHasNoAddress) {
  Policy policy{.version = 1};
  const ClassMap before = ClassMap::Compile(policy, {}).value();
  policy.entries["DestinationGroup/far"] = {
      .key = "DestinationGroup/far", .bytes = {}, .value = policy::DestinationGroup{}};
  const ClassMap after = ClassMap::Compile(policy, {}).value();
  nft::Transaction transaction;
  AppendTrafficTable(after, {}, {.classes = &before}, transaction);
  ASSERT_EQ(transaction.steps.size(), 1U);
  EXPECT_EQ(std::get<nft::AddCounter>(transaction.steps[0].change).name, "class/16/far");
  transaction.steps.clear();
  AppendTrafficTable(after, {}, {.classes = &after}, transaction);
  EXPECT_TRUE(transaction.empty());
}

TEST(TrafficTableTest, EveryRuleHasACommentOfItsOwn) {
  std::set<std::string> comments;
  for (const nft::Rule& rule :
       TrafficRules(Classes({.cluster = policy::Blocks({"10.0.0.0/8"})}), {.uplink = kUplink})) {
    EXPECT_TRUE(comments.insert(rule.comment).second) << rule.comment;
    EXPECT_LE(rule.comment.size(), 127U);
  }
}

}  // namespace
}  // namespace spoke::netagent
