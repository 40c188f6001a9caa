// How far one agent, one wrong reading or one clock can go.
#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/conflict.h"
#include "ipam-server/ledger/decisions/demand.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/decisions/reservations.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"
#include "ipam-server/ledger/promises.h"
#include "ipam-server/ledger/targets.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

node_api::Hello HelloWith(const NodeKey& key, const std::string& first, uint64_t assignments) {
  node_api::Hello hello = HelloOf(key);
  for (uint64_t i = 0; i < assignments; ++i) {
    hello.in_use.push_back(AssignmentOf(ip::Advance(A(first), i), i + 1, fmt::format("c{}", i)));
  }
  return hello;
}

uint64_t CountOf(const Effects& effects, Finding::Kind kind) {
  uint64_t count = 0;
  for (const Finding& finding : effects.findings) count += finding.kind == kind ? 1 : 0;
  return count;
}

// --- Adoption. ---

TEST(FleetLimits, OneHelloAdoptsNoMoreThanANicTakes) {
  Fleet fleet({Pool("default", "10.1.0.0/16")}, Policy());
  const Effects effects = OnHello(fleet, HelloWith(kNode1, "10.1.1.0", 4082), kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).total(), 255U);
  EXPECT_EQ(CountOf(effects, Finding::Kind::kAdopted), 255U);
  EXPECT_EQ(CountOf(effects, Finding::Kind::kRefused), 4082U - 255U);
  CheckInvariants(fleet.ledger);
}

TEST(FleetLimits, NothingIsAdoptedFromAPoolThatDoesNotServeTheNode) {
  PoolSpec gpu = Pool("gpu", "10.2.0.0/24");
  gpu.node_labels = {{"gpu", "h100"}};
  Fleet fleet({Pool("default", "10.1.0.0/24"), gpu}, Policy());
  const Effects effects = OnHello(fleet, HelloWith(kNode1, "10.2.0.8", 2), kNow);
  EXPECT_EQ(CountOf(effects, Finding::Kind::kRefused), 2U);
  EXPECT_EQ(HolderOf(fleet.ledger, A("10.2.0.8")), nullptr);
  EXPECT_THAT(effects.findings.front().detail, HasSubstr("pool gpu does not serve this node"));
}

TEST(FleetLimits, AnAgentWithEverNewVmIdsLeavesAFewRecordsAtMost) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Choosing());
  for (int i = 0; i < 20; ++i) {
    const absl::Time now = kNow + absl::Seconds(i);
    const std::string vm = fmt::format("vm-{}", i);
    OnHello(fleet, HelloOf({kNode1.name, vm}, "boot of " + vm), now);
    Expire(fleet, now);
  }
  EXPECT_EQ(fleet.ledger.nodes().size(), 1 + fleet.policy.machines_per_name);
  EXPECT_NE(fleet.ledger.Find({kNode1.name, "vm-18"}), nullptr) << "the latest stay";
}

TEST(FleetLimits, TheCloudIsAskedForNoMoreThanThePoolHas) {
  Fleet fleet({Pool("small", "10.1.0.0/29")}, Choosing());
  for (const NodeKey& key : {kNode1, kNode2}) {
    node_api::Hello hello = HelloOf(key);
    hello.node.subnets = {Block("10.1.0.0/24")};
    OnHello(fleet, hello, kNow);
    OnNic(fleet, key, {}, kNow);
  }
  EXPECT_EQ(fleet.ledger.Find(kNode1)->wanted.size(), 3U);
  EXPECT_THAT(fleet.ledger.Find(kNode2)->wanted, IsEmpty());
  EXPECT_NE(ShortageOf(fleet, *fleet.ledger.Find(kNode2)), "");
  CheckInvariants(fleet.ledger);
}

TEST(FleetLimits, WhatIsClaimedAndTwiceNotOnTheNicIsFreeAgain) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Choosing());
  OnHello(fleet, HelloWith(kNode1, "10.1.0.9", 1), kNow);
  ASSERT_NE(HolderOf(fleet.ledger, A("10.1.0.9")), nullptr);
  OnNic(fleet, kNode1, {}, kNow);
  EXPECT_NE(HolderOf(fleet.ledger, A("10.1.0.9")), nullptr) << "one look may be at an old picture";
  EXPECT_TRUE(ReviewNode(fleet, kNode1, {}, kNow).attach.contains(kNode1)) << "so it looks again";
  const Effects second = OnNic(fleet, kNode1, {}, kNow + absl::Minutes(2));
  EXPECT_EQ(CountOf(second, Finding::Kind::kRefused), 1U);
  EXPECT_EQ(HolderOf(fleet.ledger, A("10.1.0.9")), nullptr);
  CheckInvariants(fleet.ledger);
}

// --- Readings. ---

// Each node has eight available addresses on its NIC.
Fleet WithNics(int nodes) {
  Fleet fleet({Pool("default", "10.1.0.0/20")}, Choosing());
  for (int i = 0; i < nodes; ++i) {
    const NodeKey key{fmt::format("n{:03}", i), "vm"};
    OnHello(fleet, HelloOf(key), kNow);
    std::vector<IpConfiguration> on_nic;
    for (uint64_t k = 0; k < 8; ++k) {
      const auto offset = 16 + 8 * static_cast<uint64_t>(i) + k;
      on_nic.push_back(
          {fmt::format("spoke-{}", k), ip::Prefix::Host(ip::Advance(A("10.1.0.0"), offset))});
    }
    OnNic(fleet, key, on_nic, kNow);
  }
  return fleet;
}

TEST(FleetLimits, ShortReadingsOfManyNicsGoThroughTheBreaker) {
  Fleet fleet = WithNics(100);
  ASSERT_EQ(CountAddresses(fleet.ledger).available, 800U);
  uint64_t asked = 0;
  for (const absl::Duration later : {absl::ZeroDuration(), absl::Minutes(1), absl::Minutes(2)}) {
    for (int i = 0; i < 100; ++i) {
      const NodeKey key{fmt::format("n{:03}", i), "vm"};
      const Effects effects = OnNic(fleet, key, {}, kNow + later);
      for (const auto& [node, ranges] : effects.reclaim) asked += ranges.size();
    }
  }
  EXPECT_TRUE(fleet.breaker.frozen());
  EXPECT_LE(asked, 800U / 18) << "5 % of those before, and of what is asked for in their place";
}

TEST(FleetLimits, WhatIsMissingFromANicIsAskedForOnce) {
  Fleet fleet = WithNics(100);
  const NodeKey key{"n000", "vm"};
  OnNic(fleet, key, {}, kNow);
  EXPECT_EQ(OnNic(fleet, key, {}, kNow + absl::Minutes(1)).reclaim.at(key).size(), 8U);
  EXPECT_THAT(OnNic(fleet, key, {}, kNow + absl::Minutes(2)).reclaim, IsEmpty());
}

// --- Agents that do not answer. ---

// Node 1 has 20 addresses of 24, for which nobody waits any more; five minutes later.
Fleet WithIdleNode() {
  FleetPolicy policy = Policy();
  policy.breaker = {.share = 0.05, .floor = 20};
  Fleet fleet({Pool("default", "10.1.0.0/24")}, policy);
  OnHello(fleet, HelloOf(kNode2), kNow);
  Attach(fleet, kNode2);
  OnHello(fleet, HelloOf(kNode1), kNow);
  OnDemand(fleet, kNode1, {.waiting = {{"web", 16}}}, kNow);
  Attach(fleet, kNode1);
  OnDemand(fleet, kNode1, {}, kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).available, 20U);
  return fleet;
}

TEST(FleetLimits, WhatAnAgentHasNotAnsweredCountsOnceHoweverOftenItIsAskedFor) {
  Fleet fleet = WithIdleNode();
  for (int minute = 5; minute < 12; ++minute) {
    const Effects effects = ReviewNode(fleet, kNode1, {}, kNow + absl::Minutes(minute));
    EXPECT_EQ(effects.reclaim.at(kNode1).size(), 16U) << minute;
  }
  EXPECT_FALSE(fleet.breaker.frozen());
}

TEST(FleetLimits, AnAgentThatIsAwayIsAskedForNothingAndFreezesNothing) {
  Fleet fleet = WithIdleNode();
  const absl::Time asked = kNow + absl::Minutes(5);
  const uint64_t room = fleet.breaker.Headroom(24, asked);
  ASSERT_EQ(ReviewNode(fleet, kNode1, {}, asked).reclaim.at(kNode1).size(), 16U);
  EXPECT_EQ(fleet.breaker.Headroom(24, asked), room - 16);
  const Effects away = ReviewNode(fleet, kNode1, {.connected = false}, asked + absl::Minutes(1));
  EXPECT_THAT(away.reclaim, IsEmpty());
  EXPECT_TRUE(away.breaker) << "it is to be stored";
  EXPECT_EQ(fleet.breaker.Headroom(24, asked + absl::Minutes(1)), room) << "nothing has gone";
  EXPECT_FALSE(ReviewNode(fleet, kNode1, {.connected = false}, asked).breaker);
}

TEST(FleetLimits, WhatIsAnsweredMuchLaterIsJudgedAnewAndGivesNothingBack) {
  Fleet fleet = WithIdleNode();
  const absl::Time asked = kNow + absl::Minutes(5);
  const absl::Duration window = fleet.policy.breaker.window;
  const absl::Time later = asked + 2 * window;
  ASSERT_FALSE(ReviewNode(fleet, kNode1, {}, asked).reclaim.empty());
  EXPECT_FALSE(ReviewNode(fleet, kNode1, {}, asked + window - absl::Seconds(1)).breaker)
      << "it still counts";
  const uint64_t room = fleet.breaker.Headroom(24, later);
  ASSERT_FALSE(ReviewNode(fleet, kNode1, {}, later).reclaim.empty());
  EXPECT_EQ(fleet.breaker.Headroom(24, later), room - 16) << "it may go now, and counts now";
  const absl::Time much_later = later + 2 * window;
  EXPECT_FALSE(ReviewNode(fleet, kNode1, {.connected = false}, much_later).breaker)
      << "others have gone meanwhile, and these stay counted";
}

TEST(FleetLimits, WhatAnAgentGivesUpAndAssignsAllTheSameHasNotGone) {
  Fleet fleet = WithIdleNode();
  const absl::Time asked = kNow + absl::Minutes(5);
  const uint64_t room = fleet.breaker.Headroom(24, asked);
  const std::vector<ip::Prefix> ranges = ReviewNode(fleet, kNode1, {}, asked).reclaim.at(kNode1);
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(ranges[0].base(), 9)}}, asked);
  OnReclaimAnswer(fleet, kNode1, {.agreed = ranges}, asked);
  EXPECT_EQ(fleet.breaker.Headroom(24, asked), room - 15);
}

// --- Conflicts. ---

TEST(FleetLimits, ReportsOfConflictPutFewAddressesAwayAndForAWhileOnly) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  OnHello(fleet, HelloWith(kNode1, "10.1.0.4", 200), kNow);
  Attach(fleet, kNode1);
  for (uint64_t i = 0; i < 200; ++i) {
    OnConflict(fleet, kNode1, ip::Advance(A("10.1.0.4"), i), "", kNow);
  }
  EXPECT_EQ(fleet.ledger.quarantine().entries.size(), Policy().conflict.per_node);
  Expire(fleet, kNow + absl::Minutes(9));
  EXPECT_EQ(fleet.ledger.quarantine().entries.size(), Policy().conflict.per_node);
  const Effects ended = Expire(fleet, kNow + absl::Minutes(10));
  EXPECT_THAT(fleet.ledger.quarantine().entries, IsEmpty());
  EXPECT_EQ(ended.quarantined.size(), Policy().conflict.per_node) << "it is to be stored";
}

TEST(FleetLimits, AConflictThatIsHeardAgainLastsLonger) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  EXPECT_TRUE(OnConflict(fleet, kNode1, A("10.1.0.4"), "", kNow).Stores());
  EXPECT_FALSE(OnConflict(fleet, kNode1, A("10.1.0.4"), "", kNow + absl::Seconds(1)).Stores());
  EXPECT_TRUE(OnConflict(fleet, kNode1, A("10.1.0.4"), "", kNow + absl::Minutes(5)).Stores());
  Expire(fleet, kNow + absl::Minutes(14));
  EXPECT_TRUE(fleet.ledger.quarantine().entries.contains(A("10.1.0.4")));
  Expire(fleet, kNow + absl::Minutes(15));
  EXPECT_FALSE(fleet.ledger.quarantine().entries.contains(A("10.1.0.4")));
}

TEST(FleetLimits, WhatAnOperatorPutAwayNeitherEndsNorIsEndedByAReport) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnConflict(fleet, kNode1, A("10.1.0.4"), "", kNow);
  ASSERT_TRUE(
      SetQuarantine(fleet, A("10.1.0.4"), Quarantine{.reason = "ours", .since = kNow}, kNow).ok());
  OnConflict(fleet, kNode1, A("10.1.0.4"), "", kNow);
  Expire(fleet, kNow + absl::Hours(24));
  EXPECT_EQ(fleet.ledger.quarantine().entries.at(A("10.1.0.4")).reason, "ours");
}

// --- The same machine, and another. ---

TEST(FleetLimits, TheSameBootUnderAnotherVmIdIsTheSameMachine) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  const NodeKey renamed{"node1", "vm-by-dmi"};
  node_api::Hello hello = HelloOf(renamed);
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 1)};
  const Effects effects = OnHello(fleet, hello, kNow);
  EXPECT_EQ(fleet.ledger.Find(kNode1), nullptr);
  ASSERT_NE(fleet.ledger.Find(renamed), nullptr);
  EXPECT_EQ(fleet.ledger.Find(renamed)->mode, NodeMode::kActive);
  EXPECT_EQ(HolderOf(fleet.ledger, A("10.1.0.4"))->key, renamed);
  EXPECT_EQ(effects.changed, (std::set{kNode1, renamed}))
      << "the record moves in the store as well";
  EXPECT_EQ(CountOf(effects, Finding::Kind::kRenamed), 1U);
  for (int i = 0; i < 3; ++i) OnListing(fleet, {}, {renamed}, kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(renamed)).in_use, 1U);
  CheckInvariants(fleet.ledger);
}

TEST(FleetLimits, AReplacedMachineThatProvesItselfDoesNotFreezeReleases) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  OnHello(fleet, HelloWith(kNode1, "10.1.0.4", 96), kNow);
  OnHello(fleet, HelloWith(kNode2, "10.1.0.104", 96), kNow);
  const NodeKey successor{"node1", "vm-new"};
  OnHello(fleet, HelloOf(successor, "boot-2"), kNow);
  OnListing(fleet, {kNode2, successor}, {}, kNow);
  EXPECT_NE(HolderOf(fleet.ledger, A("10.1.0.4")), nullptr) << "missing once";
  OnListing(fleet, {kNode2, successor}, {}, kNow);
  EXPECT_EQ(HolderOf(fleet.ledger, A("10.1.0.4")), nullptr);
  EXPECT_FALSE(fleet.breaker.frozen());
}

TEST(FleetLimits, WithoutASuccessorAsManyMissingAddressesFreeze) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  OnHello(fleet, HelloWith(kNode1, "10.1.0.4", 96), kNow);
  OnHello(fleet, HelloWith(kNode2, "10.1.0.104", 96), kNow);
  OnListing(fleet, {kNode2}, {}, kNow);
  OnListing(fleet, {kNode2}, {}, kNow);
  EXPECT_TRUE(fleet.breaker.frozen());
  EXPECT_NE(HolderOf(fleet.ledger, A("10.1.0.4")), nullptr);
}

// --- What is late, or was said differently before. ---

TEST(FleetLimits, WhatIsAssignedWhileItIsBeingGivenUpStays) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnReclaimAnswer(fleet, kNode1, {.agreed = {One("10.1.0.4")}}, kNow);
  const Effects in_use =
      OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  EXPECT_TRUE(in_use.attach.contains(kNode1)) << "the cloud is asked to keep it";
  Attach(fleet, kNode1);
  ASSERT_EQ(HolderOf(fleet.ledger, A("10.1.0.4"))->key, kNode1);
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.4").use, Use::kInUse);
}

TEST(FleetLimits, AnAssignmentThatHasEndedUnheardIsNotRevived) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  EXPECT_TRUE(OnReport(fleet, kNode1, {.released = {{A("10.1.0.4"), 5}}}, kNow).Stores());
  EXPECT_FALSE(
      OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 5)}}, kNow).Stores());
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.4").use, Use::kAvailable);
}

TEST(FleetLimits, ADenialGivesBackOnlyWhatTheBreakerHadAllowed) {
  Fleet fleet = WithNics(100);
  const uint64_t before = fleet.breaker.Headroom(CountAddresses(fleet.ledger).total(), kNow);
  const NodeKey key{"n000", "vm"};
  OnNic(fleet, key, {}, kNow);
  OnNic(fleet, key, {}, kNow + absl::Minutes(1));
  const absl::Time now = kNow + absl::Minutes(1);
  const uint64_t after = fleet.breaker.Headroom(CountAddresses(fleet.ledger).total(), now);
  EXPECT_EQ(after, before - 8);
  // An operator asks for it, who is not judged.
  node_api::ReclaimAnswer denied;
  for (uint64_t k = 0; k < 8; ++k)
    denied.denied.push_back(ip::Prefix::Host(ip::Advance(A("10.1.0.24"), k)));
  OnReclaimAnswer(fleet, {"n001", "vm"}, denied, now);
  EXPECT_EQ(fleet.breaker.Headroom(CountAddresses(fleet.ledger).total(), now), after);
}

TEST(FleetLimits, ARenamedPoolKeepsItsAddresses) {
  const Fleet source = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  Fleet fleet({Pool("renamed", "10.1.0.0/24")}, Policy());
  ASSERT_TRUE(fleet.ledger.Upsert(*source.ledger.Find(kNode1)).ok());
  FinishLoading(fleet, kNow);
  CheckInvariants(fleet.ledger);
  OnHello(fleet, HelloOf(kNode1), kNow);
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  EXPECT_EQ(fleet.ledger.pools()[0].counts.in_use, 1U);
  CheckInvariants(fleet.ledger);
}

TEST(FleetLimits, PoolsThatSwappedTheirNamesKeepTheirAddresses) {
  const Fleet source = WithAttachedNode({Pool("a", "10.1.0.0/24"), Pool("b", "10.2.0.0/24")});
  Fleet fleet({Pool("b", "10.1.0.0/24"), Pool("a", "10.2.0.0/24")}, Policy());
  ASSERT_TRUE(fleet.ledger.Upsert(*source.ledger.Find(kNode1)).ok());
  FinishLoading(fleet, kNow);
  CheckInvariants(fleet.ledger);
  EXPECT_EQ(PoolNamed(fleet, "b")->counts.available, 4U);
}

TEST(FleetLimits, ReplacedPoolsKeepEveryPromise) {
  Fleet fleet({Pool("first", "10.1.0.0/28"), Pool("second", "10.2.0.0/24")}, Policy());
  OnHello(fleet, HelloOf(kNode1), kNow);
  ASSERT_TRUE(Reserve(fleet,
                      {.name = "job", .count = 1, .addresses_per_node = 5, .ttl = absl::Hours(1)},
                      kNow, false)
                  .ok());
  EXPECT_EQ(PromisedOf(fleet, "first"), 5U);
  ASSERT_TRUE(SetPools(fleet,
                       {Pool("new", "10.3.0.0/24"), Pool("first", "10.1.0.0/28"),
                        Pool("second", "10.2.0.0/24")},
                       kNow)
                  .ok());
  EXPECT_EQ(PromisedOf(fleet, "new") + PromisedOf(fleet, "first") + PromisedOf(fleet, "second"),
            5U);
  EXPECT_EQ(AllPromises(fleet).short_by, 0U);
}

}  // namespace
}  // namespace spoke::ipam
