#include "netagent/shaping/shaping_plan.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/shaping/shape_tree.h"
#include "netagent/shaping/shaping_check.h"
#include "tests/support/random_seed.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using units::BitRate;
using units::ByteCount;
using units::ByteRate;

constexpr BitRate kMbit{1'000'000};
constexpr auto kIngress = TrafficDirection::kIngress;
constexpr auto kEgress = TrafficDirection::kEgress;
constexpr ClassNumber kMirror = 16;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }

TrafficPod Pod(uint32_t index, const std::string& pod_namespace = "web",
               cni::InternetOptions options = {}) {
  return {.host_link = fmt::format("spk{}", index),
          .host_index = index,
          .pod_namespace = pod_namespace,
          .pod_name = fmt::format("pod-{}", index),
          .internet = options};
}

// A policy, pods and grants, and the plan they come to.
class World {
 public:
  World() {
    Put("ClusterNetwork/main",
        policy::ClusterNetwork{.cluster = policy::Blocks({"10.0.0.0/8", "fd00::/16"}),
                               .storage = policy::Blocks({"20.60.0.0/16"})});
    Put("Team/vision", policy::Team{.namespaces = {"vision"}});
    Put("Team/speech", policy::Team{.namespaces = {"speech"}});
    Put("DestinationGroup/mirror",
        policy::DestinationGroup{.cidrs = policy::Blocks({"151.101.0.0/16"})});
  }

  template <typename T>
  void Put(const std::string& key, T value) {
    policy.entries[key] = {.key = key, .bytes = {}, .value = std::move(value)};
  }
  void PutBudget(const std::string& name, bool egress, bool shadow) {
    Put("BandwidthBudget/" + name, policy::BandwidthBudget{.egress = egress,
                                                           .teams = {"vision"},
                                                           .floor = kMbit,
                                                           .refresh = absl::Seconds(5),
                                                           .hold = absl::Seconds(300),
                                                           .half_life = absl::Seconds(30),
                                                           .shadow = shadow});
  }
  void Want(uint32_t index, BitRate rate, TrafficDirection direction = kIngress) {
    demand[{.host_link = fmt::format("spk{}", index),
            .host_index = index,
            .scope = kInternet,
            .direction = direction}] = rate;
  }

  const ShapingPlan& Plan() {
    const auto map = ClassMap::Compile(policy, {});
    EXPECT_TRUE(map.ok()) << map.status();
    const auto rules = ShapingRules::Resolve(policy, map->groups());
    EXPECT_TRUE(rules.ok()) << rules.status();
    plan = PlanShaping({.rules = *rules,
                        .classes = *map,
                        .pods = pods,
                        .grants = grants,
                        .learned = learned,
                        .demand = demand},
                       plan);
    return plan;
  }

  const PlannedFlow& Flow(uint32_t index, TrafficDirection direction,
                          ClassNumber scope = kInternet) const {
    static const PlannedFlow none;
    const auto found = std::find_if(plan.flows.begin(), plan.flows.end(), [&](const auto& flow) {
      return flow.key.host_index == index && flow.key.direction == direction &&
             flow.key.scope == scope;
    });
    EXPECT_NE(found, plan.flows.end()) << index;
    return found == plan.flows.end() ? none : *found;
  }
  ShapeClass Class(TrafficDirection direction, ShapeClassId id) const {
    for (const ShapeClass& shape : plan.tables.trees[static_cast<size_t>(direction)]) {
      if (shape.id == id) return shape;
    }
    return {};
  }
  ShapeClass ClassOf(uint32_t index, TrafficDirection direction) const {
    return Class(direction, Flow(index, direction).class_id);
  }

  Policy policy{.version = 1};
  std::vector<TrafficPod> pods;
  std::vector<GrantInForce> grants;
  std::map<ip::Address, ClassNumber> learned;
  std::map<ShapedFlowKey, BitRate> demand;
  ShapingPlan plan;
};

GrantInForce GrantFor(const std::string& budget, const std::string& team, BitRate rate,
                      uint32_t connections = 0) {
  return {.budget = budget,
          .team = team,
          .rate = rate,
          .held = rate,
          .connections = connections,
          .mode = GrantMode::kGranted};
}

TEST(ShapingRates, FramesHaveRoomForThePayload) {
  EXPECT_EQ(FrameRate(BitRate()), ByteRate());
  EXPECT_EQ(FrameRate(BitRate(1448 * 8)), ByteRate(1514));
  EXPECT_EQ(FrameRate(BitRate(1)), ByteRate(1));
  EXPECT_EQ(FrameRate(100 * kMbit), ByteRate(13'069'752));
  EXPECT_EQ(PayloadRate(ByteRate(1514)), BitRate(1448 * 8));
  EXPECT_EQ(PayloadRate(ByteRate(~uint64_t{0})), BitRate(~uint64_t{0}));
  testing_support::Random random;
  for (int i = 0; i < 1000; ++i) {
    const BitRate rate(random.Between(0, (1'000'000 * kMbit).count()));
    EXPECT_GE(PayloadRate(FrameRate(rate)), rate);
    EXPECT_LE(PayloadRate(FrameRate(rate)), rate + BitRate(8));
  }
}

TEST(ShapingPlan, WhereSomethingIsLimitedTheScopesAreThereBeforeTheFirstPod) {
  World world;
  world.Put("BandwidthLimit/all", policy::BandwidthLimit{.pod_ingress = 100 * kMbit});
  world.pods = {Pod(1)};
  const ShapingTables with = world.Plan().tables;
  world.pods = {};
  const ShapingTables without = world.Plan().tables;
  EXPECT_EQ(without.scopes, with.scopes);
  EXPECT_THAT(without.scopes, testing::Not(IsEmpty()));
  EXPECT_THAT(without.flows, IsEmpty());
  EXPECT_THAT(without.trees[0], IsEmpty());
}

TEST(ShapingPlan, WithoutLimitsThereIsNothingAtAll) {
  World world;
  world.pods = {Pod(1), Pod(2, "vision")};
  world.learned = {{A("1.2.3.4"), kMirror}};
  EXPECT_EQ(world.Plan().tables, ShapingTables());
  EXPECT_THAT(world.plan.flows, IsEmpty());
}

TEST(ShapingPlan, OnlyPodsWithOptionsAreShaped) {
  World world;
  world.pods = {Pod(1), Pod(2, "web", {.ingress = 100 * kMbit})};
  const ShapingPlan& plan = world.Plan();
  ASSERT_THAT(plan.flows, SizeIs(1));
  EXPECT_EQ(world.Flow(2, kIngress).limit, 100 * kMbit);
  EXPECT_EQ(world.Flow(2, kIngress).pod_name, "pod-2");
  const ShapeClass leaf = world.ClassOf(2, kIngress);
  EXPECT_EQ(leaf.rate, FrameRate(100 * kMbit));
  EXPECT_EQ(leaf.ceil, leaf.rate);
  EXPECT_EQ(leaf.queue, ByteCount(leaf.rate.count() / 20));
  const ShapeClass scope = world.Class(kIngress, leaf.parent);
  EXPECT_EQ(scope.ceil, kUnlimitedRate);
  EXPECT_EQ(scope.queue, ByteCount());
  EXPECT_EQ(scope.parent, 0U);
  EXPECT_THAT(plan.tables.trees[1], IsEmpty()) << "the other direction has no options";
}

TEST(ShapingPlan, NodesTotalIsSharedByAllPods) {
  World world;
  world.Put("BandwidthLimit/node", policy::BandwidthLimit{.node_ingress = 1000 * kMbit});
  world.pods = {Pod(1), Pod(2, "web", {.ingress = 100 * kMbit}), Pod(3, "web", {.weight = 3})};
  for (const uint32_t index : {1U, 2U, 3U}) world.Want(index, 2000 * kMbit);
  world.Plan();
  const ShapeClass small = world.ClassOf(2, kIngress);
  EXPECT_EQ(small.ceil, FrameRate(100 * kMbit));
  const ShapeClass one = world.ClassOf(1, kIngress);
  const ShapeClass heavy = world.ClassOf(3, kIngress);
  EXPECT_EQ(one.ceil, FrameRate(1000 * kMbit)) << "it may use what others leave";
  EXPECT_NEAR(static_cast<double>(heavy.rate.count()), 3.0 * static_cast<double>(one.rate.count()),
              3);
  EXPECT_EQ(heavy.quantum, 3 * one.quantum);
  EXPECT_EQ(world.Class(kIngress, one.parent).rate, FrameRate(1000 * kMbit));
  EXPECT_LE(one.rate + heavy.rate + small.rate, FrameRate(1000 * kMbit));
}

TEST(ShapingPlan, TeamsTotalIsOfItsPodsOnly) {
  World world;
  world.Put("BandwidthLimit/team",
            policy::BandwidthLimit{.teams = {"vision"}, .node_egress = 200 * kMbit});
  world.pods = {Pod(1, "vision"), Pod(2, "vision"), Pod(3, "speech")};
  EXPECT_THAT(world.Plan().flows, SizeIs(2));
  const ShapeClass team = world.Class(kEgress, world.ClassOf(1, kEgress).parent);
  EXPECT_EQ(team.ceil, FrameRate(200 * kMbit));
  EXPECT_EQ(world.ClassOf(2, kEgress).parent, team.id);
  EXPECT_EQ(world.Flow(1, kEgress).team, "vision");
  EXPECT_EQ(world.Flow(1, kEgress).budget, "");
}

TEST(ShapingPlan, EnforcedBudgetHoldsEveryPodToItsTeamsGrant) {
  World world;
  world.PutBudget("down", false, false);
  world.pods = {Pod(1, "vision"), Pod(2, "speech"), Pod(3, "elsewhere"), Pod(4, "vision")};
  world.grants = {GrantFor("down", "vision", 300 * kMbit), GrantFor("down", "*", 50 * kMbit)};
  EXPECT_THAT(world.Plan().flows, SizeIs(4)) << "towards the pods only";
  const ShapeClass vision = world.Class(kIngress, world.ClassOf(1, kIngress).parent);
  const ShapeClass others = world.Class(kIngress, world.ClassOf(2, kIngress).parent);
  EXPECT_EQ(vision.rate, FrameRate(300 * kMbit));
  EXPECT_EQ(vision.ceil, vision.rate);
  EXPECT_EQ(others.ceil, FrameRate(50 * kMbit));
  EXPECT_EQ(world.ClassOf(3, kIngress).parent, others.id);
  EXPECT_EQ(world.ClassOf(4, kIngress).parent, vision.id);
  EXPECT_EQ(world.Flow(1, kIngress).team, "vision");
  EXPECT_EQ(world.Flow(3, kIngress).team, "*");
  EXPECT_EQ(world.Flow(3, kIngress).budget, "down");
  EXPECT_EQ(world.Flow(1, kIngress).limit, BitRate());
}

TEST(ShapingPlan, TeamsLimitAndItsGrantBothHold) {
  World world;
  world.PutBudget("down", false, false);
  world.Put("BandwidthLimit/teams",
            policy::BandwidthLimit{.teams = {"vision", "speech"}, .node_ingress = 20 * kMbit});
  world.pods = {Pod(1, "vision"), Pod(2, "speech"), Pod(3, "elsewhere")};
  world.grants = {GrantFor("down", "vision", 300 * kMbit), GrantFor("down", "*", 50 * kMbit)};
  world.Plan();
  EXPECT_EQ(world.Class(kIngress, world.ClassOf(1, kIngress).parent).ceil, FrameRate(20 * kMbit));
  const ShapeClass speech = world.Class(kIngress, world.ClassOf(2, kIngress).parent);
  EXPECT_EQ(speech.ceil, FrameRate(20 * kMbit));
  EXPECT_EQ(world.Class(kIngress, speech.parent).ceil, FrameRate(50 * kMbit));
  EXPECT_EQ(world.ClassOf(3, kIngress).parent, speech.parent);
}

TEST(ShapingPlan, GrantOfNothingLeavesAClassThatTheKernelTakes) {
  World world;
  world.PutBudget("down", false, false);
  world.pods = {Pod(1, "vision"), Pod(2, "speech")};
  world.grants = {GrantFor("down", "vision", BitRate())};
  world.Plan();
  for (const uint32_t index : {1U, 2U}) {
    EXPECT_EQ(world.Class(kIngress, world.ClassOf(index, kIngress).parent).ceil, ByteRate(1000));
    EXPECT_GE(world.ClassOf(index, kIngress).rate, ByteRate(1));
  }
}

TEST(ShapingPlan, WhatIsInShadowIsCountedAndNotLed) {
  World world;
  world.PutBudget("down", false, true);
  world.Put(
      "BandwidthLimit/trial",
      policy::BandwidthLimit{.pod_ingress = 5 * kMbit, .node_egress = 90 * kMbit, .shadow = true});
  world.pods = {Pod(1, "vision"), Pod(2, "web")};
  world.grants = {GrantFor("down", "vision", 300 * kMbit), GrantFor("down", "*", 50 * kMbit)};
  const ShapingPlan& plan = world.Plan();
  EXPECT_THAT(plan.flows, SizeIs(4));
  for (const PlannedFlow& flow : plan.flows) EXPECT_EQ(flow.class_id, 0U);
  EXPECT_THAT(plan.tables.trees[0], IsEmpty());
  EXPECT_EQ(world.Flow(1, kIngress).shadow, 5 * kMbit);
  EXPECT_EQ(world.Flow(1, kIngress).limit, BitRate());
  EXPECT_EQ(world.Flow(1, kIngress).budget, "down");
  std::vector<std::pair<BitRate, size_t>> bounds;
  for (const ShadowBound& bound : plan.shadow_bounds) {
    bounds.emplace_back(bound.rate, bound.flows.size());
  }
  EXPECT_THAT(bounds,
              testing::UnorderedElementsAre(std::pair(300 * kMbit, 1U), std::pair(50 * kMbit, 1U),
                                            std::pair(90 * kMbit, 2U)));
}

TEST(ShapingPlan, ShadowBesideAnEnforcedLimitIsCountedInItsClass) {
  World world;
  world.Put("BandwidthLimit/trial",
            policy::BandwidthLimit{.pod_ingress = 5 * kMbit, .shadow = true});
  world.Put("BandwidthLimit/node", policy::BandwidthLimit{.node_ingress = 500 * kMbit});
  world.pods = {Pod(1)};
  world.Plan();
  EXPECT_EQ(world.Flow(1, kIngress).shadow, 5 * kMbit);
  EXPECT_EQ(world.ClassOf(1, kIngress).ceil, FrameRate(500 * kMbit));
}

TEST(ShapingPlan, NewConnectionsAreHeldBackWhereTheyAreOpened) {
  World world;
  world.PutBudget("down", false, false);
  world.pods = {Pod(1, "vision"), Pod(2, "vision"), Pod(3, "speech")};
  world.grants = {GrantFor("down", "vision", 300 * kMbit, 100), GrantFor("down", "*", 50 * kMbit)};
  const ShapingPlan& plan = world.Plan();
  EXPECT_THAT(plan.tables.buckets, ElementsAre(ConnectionBucket{.id = 1, .per_second = 100}));
  EXPECT_THAT(plan.flows, SizeIs(5));
  EXPECT_EQ(world.Flow(1, kEgress).class_id, 0U);
  for (const ShapedFlow& flow : plan.tables.flows) {
    EXPECT_EQ(flow.bucket, flow.direction == kEgress ? 1U : 0U);
  }
}

TEST(ShapingPlan, OfBothDirectionsBudgetsTheOneWithFewerConnectionsHolds) {
  World world;
  world.PutBudget("down", false, false);
  world.PutBudget("up", true, false);
  world.pods = {Pod(1, "vision")};
  world.grants = {GrantFor("down", "vision", kMbit, 100), GrantFor("up", "vision", kMbit, 30)};
  EXPECT_THAT(world.Plan().tables.buckets,
              ElementsAre(ConnectionBucket{.id = 1, .per_second = 30}));
  world.grants[1].connections = 300;
  EXPECT_THAT(world.Plan().tables.buckets,
              ElementsAre(ConnectionBucket{.id = 2, .per_second = 100}));
}

TEST(ShapingPlan, ShadowBudgetCountsConnectionsAndRefusesNone) {
  World world;
  world.PutBudget("down", false, true);
  world.pods = {Pod(1, "vision")};
  world.grants = {GrantFor("down", "vision", kMbit, 100)};
  EXPECT_THAT(world.Plan().flows, SizeIs(2));
  EXPECT_THAT(world.plan.tables.buckets, IsEmpty());
}

TEST(ShapingPlan, ScopesAreTheInternetAndGroupsWithRules) {
  World world;
  world.pods = {Pod(1, "web", {.ingress = kMbit})};
  const auto number_of = [&](const std::string& text) -> ClassNumber {
    for (const ClassRange& range : world.plan.tables.scopes) {
      if (range.first <= A(text) && A(text) <= range.last) return range.number;
    }
    return 0;
  };
  world.Plan();
  EXPECT_EQ(number_of("8.8.8.8"), kInternet);
  EXPECT_EQ(number_of("2001:db8::1"), kInternet);
  EXPECT_EQ(number_of("10.1.2.3"), 0U);
  EXPECT_EQ(number_of("20.60.1.1"), 0U);
  EXPECT_EQ(number_of("169.254.169.254"), 0U);
  EXPECT_EQ(number_of("151.101.1.1"), 0U) << "of a group, so not the Internet's";
  world.Put("BandwidthLimit/mirror",
            policy::BandwidthLimit{.destination_group = "mirror", .pod_egress = kMbit});
  world.Plan();
  EXPECT_EQ(number_of("151.101.1.1"), kMirror);
  EXPECT_NE(world.Flow(1, kEgress, kMirror).class_id, 0U);
}

TEST(ShapingPlan, LearnedAddressesOfOurOwnNetworksAreLeftOut) {
  World world;
  world.Put("DestinationGroup/other",
            policy::DestinationGroup{.cidrs = policy::Blocks({"198.51.100.0/24"})});
  world.pods = {Pod(1, "web", {.ingress = kMbit})};
  world.learned = {{A("1.2.3.4"), kMirror},      {A("10.1.2.3"), kMirror},
                   {A("20.60.1.1"), kMirror},    {A("169.254.169.254"), kMirror},
                   {A("151.101.1.1"), kMirror},  {A("2001:db8::1"), kMirror},
                   {A("198.51.100.7"), kMirror}, {A("fd00::1"), kMirror}};
  std::vector<std::string> kept;
  for (const ClassRange& range : world.Plan().tables.learned) {
    EXPECT_EQ(range.first, range.last);
    EXPECT_EQ(range.number, kMirror);
    kept.push_back(range.first.ToString());
  }
  EXPECT_THAT(kept, ElementsAre("1.2.3.4", "151.101.1.1", "2001:db8::1"));
}

TEST(ShapingPlan, NumbersStayAndFreeOnesRest) {
  World world;
  world.pods = {Pod(1, "web", {.ingress = kMbit}), Pod(2, "web", {.ingress = kMbit})};
  world.Plan();
  const ShapeClassId first = world.Flow(1, kIngress).class_id;
  const ShapeClassId second = world.Flow(2, kIngress).class_id;
  world.pods = {Pod(3, "web", {.ingress = kMbit}), Pod(1, "web", {.ingress = kMbit})};
  world.Plan();
  EXPECT_EQ(world.Flow(1, kIngress).class_id, first);
  EXPECT_GT(world.Flow(3, kIngress).class_id, second);
  world.plan.last_ids[0] = kMaxShapeClassId;
  world.pods.push_back(Pod(4, "web", {.ingress = kMbit}));
  world.Plan();
  EXPECT_EQ(world.Flow(4, kIngress).class_id, second)
      << "numbers begin from the start again, past those in use";
}

TEST(ShapingPlan, ClassThatGetsAnotherParentIsAnotherClass) {
  World world;
  world.pods = {Pod(1, "vision", {.ingress = kMbit})};
  world.Plan();
  const ShapeClassId before = world.Flow(1, kIngress).class_id;
  world.PutBudget("down", false, false);
  world.grants = {GrantFor("down", "vision", 10 * kMbit)};
  world.Plan();
  EXPECT_NE(world.Flow(1, kIngress).class_id, before);
}

TEST(ShapingPlan, PlanningAgainChangesNothing) {
  World world;
  world.PutBudget("down", false, false);
  world.pods = {Pod(1, "vision"), Pod(2, "speech", {.egress = kMbit}), Pod(3)};
  world.grants = {GrantFor("down", "vision", 300 * kMbit, 10), GrantFor("down", "*", 50 * kMbit)};
  const ShapingTables tables = world.Plan().tables;
  EXPECT_EQ(world.Plan().tables, tables);
}

TEST(ShapingPlan, LeavesOutTheLastPodsWhenThereAreTooMany) {
  World world;
  for (uint32_t i = 1; i <= kMaxShapedFlows / 2 + 2; ++i) {
    world.pods.push_back(Pod(i, "web", {.ingress = kMbit, .egress = kMbit}));
  }
  const ShapingPlan& plan = world.Plan();
  EXPECT_THAT(plan.flows, SizeIs(kMaxShapedFlows));
  EXPECT_EQ(plan.dropped_flows, 4U);
  EXPECT_EQ(plan.flows.back().key.host_index, kMaxShapedFlows / 2);
}

TEST(ShapingPlan, AWholeLinkHasAClassOfItsOwnBesideItsScopes) {
  World world;
  world.pods = {Pod(1, "web", {.egress = kMbit}), Pod(2)};
  world.pods[0].bandwidth = {.ingress_rate = kMbit, .egress_rate = 80 * kMbit};
  world.pods[0].mtu = 1500;
  const ShapingTables& tables = world.Plan().tables;
  ASSERT_THAT(world.plan.flows, SizeIs(1));
  ASSERT_THAT(tables.flows, SizeIs(2));
  const ShapedFlow whole = tables.flows[1];
  EXPECT_EQ(
      whole,
      (ShapedFlow{
          .host_index = 1, .scope = kWholeLink, .direction = kEgress, .class_id = whole.class_id}));
  EXPECT_EQ(world.Class(kEgress, whole.class_id), (ShapeClass{.id = whole.class_id,
                                                              .rate = ByteRate(10'000'000),
                                                              .ceil = ByteRate(10'000'000),
                                                              .burst = ByteCount(16'384),
                                                              .quantum = kMinQuantum,
                                                              .queue = ByteCount(500'000)}));
  EXPECT_NE(world.Flow(1, kEgress).class_id, whole.class_id);
  EXPECT_TRUE(CheckShapingTables(tables).ok());
  // The pod's number stays, and goes with the pod.
  world.pods.insert(world.pods.begin(), Pod(3));
  world.pods[0].bandwidth = {.egress_rate = units::BitRate(1000)};
  EXPECT_EQ(world.Plan().tables.flows[2].class_id, whole.class_id);
  world.pods = {Pod(2)};
  EXPECT_EQ(world.Plan().tables.flows.size(), 0U);
  EXPECT_THAT(world.plan.tables.trees[1], IsEmpty());
}

// The kernel keeps bursts and debts as times, which end somewhere.
TEST(ShapingPlan, WholeLinksOfAnyRateHaveAClassThatTheKernelKeeps) {
  World world;
  constexpr BitRate kRates[] = {BitRate(1), BitRate(1000), BitRate(100'000), kMbit,
                                1'000'000 * kMbit};
  for (uint32_t i = 0; i < std::size(kRates); ++i) {
    world.pods.push_back(Pod(i + 1));
    world.pods.back().bandwidth = {.egress_rate = kRates[i],
                                   .egress_burst = units::BitCount(~uint64_t{0})};
    world.pods.back().mtu = 9000;
  }
  for (const ShapeClass& one : world.Plan().tables.trees[1]) {
    EXPECT_GE(one.queue, one.burst);
    const uint64_t rate = one.rate.count();
    EXPECT_LT(one.burst.count() / rate, 274U);
    EXPECT_LT(std::min(one.queue, kOffloadedPacket).count() / rate, rate == 125 ? 600U : 60U);
  }
  EXPECT_THAT(world.plan.tables.trees[1], SizeIs(std::size(kRates)));
}

TEST(ShapingPlan, LinksWithoutAnIndexOfTheirOwnArePassedOver) {
  World world;
  world.pods = {Pod(0, "web", {.ingress = kMbit}), Pod(1, "web", {.ingress = kMbit}),
                Pod(1, "web", {.ingress = 2 * kMbit})};
  EXPECT_THAT(world.Plan().flows, SizeIs(1));
}

// Checks that every flow names a leaf, and that parents come first and bound what is below them.
void CheckTables(const ShapingPlan& plan) {
  ASSERT_EQ(plan.flows.size(), plan.tables.flows.size());
  std::array<std::map<ShapeClassId, ShapeClass>, 2> known;
  for (const TrafficDirection direction : kBothDirections) {
    auto& classes = known[static_cast<size_t>(direction)];
    std::map<ShapeClassId, ByteRate> sums;
    for (const ShapeClass& shape : plan.tables.trees[static_cast<size_t>(direction)]) {
      ASSERT_NE(shape.id, 0U);
      ASSERT_LE(shape.rate, shape.ceil);
      if (shape.parent != 0) {
        ASSERT_TRUE(classes.contains(shape.parent));
        ASSERT_TRUE(classes[shape.parent].queue.is_zero());
        ASSERT_LE(shape.ceil, classes[shape.parent].ceil);
        ASSERT_LE(sums[shape.parent] += shape.rate, classes[shape.parent].rate);
      }
      ASSERT_TRUE(classes.emplace(shape.id, shape).second);
    }
  }
  std::set<std::pair<TrafficDirection, ShapeClassId>> used;
  std::set<uint16_t> buckets = {0};
  for (const ConnectionBucket& bucket : plan.tables.buckets) {
    ASSERT_TRUE(buckets.insert(bucket.id).second);
    ASSERT_GT(bucket.per_second, 0U);
  }
  for (size_t i = 0; i < plan.flows.size(); ++i) {
    const ShapedFlow& flow = plan.tables.flows[i];
    ASSERT_EQ(flow.class_id, plan.flows[i].class_id);
    ASSERT_EQ(flow.host_index, plan.flows[i].key.host_index);
    ASSERT_TRUE(buckets.contains(flow.bucket));
    if (flow.direction == kIngress) {
      ASSERT_EQ(flow.bucket, 0U);
    }
    if (flow.class_id == 0) continue;
    const auto& classes = known[static_cast<size_t>(flow.direction)];
    ASSERT_TRUE(classes.contains(flow.class_id));
    ASSERT_GE(classes.at(flow.class_id).queue, ByteCount(2 * 1514));
    ASSERT_TRUE(used.emplace(flow.direction, flow.class_id).second) << "a leaf for each";
  }
}

// Changes something of policy, pods, grants or demand.
void Stir(World& world, testing_support::Random& random, uint32_t& next_index) {
  const auto rate = [&] { return random.OneIn(3) ? BitRate() : random.Between(1, 2000) * kMbit; };
  const std::vector<std::string> namespaces = {"web", "vision", "speech"};
  if (world.pods.empty() || random.OneIn(2)) {
    world.pods.push_back(Pod(next_index++, namespaces[random.Between(0, 2)],
                             {.ingress = rate(),
                              .egress = rate(),
                              .weight = static_cast<uint32_t>(random.Between(1, 100))}));
  } else if (random.OneIn(2)) {
    world.pods.erase(world.pods.begin() +
                     static_cast<int64_t>(random.Between(0, world.pods.size() - 1)));
  }
  if (random.OneIn(3)) {
    policy::BandwidthLimit limit{.pod_ingress = rate(), .shadow = random.OneIn(3)};
    limit.node_egress = rate();
    limit.node_ingress = rate();
    if (random.OneIn(2)) limit.teams = {"vision"};
    if (random.OneIn(3)) limit.destination_group = "mirror";
    world.Put(fmt::format("BandwidthLimit/{}", random.Between(1, 3)), limit);
  }
  if (random.OneIn(4)) {
    const bool egress = random.OneIn(2);
    world.PutBudget(egress ? "up" : "down", egress, random.OneIn(3));
  }
  world.grants.clear();
  for (const char* budget : {"up", "down"}) {
    for (const char* team : {"vision", "*"}) {
      world.grants.push_back(GrantFor(budget, team, rate(), random.OneIn(2) ? 0 : 50));
    }
  }
  for (const TrafficPod& pod : world.pods) world.Want(pod.host_index, rate());
}

TEST(ShapingPlan, LawsHoldThroughWhateverChanges) {
  testing_support::Random random;
  for (int round = 0; round < 10; ++round) {
    World world;
    uint32_t next_index = 1;
    for (int step = 0; step < 60; ++step) {
      Stir(world, random, next_index);
      const ShapingPlan before = world.plan;
      const ShapingPlan& plan = world.Plan();
      ASSERT_NO_FATAL_FAILURE(CheckTables(plan));
      for (const auto& [name, id] : plan.ids) {
        const auto known = before.ids.find(name);
        if (known != before.ids.end()) {
          ASSERT_EQ(id, known->second) << name;
        }
      }
      for (const auto& [name, id] : plan.buckets) {
        const auto known = before.buckets.find(name);
        if (known != before.buckets.end()) {
          ASSERT_EQ(id, known->second) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace spoke::netagent
