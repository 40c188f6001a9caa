// What nodes get and give back, pools by labels and namespaces, and what operators want.
#include "ipam-server/ledger/decisions/plan.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/decisions/reservations.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/promises.h"
#include "ipam-server/ledger/targets.h"

namespace spoke::ipam {
namespace {

using State = AddressPool::State;

TEST(FleetPools, BothFamiliesAreProvidedWhereBothHavePools) {
  const Fleet fleet = WithAttachedNode({Pool("four", "10.1.0.0/24"), Pool("six", "fd00::/64")});
  EXPECT_EQ(PoolNamed(fleet, "four")->counts.available, 4U);
  EXPECT_EQ(PoolNamed(fleet, "six")->counts.available, 4U);
  EXPECT_EQ(TargetOf(fleet, *fleet.ledger.Find(kNode1)), 8U);
}

TEST(FleetPools, ASecondSubnetTakesOverWhereTheFirstEnds) {
  const Fleet fleet = WithAttachedNode({Pool("tiny", "10.1.0.0/29"), Pool("next", "10.2.0.0/24")});
  EXPECT_EQ(PoolNamed(fleet, "tiny")->counts.available, 3U);
  EXPECT_EQ(PoolNamed(fleet, "next")->counts.available, 1U);
}

TEST(FleetPools, ANodeDrawsOnlyFromPoolsOfItsLabelsAndNetwork) {
  PoolSpec gpu = Pool("gpu", "10.2.0.0/24");
  gpu.node_labels = {{"gpu", "h100"}};
  PoolSpec west = Pool("west", "10.3.0.0/24");
  west.vnet = "west";
  west.target = TargetPolicy{.min = 8, .batch = 4, .spare = 0, .max = 64};
  Fleet fleet({gpu, west}, Policy());
  OnHello(fleet, HelloOf(kNode1), kNow);
  EXPECT_NE(ShortageOf(fleet, *fleet.ledger.Find(kNode1)).find("no pool is meant for this node"),
            std::string::npos);
  node_api::Hello hello = HelloOf(kNode2);
  hello.node.labels = {{"gpu", "h100"}, {"zone", "1"}};
  OnHello(fleet, hello, kNow);
  EXPECT_EQ(PoolNamed(fleet, "gpu")->counts.attaching, 4U);
  hello = HelloOf(kNode1);
  hello.node.vnet = "west";
  OnHello(fleet, hello, kNow);
  EXPECT_EQ(PoolNamed(fleet, "west")->counts.attaching, 8U);  // Its own target.
}

TEST(FleetPools, APoolForSomeNamespacesIsHeldBesideTheGeneralOne) {
  PoolSpec blue = Pool("blue", "10.2.0.0/24");
  blue.namespaces = {"blue"};
  const Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24"), blue});
  EXPECT_EQ(PoolNamed(fleet, "default")->counts.available, 4U);
  EXPECT_EQ(PoolNamed(fleet, "blue")->counts.available, 4U);
}

TEST(FleetPools, BlocksAreAssignedByAddressAndReturnedWhole) {
  PoolSpec blocks = Pool("blocks", "10.1.0.0/24");
  blocks.block_length = 28;
  Fleet fleet = WithAttachedNode({blocks});
  ASSERT_EQ(RangesOf(fleet, kNode1), std::set{Block("10.1.0.16/28")});
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.20"), 1)}}, kNow);
  EXPECT_EQ(PoolNamed(fleet, "blocks")->counts, (AddressCounts{.available = 15, .in_use = 1}));
  EXPECT_EQ(HolderOf(fleet.ledger, A("10.1.0.31"))->key, kNode1);
  OnReclaimAnswer(fleet, kNode1, {.agreed = {Block("10.1.0.16/28")}}, kNow);
  EXPECT_EQ(PoolNamed(fleet, "blocks")->counts.detaching, 0U);  // One of it is assigned.
  OnReport(fleet, kNode1, {.released = {{A("10.1.0.20"), 1}}, .cooled = {A("10.1.0.20")}}, kNow);
  OnReclaimAnswer(fleet, kNode1, {.agreed = {Block("10.1.0.16/28")}}, kNow);
  EXPECT_EQ(PoolNamed(fleet, "blocks")->counts.detaching, 16U);
}

TEST(FleetPools, AnExhaustedPoolIsNamedWithItsCounts) {
  Fleet fleet({Pool("tiny", "10.1.0.0/29")}, Policy());
  OnHello(fleet, HelloOf(kNode1), kNow);
  EXPECT_EQ(
      ShortageOf(fleet, *fleet.ledger.Find(kNode1)),
      "has 3 of 4 addresses: pool tiny (10.1.0.0/29): 3 usable, 3 attached, 0 in cooldown, 0 free");
}

TEST(FleetPools, ReplacingPoolsKeepsWhatIsHeldOrChangesNothing) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const absl::Status shrunk = SetPools(fleet, {Pool("default", "10.1.0.128/25")}, kNow).status();
  EXPECT_EQ(shrunk.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(SetPools(fleet, {}, kNow).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fleet.ledger.pools()[0].pool.spec().cidr, Block("10.1.0.0/24"));
  const auto grown =
      SetPools(fleet, {Pool("default", "10.1.0.0/23"), Pool("six", "fd00::/64")}, kNow);
  ASSERT_TRUE(grown.ok()) << grown.status();
  EXPECT_EQ(grown->desired, std::set{kNode1}) << "pods wait for what there is no more, else";
  CheckInvariants(fleet.ledger);
  EXPECT_EQ(PoolNamed(fleet, "default")->pool.held(), 4U);
  EXPECT_FALSE(PlanNode(fleet, kNode1, kNow).changed.empty());  // IPv6 has come.
}

// A node that had twelve addresses in use and has none now.
Fleet WithSurplus() {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  node_api::AssignmentReport in_use;
  node_api::AssignmentReport released;
  for (uint64_t i = 0; i < 12; ++i) {
    const ip::Address address = ip::Advance(A("10.1.0.4"), i);
    OnReport(fleet, kNode1, {.in_use = {AssignmentOf(address, i + 1)}}, kNow);
    Attach(fleet, kNode1);
    released.released.push_back({address, i + 1});
    released.cooled.push_back(address);
  }
  OnReport(fleet, kNode1, released, kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).available, 16U);
  return fleet;
}

TEST(FleetRelease, AnAvailableSurplusIsAskedForDetachedAndInCooldownBeforeReuse) {
  Fleet fleet = WithSurplus();
  EXPECT_TRUE(ReviewNode(fleet, kNode1, {}, kNow + absl::Minutes(4)).reclaim.empty());
  const absl::Time later = kNow + absl::Minutes(5);
  const Effects asked = ReviewNode(fleet, kNode1, {}, later);
  ASSERT_EQ(asked.reclaim.at(kNode1).size(), 12U);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).available, 16U);  // Asking changes nothing.

  const Effects agreed =
      OnReclaimAnswer(fleet, kNode1, {.agreed = asked.reclaim.at(kNode1)}, later);
  EXPECT_EQ(agreed.attach, std::set{kNode1});
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)),
            (AddressCounts{.available = 4, .detaching = 12}));
  const Effects detached = Attach(fleet, kNode1, later);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)), (AddressCounts{.available = 4}));
  EXPECT_EQ(fleet.ledger.pools()[0].pool.cooldown(), 12U);
  EXPECT_EQ(fleet.ledger.Find(kNode1)->released.size(), 12U);
  Expire(fleet, later + absl::Seconds(30));
  EXPECT_EQ(fleet.ledger.pools()[0].pool.cooldown(), 0U);
  EXPECT_TRUE(
      ReviewNode(fleet, kNode1, {}, later + absl::Hours(1)).reclaim.empty());  // No flapping.
  CheckInvariants(fleet.ledger);
}

TEST(FleetRelease, ADenialIsRememberedAndRespected) {
  Fleet fleet = WithSurplus();
  const absl::Time later = kNow + absl::Minutes(5);
  const Effects asked = ReviewNode(fleet, kNode1, {}, later);
  OnReclaimAnswer(fleet, kNode1, {.denied = asked.reclaim.at(kNode1)}, later);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).available, 16U);
  const std::vector<ip::Prefix> denied = asked.reclaim.at(kNode1);
  const Effects again = ReviewNode(fleet, kNode1, {}, later + absl::Minutes(1));
  for (const auto& [node, ranges] : again.reclaim) {
    for (const ip::Prefix& range : ranges) {
      EXPECT_EQ(std::count(denied.begin(), denied.end(), range), 0) << range.ToString();
    }
  }
  EXPECT_FALSE(ReviewNode(fleet, kNode1, {}, later + absl::Minutes(6)).reclaim.empty());
}

TEST(FleetRelease, AnAssignmentThatComesInBetweenIsNotTakenAway) {
  Fleet fleet = WithSurplus();
  const absl::Time later = kNow + absl::Minutes(5);
  const ip::Prefix range = ReviewNode(fleet, kNode1, {}, later).reclaim.at(kNode1)[0];
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(range.base(), 99)}}, later);
  EXPECT_TRUE(OnReclaimAnswer(fleet, kNode1, {.agreed = {range}}, later).attach.empty());
  // It agreed, and after a restart it assigns it all the same: the cloud is to keep it.
  const ip::Prefix other =
      ReviewNode(fleet, kNode1, {}, later + absl::Minutes(9)).reclaim.at(kNode1)[0];
  OnReclaimAnswer(fleet, kNode1, {.agreed = {other}}, later);
  node_api::Hello hello = HelloOf(kNode1);
  hello.in_use = {AssignmentOf(other.base(), 100), AssignmentOf(range.base(), 99)};
  EXPECT_TRUE(OnHello(fleet, hello, later).attach.contains(kNode1));
  EXPECT_EQ(fleet.ledger.Find(kNode1)->Holding(other.base())->state, AddressState::kAttaching);
}

TEST(FleetRelease, OnePassThatWouldFreeTooMuchFreezesAndOnlyAnOperatorLiftsIt) {
  FleetPolicy policy = Policy();
  policy.breaker = {.share = 0.05, .floor = 4, .window = absl::Minutes(1)};
  policy.release.hysteresis = 0;
  Fleet fleet({Pool("default", "10.1.0.0/16")}, policy);
  for (int i = 0; i < 100; ++i) {
    const NodeKey key{"node" + std::to_string(i), "vm"};
    OnHello(fleet, HelloOf(key), kNow);
    node_api::AssignmentReport in_use;
    for (const ip::Prefix& range : RangesOf(fleet, key)) {
      in_use.in_use.push_back(AssignmentOf(range.base(), 1));
    }
    Attach(fleet, key);
    OnReport(fleet, key, in_use, kNow);
    Attach(fleet, key);
    OnHello(fleet, HelloOf(key), kNow);  // All its pods are gone.
  }
  const absl::Time later = kNow + absl::Minutes(6);
  int asked = 0;
  std::vector<Finding> findings;
  for (int i = 0; i < 100; ++i) {
    const Effects effects = ReviewNode(fleet, {"node" + std::to_string(i), "vm"}, {}, later);
    asked += effects.reclaim.empty() ? 0 : 1;
    findings.insert(findings.end(), effects.findings.begin(), effects.findings.end());
  }
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, 20);
  ASSERT_EQ(findings.size(), 1U);  // Said once.
  EXPECT_EQ(findings[0].kind, Finding::Kind::kFrozen);
  EXPECT_TRUE(fleet.breaker.frozen());
  EXPECT_TRUE(ReviewNode(fleet, {"node99", "vm"}, {}, later + absl::Hours(1)).reclaim.empty());
  EXPECT_TRUE(LiftFreeze(fleet, later).breaker);
  EXPECT_FALSE(ReviewNode(fleet, {"node99", "vm"}, {}, later).reclaim.empty());
}

TEST(FleetRelease, WhatIsOnlyWantedMakesNoRoomForReleases) {
  FleetPolicy policy = Choosing();
  policy.breaker = {.share = 0.5, .floor = 1, .window = absl::Minutes(1)};
  Fleet fleet({Pool("default", "10.1.0.0/16")}, policy);
  const NodeKey few{"few", "vm"};
  OnHello(fleet, HelloOf(few), kNow);
  OnNic(fleet, few, {{"spoke-1", One("10.1.0.4")}, {"spoke-2", One("10.1.0.5")}}, kNow);
  for (int i = 0; i < 50; ++i) {
    const NodeKey key{"node" + std::to_string(i), "vm"};
    OnHello(fleet, HelloOf(key), kNow);
    OnNic(fleet, key, {}, kNow);  // It wants four.
  }
  Effects effects;
  EXPECT_TRUE(MayFree(fleet, 1, few, effects, kNow)) << "of two that are attached";
  EXPECT_FALSE(MayFree(fleet, 1, few, effects, kNow));
  ASSERT_EQ(effects.findings.size(), 1U);
  EXPECT_THAT(effects.findings[0].detail, testing::HasSubstr("of 3 attached"))
      << "with the one that may go";
}

TEST(FleetPlan, MachinesThatAreAboutToBeDeletedGiveBackWhatMayGoAndFreezeNothing) {
  Fleet fleet({Pool("default", "10.1.0.0/16")}, Policy());
  int asked = 0;
  for (int i = 0; i < 100; ++i) {
    const NodeKey key{"node" + std::to_string(i), "vm"};
    OnHello(fleet, HelloOf(key), kNow);
    Attach(fleet, key);
  }
  for (int i = 0; i < 100; ++i) {
    const NodeKey key{"node" + std::to_string(i), "vm"};
    fleet.ending[key] = {.kind = "Preempt", .announced = true, .believed = true};
    const Effects effects = ReviewNode(fleet, key, {}, kNow);
    EXPECT_TRUE(effects.attach.empty());
    asked += effects.reclaim.empty() ? 0 : 1;
  }
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, 50);
  EXPECT_FALSE(fleet.breaker.frozen()) << "agents that lie do not stop the fleet";
  fleet.ending.clear();
  EXPECT_EQ(TargetOf(fleet, *fleet.ledger.Find({"node99", "vm"})), 4U);
}

TEST(FleetCloud, AVmMissingTwiceFromTheListIsGoneUnlessItsAgentIsThere) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnHello(fleet, HelloOf(kNode2), kNow);
  Attach(fleet, kNode2);
  EXPECT_FALSE(OnListing(fleet, {kNode2}, {kNode2}, kNow).Stores());
  EXPECT_FALSE(OnListing(fleet, {kNode1, kNode2}, {kNode2}, kNow).Stores());  // Back again.
  OnListing(fleet, {kNode2}, {kNode2}, kNow);
  EXPECT_FALSE(OnListing(fleet, {kNode2}, {kNode1, kNode2}, kNow).Stores());  // It speaks.
  const Effects gone = OnListing(fleet, {kNode2}, {kNode2}, kNow);
  ASSERT_EQ(gone.findings.size(), 1U);
  EXPECT_EQ(gone.findings[0].kind, Finding::Kind::kGone);
  EXPECT_EQ(fleet.ledger.pools()[0].pool.StateOf(A("10.1.0.4")), State::kCooldown);
  CheckInvariants(fleet.ledger);
}

// A server that waits in a recovery asks it whom it need not wait for.
TEST(FleetCloud, AMachineMissingTwiceIsGoneMeanwhileUnlessTooManyAre) {
  Fleet fleet({Pool("default", "10.1.0.0/16")}, Policy());
  std::set<NodeKey> all;
  for (int i = 0; i < 100; ++i) {
    const NodeKey key{"node" + std::to_string(i), "vm"};
    OnHello(fleet, HelloOf(key), kNow);
    Attach(fleet, key);
    all.insert(key);
  }
  const NodeKey first{"node1", "vm"};
  const NodeKey second{"node2", "vm"};
  std::set<NodeKey> fewer = all;
  fewer.erase(first);
  fewer.erase(second);
  std::set<NodeKey> half(all.begin(), std::next(all.begin(), 50));
  half.erase(first);
  EXPECT_TRUE(GoneMeanwhile(fleet, fewer, {}).empty()) << "one listing is not believed";
  EXPECT_EQ(GoneMeanwhile(fleet, fewer, {second}), std::vector{first}) << "the other one speaks";
  EXPECT_EQ(GoneMeanwhile(fleet, fewer, {}), (std::vector{first, second}));
  EXPECT_TRUE(GoneMeanwhile(fleet, half, {}).empty()) << "the listing may not be whole";

  const NodeKey successor{first.name, "vm-of-another"};
  OnHello(fleet, HelloOf(successor, "another boot"), kNow);
  half.insert(successor);
  EXPECT_EQ(GoneMeanwhile(fleet, half, {successor}), std::vector{first}) << "it has its name";
  EXPECT_FALSE(fleet.breaker.frozen()) << "nothing would be freed";
}

TEST(FleetCloud, AListThatSuddenlyShrinksFreezesInsteadOfFreeing) {
  Fleet fleet({Pool("default", "10.1.0.0/16")}, Policy());
  std::set<NodeKey> few;
  for (int i = 0; i < 100; ++i) {
    const NodeKey key{"node" + std::to_string(i), "vm"};
    OnHello(fleet, HelloOf(key), kNow);
    Attach(fleet, key);
    if (i < 50) few.insert(key);
  }
  OnListing(fleet, few, {}, kNow);
  const Effects effects = OnListing(fleet, few, {}, kNow);
  EXPECT_TRUE(effects.changed.empty());
  EXPECT_TRUE(fleet.breaker.frozen());
  EXPECT_EQ(fleet.ledger.pools()[0].pool.held(), 400U);
}

TEST(FleetOperator, ADrainedNodeGivesBackWhatIsAvailableAndGetsNothing) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  const auto drained = SetMode(fleet, "node1", NodeMode::kDraining, kNow);
  ASSERT_TRUE(drained.ok());
  EXPECT_EQ(drained->reclaim.at(kNode1).size(), 3U);
  EXPECT_EQ(TargetOf(fleet, *fleet.ledger.Find(kNode1)), 0U);
  OnReclaimAnswer(fleet, kNode1, {.agreed = drained->reclaim.at(kNode1)}, kNow);
  EXPECT_TRUE(PlanNode(fleet, kNode1, kNow).changed.empty());
  OnReport(fleet, kNode1, {.released = {{A("10.1.0.4"), 1}}, .cooled = {A("10.1.0.4")}}, kNow);
  EXPECT_EQ(OnHello(fleet, HelloOf(kNode1), kNow).reclaim.at(kNode1), std::vector{One("10.1.0.4")});
  ASSERT_TRUE(SetMode(fleet, "node1", NodeMode::kActive, kNow).ok());
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).attaching, 3U);
}

TEST(FleetOperator, AFrozenNodeKeepsJustWhatItHas) {
  Fleet fleet = WithSurplus();
  ASSERT_TRUE(SetMode(fleet, "node1", NodeMode::kFrozen, kNow).ok());
  EXPECT_TRUE(ReviewNode(fleet, kNode1, {}, kNow + absl::Hours(1)).reclaim.empty());
  node_api::AssignmentReport all;
  for (const ip::Prefix& range : RangesOf(fleet, kNode1)) {
    all.in_use.push_back(AssignmentOf(range.base(), 99));
  }
  OnReport(fleet, kNode1, all, kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).attaching, 0U);
}

TEST(FleetOperator, AReleaseIsRefusedForWhatIsUsedFreeForeignOrAnothers) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  EXPECT_EQ(Release(fleet, A("10.1.0.4"), "").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Release(fleet, A("10.1.0.5"), "node2").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Release(fleet, A("10.1.0.99"), "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Release(fleet, A("192.0.2.1"), "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Release(fleet, A("10.1.0.5"), "node1")->reclaim.at(kNode1),
            std::vector{One("10.1.0.5")});
  EXPECT_EQ(SetMode(fleet, "node9", NodeMode::kDraining, kNow).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(FleetReservations, AReservationIsHeldForItsNodesAndEndsWithItsTime) {
  Fleet fleet({Pool("default", "10.1.0.0/28")}, Policy());  // Eleven addresses.
  OnHello(fleet, HelloOf(kNode1), kNow);
  OnHello(fleet, HelloOf(kNode2), kNow);
  const ReservationRequest job{
      .name = "job", .nodes = {"node1"}, .addresses_per_node = 3, .ttl = absl::Hours(1)};
  EXPECT_FALSE(Reserve(fleet, job, kNow, /*dry_run=*/true)->Stores());
  const auto reserved = Reserve(fleet, job, kNow, /*dry_run=*/false);
  ASSERT_TRUE(reserved.ok()) << reserved.status();
  EXPECT_EQ(reserved->reservations, std::set<std::string>{"job"});
  EXPECT_EQ(reserved->plan, std::set{kNode1});
  EXPECT_EQ(PromisedOf(fleet, "default"), 3U) << "promised at once, and assigned some at a time";
  PlanNode(fleet, kNode1, kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).attaching, 7U);
  EXPECT_EQ(Reserve(fleet, job, kNow, false).status().code(), absl::StatusCode::kAlreadyExists);
  ReservationRequest more = job;
  more.name = "more";
  EXPECT_EQ(Reserve(fleet, more, kNow, false).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Expire(fleet, kNow + absl::Hours(2)).reservations, std::set<std::string>{"job"});
  EXPECT_EQ(TargetOf(fleet, *fleet.ledger.Find(kNode1)), 4U);
}

TEST(FleetReservations, WhatIsPromisedToNodesStillToComeIsNotGivenToOthers) {
  Fleet fleet({Pool("default", "10.1.0.0/28")}, Policy());  // Eleven addresses.
  OnHello(fleet, HelloOf(kNode1), kNow);                    // Has four of them.
  ASSERT_TRUE(Reserve(fleet,
                      {.name = "job", .count = 1, .addresses_per_node = 3, .ttl = absl::Hours(1)},
                      kNow, false)
                  .ok());
  Attach(fleet, kNode1);
  node_api::AssignmentReport all;
  for (const ip::Prefix& range : RangesOf(fleet, kNode1)) {
    all.in_use.push_back(AssignmentOf(range.base(), 1));
  }
  OnReport(fleet, kNode1, all, kNow);
  Attach(fleet, kNode1);
  for (const ip::Prefix& range : RangesOf(fleet, kNode1)) {
    all.in_use.push_back(AssignmentOf(range.base(), 2));
  }
  OnReport(fleet, kNode1, all, kNow);  // Would like twelve, and four of the seven left are its own.
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).total(), 8U);
  EXPECT_EQ(PromisedOf(fleet, "default"), 3U);
  OnHello(fleet, HelloOf(kNode2), kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode2)).total(), 3U);
  EXPECT_EQ(PromisedOf(fleet, "default"), 0U);
  CheckInvariants(fleet.ledger);
}

TEST(FleetPools, SettingTheSamePoolsTouchesNothing) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const PoolEntry* before = &fleet.ledger.pools()[0];
  const auto same = SetPools(fleet, {Pool("default", "10.1.0.0/24")}, kNow);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->desired.empty());
  EXPECT_EQ(&fleet.ledger.pools()[0], before);
}

TEST(FleetPools, ReplacingPoolsKeepsWhatIsInCooldownOrQuarantine) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24"), Pool("other", "10.2.0.0/24")});
  ASSERT_TRUE(SetQuarantine(fleet, A("10.1.0.200"), Quarantine{.reason = "broken"}, kNow).ok());
  const std::set<ip::Prefix> held = RangesOf(fleet, kNode1);
  OnReclaimAnswer(fleet, kNode1, {.agreed = {held.begin(), held.end()}}, kNow);
  OnNic(fleet, kNode1, {}, kNow);
  ASSERT_EQ(PoolNamed(fleet, "default")->pool.cooldown(), 4U);
  const absl::Status cut =
      SetPools(fleet, {Pool("default", "10.1.0.0/25"), Pool("other", "10.2.0.0/24")}, kNow)
          .status();
  EXPECT_EQ(cut.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(cut.message().find("10.1.0.200/32 is in cooldown or in quarantine"),
            absl::string_view::npos)
      << cut;
  EXPECT_FALSE(SetPools(fleet, {Pool("other", "10.2.0.0/24")}, kNow).ok());
  ASSERT_TRUE(
      SetPools(fleet, {Pool("new", "10.3.0.0/24"), Pool("default", "10.1.0.0/23")}, kNow).ok());
  CheckInvariants(fleet.ledger);
  const AddressPool& pool = PoolNamed(fleet, "default")->pool;
  EXPECT_EQ(pool.cooldown(), 4U);
  EXPECT_EQ(pool.quarantined(), 1U);
  EXPECT_EQ(pool.StateOf(A("10.1.0.4")), AddressPool::State::kCooldown);
  EXPECT_EQ(PoolNamed(fleet, "other"), nullptr);
  Expire(fleet, kNow + absl::Minutes(1));
  EXPECT_EQ(pool.cooldown(), 0U);
}

}  // namespace
}  // namespace spoke::ipam
