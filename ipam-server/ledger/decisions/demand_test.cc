// Pods that wait for addresses: what their node gets for them, and what it is told.
#include "ipam-server/ledger/decisions/demand.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/scarcity.h"
#include "ipam-server/ledger/targets.h"

namespace spoke::ipam {
namespace {

// Node 1 has four addresses, and all of them are assigned.
Fleet WithFullNode(std::vector<PoolSpec> pools = {Pool("default", "10.1.0.0/24")}) {
  FleetPolicy policy = Policy();
  policy.target.spare = 0;
  Fleet fleet(pools, policy);
  OnHello(fleet, HelloOf(kNode1), kNow);
  Attach(fleet, kNode1);
  node_api::AssignmentReport all;
  for (const ip::Prefix& range : RangesOf(fleet, kNode1)) {
    all.in_use.push_back(AssignmentOf(range.base(), 1, range.ToString()));
  }
  OnReport(fleet, kNode1, all, kNow);
  return fleet;
}

uint64_t TargetOf(const Fleet& fleet) { return TargetOf(fleet, *fleet.ledger.Find(kNode1)); }
std::string ReasonOf(const Fleet& fleet, const CloudStanding& cloud = {}) {
  return ForecastOf(fleet, *fleet.ledger.Find(kNode1), cloud, kNow).reason;
}

// The assignment of an address to a pod of `pod_namespace` that has waited.
node_api::Assignment AssignedTo(std::string_view address, std::string pod_namespace,
                                std::string container) {
  node_api::Assignment assignment = AssignmentOf(A(address), 1, std::move(container));
  assignment.lessee.pod_namespace = std::move(pod_namespace);
  return assignment;
}

TEST(FleetDemand, ABurstRaisesTheTargetInOneStep) {
  Fleet fleet = WithFullNode();
  EXPECT_EQ(TargetOf(fleet), 4U);
  const Effects effects = OnDemand(fleet, kNode1, {.waiting = {{"web", 20}, {"batch", 10}}}, kNow);
  EXPECT_EQ(TargetOf(fleet), 36U);  // 4 used and 30 waiting, in batches of 4.
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).attaching, 32U);
  EXPECT_EQ(effects.attach, std::set{kNode1});
  EXPECT_TRUE(effects.changed.contains(kNode1));
  EXPECT_EQ(fleet.demands.at(kNode1).said.pods(), 30U);
  EXPECT_EQ(WaitingPods(fleet), 30U);
  CheckInvariants(fleet.ledger);
  // The same demand said again changes nothing.
  EXPECT_FALSE(OnDemand(fleet, kNode1, {.waiting = {{"web", 20}, {"batch", 10}}}, kNow).Stores());
}

TEST(FleetDemand, TheTargetStaysWithinItsMaximumAndTheNic) {
  Fleet fleet = WithFullNode();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 4096}}}, kNow);
  EXPECT_EQ(TargetOf(fleet), 64U);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).total(), 64U);

  FleetPolicy small = Policy();
  small.nic_configurations = 10;
  Fleet other({Pool("default", "10.1.0.0/24")}, small);
  OnHello(other, HelloOf(kNode1), kNow);
  OnDemand(other, kNode1, {.waiting = {{"web", 40}}}, kNow);
  EXPECT_EQ(CountAddresses(*other.ledger.Find(kNode1)).total(), 10U);
  EXPECT_NE(ReasonOf(other).find("has 10 IP configurations and takes no more"), std::string::npos);
}

TEST(FleetDemand, OnlyThePoolsOfThePodsNamespaceGrowInEachFamily) {
  PoolSpec blue = Pool("blue", "10.2.0.0/24");
  blue.namespaces = {"blue"};
  Fleet fleet = WithFullNode({Pool("default", "10.1.0.0/24"), blue, Pool("six", "fd00::/64")});
  OnDemand(fleet, kNode1, {.waiting = {{"blue", 8}}}, kNow);
  EXPECT_EQ(PoolNamed(fleet, "default")->counts.attaching, 0U);
  EXPECT_EQ(PoolNamed(fleet, "blue")->counts.attaching, 8U);
  EXPECT_EQ(PoolNamed(fleet, "six")->counts.attaching, 8U);  // No pool of IPv6 names it.
  OnDemand(fleet, kNode1, {.waiting = {{"green", 4}}}, kNow);
  EXPECT_EQ(PoolNamed(fleet, "default")->counts.attaching, 4U);
  EXPECT_EQ(PoolNamed(fleet, "blue")->counts.attaching, 8U);
}

TEST(FleetDemand, WhenNobodyWaitsTheSurplusGoesBackUnderTheRulesForAll) {
  Fleet fleet = WithFullNode();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 16}}}, kNow);
  Attach(fleet, kNode1);
  OnDemand(fleet, kNode1, {}, kNow);
  EXPECT_FALSE(fleet.demands.contains(kNode1));
  EXPECT_EQ(TargetOf(fleet), 4U);
  EXPECT_TRUE(ReviewNode(fleet, kNode1, {}, kNow + absl::Minutes(4)).reclaim.empty());
  EXPECT_EQ(ReviewNode(fleet, kNode1, {}, kNow + absl::Minutes(6)).reclaim.at(kNode1).size(), 16U);
}

TEST(FleetDemand, ItEndsWithItsSession) {
  Fleet fleet = WithFullNode();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 16}}}, kNow);
  fleet.demands.erase(kNode1);
  EXPECT_EQ(TargetOf(fleet), 4U);
  OnDemand(fleet, kNode1, {.waiting = {{"web", 16}}}, kNow);
  OnHello(fleet, HelloOf(kNode1), kNow);
  EXPECT_EQ(WaitingPods(fleet), 0U);
  EXPECT_EQ(TargetOf(fleet), 4U);
  OnDemand(fleet, kNode2, {.waiting = {{"web", 16}}}, kNow);  // Nobody said hello there.
  EXPECT_EQ(WaitingPods(fleet), 0U);
}

TEST(FleetDemand, APodThatIsServedDoesNotCountAsUsedAndWaiting) {
  Fleet fleet = WithFullNode();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 4}}}, kNow);
  Attach(fleet, kNode1);
  node_api::AssignmentReport served;
  for (const char* address : {"10.1.0.8", "10.1.0.9", "10.1.0.10", "10.1.0.11"}) {
    served.in_use.push_back(AssignedTo(address, "web", address));
  }
  // The report comes before the agent has said that nobody waits any more.
  EXPECT_TRUE(OnReport(fleet, kNode1, served, kNow).attach.empty());
  EXPECT_EQ(TargetOf(fleet), 8U);
  EXPECT_TRUE(Expire(fleet, kNow + absl::Seconds(1)).plan.empty());
  // It never says so: others have come, as many as were served.
  EXPECT_EQ(Expire(fleet, kNow + absl::Seconds(3)).plan, std::set{kNode1});
  EXPECT_EQ(PlanNode(fleet, kNode1, kNow + absl::Seconds(3)).attach, std::set{kNode1});
  EXPECT_EQ(TargetOf(fleet), 12U);
}

TEST(FleetDemand, APodWithAnAddressOfEachFamilyIsServedOnce) {
  Fleet fleet = WithFullNode({Pool("default", "10.1.0.0/24"), Pool("six", "fd00::/64")});
  OnDemand(fleet, kNode1, {.waiting = {{"web", 3}}}, kNow);
  Attach(fleet, kNode1);
  OnReport(fleet, kNode1,
           {.in_use = {AssignedTo("10.1.0.8", "web", "pod"), AssignedTo("fd00::8", "web", "pod")}},
           kNow);
  EXPECT_EQ(TargetOf(fleet), 16U);  // Each family has five used and two waiting.
}

TEST(FleetDemand, WhatWasAskedForAlreadyIsAskedForWithMoreHaste) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  OnHello(fleet, HelloOf(kNode1), kNow);
  const Effects first = OnDemand(fleet, kNode1, {.waiting = {{"web", 1}}}, kNow);
  EXPECT_EQ(first.attach, std::set{kNode1});
  EXPECT_FALSE(first.Stores());
  EXPECT_TRUE(OnDemand(fleet, kNode1, {.waiting = {{"web", 2}}}, kNow).attach.empty());
}

TEST(FleetDemand, ADrainingNodeGetsNothing) {
  Fleet fleet = WithFullNode();
  ASSERT_TRUE(SetMode(fleet, "node1", NodeMode::kDraining, kNow).ok());
  EXPECT_FALSE(OnDemand(fleet, kNode1, {.waiting = {{"web", 16}}}, kNow).Stores());
  EXPECT_EQ(ReasonOf(fleet),
            "node node1 is draining and gets no more addresses: spokectl node undrain node1");
}

TEST(FleetForecast, SaysWhatTheCloudWasAskedForAndWhen) {
  Fleet fleet = WithFullNode();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 30}}}, kNow);
  EXPECT_EQ(ReasonOf(fleet), "asked the cloud for 32 addresses of pool default");
  const CloudStanding waits = {.eta = kNow + absl::Seconds(7), .waits_for = "limit X"};
  const node_api::Forecast forecast = ForecastOf(fleet, *fleet.ledger.Find(kNode1), waits, kNow);
  EXPECT_EQ(forecast.reason,
            "asked the cloud for 32 addresses of pool default, which waits for limit X");
  EXPECT_EQ(forecast.eta, absl::Seconds(7));
  // Overdue is not unknown.
  EXPECT_EQ(ForecastOf(fleet, *fleet.ledger.Find(kNode1), waits, kNow + absl::Minutes(1)).eta,
            absl::Milliseconds(1));
  const CloudStanding refused = {
      .eta = kNow, .failure = "the last attempt failed", .retry_at = absl::FromUnixSeconds(0)};
  EXPECT_EQ(
      ReasonOf(fleet, refused),
      "asked the cloud for 32 addresses of pool default, but the last attempt failed; the next "
      "attempt is at 1970-01-01T00:00:00Z");
  EXPECT_EQ(ForecastOf(fleet, *fleet.ledger.Find(kNode1), refused, kNow).eta, absl::ZeroDuration());
}

TEST(FleetForecast, SaysWhyNothingCanBeDone) {
  const node_api::Demand many = {.waiting = {{"web", 100}}};
  Fleet tiny = WithFullNode({Pool("tiny", "10.1.0.0/28")});  // Eleven addresses.
  OnDemand(tiny, kNode1, many, kNow);
  Attach(tiny, kNode1);
  EXPECT_EQ(
      ReasonOf(tiny),
      "no address is free: pool tiny (10.1.0.0/28): 11 usable, 11 attached, 0 in cooldown, 0 free");

  Fleet fleet = WithFullNode();
  OnDemand(fleet, kNode1, many, kNow);
  Attach(fleet, kNode1);
  EXPECT_EQ(ReasonOf(fleet), "the node is at its maximum of 64 addresses of pool default");

  Fleet frozen = WithFullNode();
  ASSERT_TRUE(SetMode(frozen, "node1", NodeMode::kFrozen, kNow).ok());
  OnDemand(frozen, kNode1, many, kNow);
  EXPECT_EQ(ReasonOf(frozen), "node node1 is frozen: spokectl node unfreeze node1");

  PoolSpec blue = Pool("blue", "10.1.0.0/24");
  blue.namespaces = {"blue"};
  Fleet others = WithFullNode({blue});
  OnDemand(others, kNode1, many, kNow);
  EXPECT_EQ(ReasonOf(others).rfind("no pool is meant for these pods on this node", 0), 0U);

  Fleet enough = WithFullNode();
  OnDemand(enough, kNode1, {.waiting = {{"web", 4}}}, kNow);
  Attach(enough, kNode1);
  EXPECT_EQ(ReasonOf(enough), "the node has 4 available addresses, and its agent is told of them");
}

// --- Pools that have none left. ---

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Of 27 addresses node 1 has 4, all assigned, node 2 has 20, all available, of which it needs 4.
Fleet WithIdleSurplus(const BreakerPolicy& breaker = {}) {
  Fleet fleet = WithFullNode({Pool("default", "10.1.0.0/27")});
  fleet.breaker = MassReleaseBreaker(breaker);
  OnHello(fleet, HelloOf(kNode2), kNow);
  OnDemand(fleet, kNode2, {.waiting = {{"web", 20}}}, kNow);
  Attach(fleet, kNode2);
  OnDemand(fleet, kNode2, {}, kNow);
  return fleet;
}

TEST(FleetScarcity, WhatPodsWaitForIsAskedOfNodesWithASurplusAtOnce) {
  Fleet fleet = WithIdleSurplus();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 8}}}, kNow);  // Three are free.
  Scarcity scarcity = ScarcityOf(fleet, {}, 8, kNow);
  EXPECT_THAT(scarcity.missing, ElementsAre(Pair(ElementsAre(0U), 5U)));
  EXPECT_THAT(scarcity.servable, IsEmpty());
  EXPECT_THAT(ReviewNode(fleet, kNode2, {}, kNow).reclaim, IsEmpty()) << "it is idle for no time";
  const Effects asked = ReviewNode(fleet, kNode2, {.scarcity = &scarcity}, kNow);
  EXPECT_EQ(asked.reclaim.at(kNode2).size(), 5U);
  EXPECT_THAT(scarcity.missing, IsEmpty());
  EXPECT_THAT(ScarcityOf(fleet, {}, 8, kNow).missing, IsEmpty()) << "they are on their way";

  OnReclaimAnswer(fleet, kNode2, {.agreed = asked.reclaim.at(kNode2)}, kNow);
  EXPECT_THAT(ScarcityOf(fleet, {}, 8, kNow).missing, IsEmpty()) << "they are being detached";
  Attach(fleet, kNode2);
  scarcity = ScarcityOf(fleet, {}, 8, kNow);
  EXPECT_THAT(scarcity.missing, IsEmpty()) << "they are in cooldown";
  EXPECT_THAT(scarcity.servable, IsEmpty());
  const absl::Time later = kNow + absl::Seconds(30);
  Expire(fleet, later);
  EXPECT_THAT(ScarcityOf(fleet, {}, 8, later).servable, ElementsAre(kNode1));
  PlanNode(fleet, kNode1, later);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).attaching, 8U);
  EXPECT_THAT(ScarcityOf(fleet, {}, 8, kNow).servable, IsEmpty());
  CheckInvariants(fleet.ledger);
}

TEST(FleetScarcity, WhatNodesNeedTheyKeepWhoeverWaits) {
  Fleet fleet = WithIdleSurplus();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 60}}}, kNow);
  Scarcity scarcity = ScarcityOf(fleet, {}, 8, kNow);
  EXPECT_EQ(scarcity.Of({0}), 57U);
  EXPECT_EQ(ReviewNode(fleet, kNode2, {.scarcity = &scarcity}, kNow).reclaim.at(kNode2).size(), 16U)
      << "20 without the least it should have";
  EXPECT_EQ(scarcity.Of({0}), 41U);
}

TEST(FleetScarcity, ASpareAddressIsNothingThatAPodWaitsFor) {
  Fleet fleet = WithIdleSurplus();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 3}}}, kNow);
  EXPECT_EQ(TargetOf(fleet), 8U);
  EXPECT_THAT(ScarcityOf(fleet, {}, 8, kNow).missing, IsEmpty());
}

TEST(FleetScarcity, NothingIsMissingWhereNothingMayBeGiven) {
  for (const NodeMode mode : {NodeMode::kFrozen, NodeMode::kDraining}) {
    Fleet fleet = WithIdleSurplus();
    OnDemand(fleet, kNode1, {.waiting = {{"web", 8}}}, kNow);
    ASSERT_TRUE(SetMode(fleet, "node1", mode, kNow).ok());
    EXPECT_THAT(ScarcityOf(fleet, {}, 8, kNow).missing, IsEmpty());
  }
  Fleet fleet = WithIdleSurplus();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 8}}}, kNow);
  fleet.hold.active = true;
  EXPECT_THAT(ScarcityOf(fleet, {}, 8, kNow).missing, IsEmpty());
}

TEST(FleetScarcity, ItNeverAsksForSoMuchThatReleasesWouldFreeze) {
  Fleet fleet = WithIdleSurplus({.share = 0.05, .floor = 3});
  OnDemand(fleet, kNode1, {.waiting = {{"web", 8}}}, kNow);
  for (int i = 0; i < 5; ++i) {
    Scarcity scarcity = ScarcityOf(fleet, {}, 8, kNow);
    ReviewNode(fleet, kNode2, {.scarcity = &scarcity}, kNow);
  }
  EXPECT_EQ(fleet.judged.size(), 3U);
  EXPECT_FALSE(fleet.breaker.frozen());
}

TEST(FleetScarcity, AnAgentThatDoesNotAnswerKeepsNobodyElseFromBeingAsked) {
  Fleet fleet = WithIdleSurplus();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 8}}}, kNow);
  Scarcity scarcity = ScarcityOf(fleet, {}, 8, kNow);
  ReviewNode(fleet, kNode2, {.scarcity = &scarcity}, kNow);
  const absl::Time later = kNow + kAnswerTime;
  EXPECT_EQ(ScarcityOf(fleet, {}, 8, later - absl::Seconds(1)).Of({0}), 0U);
  EXPECT_EQ(ScarcityOf(fleet, {}, 8, later).Of({0}), 5U);
}

TEST(FleetScarcity, AClockThatIsSetBackKeepsNothingOnItsWayForLonger) {
  Fleet fleet = WithIdleSurplus();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 8}}}, kNow);
  Scarcity scarcity = ScarcityOf(fleet, {}, 8, kNow);
  ReviewNode(fleet, kNode2, {.scarcity = &scarcity}, kNow);
  const absl::Time earlier = kNow - absl::Hours(5);
  Expire(fleet, earlier);
  EXPECT_EQ(ScarcityOf(fleet, {}, 8, earlier).Of({0}), 0U);
  const absl::Time later = earlier + kAnswerTime;
  Expire(fleet, later);
  EXPECT_EQ(ScarcityOf(fleet, {}, 8, later).Of({0}), 5U);
}

TEST(FleetScarcity, NodesWherePodsWaitAreLookedAtInTurn) {
  Fleet fleet = WithIdleSurplus();
  OnDemand(fleet, kNode1, {.waiting = {{"web", 8}}}, kNow);
  OnDemand(fleet, kNode2, {.waiting = {{"web", 30}}}, kNow);
  Scarcity scarcity = ScarcityOf(fleet, {}, 1, kNow);
  EXPECT_EQ(scarcity.last, kNode1);
  scarcity = ScarcityOf(fleet, scarcity.last, 1, kNow);
  EXPECT_EQ(scarcity.last, kNode2);
  EXPECT_EQ(scarcity.Of({0}), 10U);
  EXPECT_EQ(ScarcityOf(fleet, scarcity.last, 1, kNow).last, kNode1);
}

}  // namespace
}  // namespace spoke::ipam
