// What nodes get and give back, pools by labels and namespaces, and what operators want.
#include <algorithm>

#include "gtest/gtest.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/fleet_for_test.h"

namespace spoke::ipam {
namespace {

using State = AddressPool::State;

TEST(FleetPools, BothFamiliesAreProvidedWhereBothHavePools) {
  const Fleet fleet = WithAttachedNode({Pool("four", "10.1.0.0/24"), Pool("six", "fd00::/64")});
  EXPECT_EQ(fleet.PoolNamed("four")->counts.available, 4U);
  EXPECT_EQ(fleet.PoolNamed("six")->counts.available, 4U);
  EXPECT_EQ(fleet.TargetOf(*fleet.Find(kNode1)), 8U);
}

TEST(FleetPools, ASecondSubnetTakesOverWhereTheFirstEnds) {
  const Fleet fleet = WithAttachedNode({Pool("tiny", "10.1.0.0/29"), Pool("next", "10.2.0.0/24")});
  EXPECT_EQ(fleet.PoolNamed("tiny")->counts.available, 3U);
  EXPECT_EQ(fleet.PoolNamed("next")->counts.available, 1U);
}

TEST(FleetPools, ANodeDrawsOnlyFromPoolsOfItsLabelsAndNetwork) {
  PoolSpec gpu = Pool("gpu", "10.2.0.0/24");
  gpu.node_labels = {{"gpu", "h100"}};
  PoolSpec west = Pool("west", "10.3.0.0/24");
  west.vnet = "west";
  west.target = TargetPolicy{.min = 8, .batch = 4, .spare = 0, .max = 64};
  Fleet fleet({gpu, west}, Policy());
  fleet.OnHello(HelloOf(kNode1), kNow);
  EXPECT_NE(fleet.ShortageOf(*fleet.Find(kNode1)).find("no pool is meant for this node"),
            std::string::npos);
  node_api::Hello hello = HelloOf(kNode2);
  hello.node.labels = {{"gpu", "h100"}, {"zone", "1"}};
  fleet.OnHello(hello, kNow);
  EXPECT_EQ(fleet.PoolNamed("gpu")->counts.attaching, 4U);
  hello = HelloOf(kNode1);
  hello.node.vnet = "west";
  fleet.OnHello(hello, kNow);
  EXPECT_EQ(fleet.PoolNamed("west")->counts.attaching, 8U);  // Its own target.
}

TEST(FleetPools, APoolForSomeNamespacesIsHeldBesideTheGeneralOne) {
  PoolSpec blue = Pool("blue", "10.2.0.0/24");
  blue.namespaces = {"blue"};
  const Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24"), blue});
  EXPECT_EQ(fleet.PoolNamed("default")->counts.available, 4U);
  EXPECT_EQ(fleet.PoolNamed("blue")->counts.available, 4U);
}

TEST(FleetPools, BlocksAreAssignedByAddressAndReturnedWhole) {
  PoolSpec blocks = Pool("blocks", "10.1.0.0/24");
  blocks.block_length = 28;
  Fleet fleet = WithAttachedNode({blocks});
  ASSERT_EQ(RangesOf(fleet, kNode1), std::set{Block("10.1.0.16/28")});
  fleet.OnReport(kNode1, {.in_use = {AssignmentOf(A("10.1.0.20"), 1)}}, kNow);
  EXPECT_EQ(fleet.PoolNamed("blocks")->counts, (AddressCounts{.available = 15, .in_use = 1}));
  EXPECT_EQ(fleet.HolderOf(A("10.1.0.31"))->key, kNode1);
  fleet.OnReclaimAnswer(kNode1, {.agreed = {Block("10.1.0.16/28")}}, kNow);
  EXPECT_EQ(fleet.PoolNamed("blocks")->counts.detaching, 0U);  // One of it is assigned.
  fleet.OnReport(kNode1, {.released = {{A("10.1.0.20"), 1}}, .cooled = {A("10.1.0.20")}}, kNow);
  fleet.OnReclaimAnswer(kNode1, {.agreed = {Block("10.1.0.16/28")}}, kNow);
  EXPECT_EQ(fleet.PoolNamed("blocks")->counts.detaching, 16U);
}

TEST(FleetPools, AnExhaustedPoolIsNamedWithItsCounts) {
  Fleet fleet({Pool("tiny", "10.1.0.0/29")}, Policy());
  fleet.OnHello(HelloOf(kNode1), kNow);
  EXPECT_EQ(
      fleet.ShortageOf(*fleet.Find(kNode1)),
      "has 3 of 4 addresses: pool tiny (10.1.0.0/29): 3 usable, 3 attached, 0 in cooldown, 0 free");
}

TEST(FleetPools, ReplacingPoolsKeepsWhatIsHeldOrChangesNothing) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const absl::Status shrunk = fleet.SetPools({Pool("default", "10.1.0.128/25")});
  EXPECT_EQ(shrunk.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fleet.SetPools({}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fleet.pools()[0].pool.spec().cidr, Block("10.1.0.0/24"));
  ASSERT_TRUE(fleet.SetPools({Pool("default", "10.1.0.0/23"), Pool("six", "fd00::/64")}).ok());
  fleet.CheckInvariants();
  EXPECT_EQ(fleet.PoolNamed("default")->pool.held(), 4U);
  EXPECT_FALSE(fleet.Plan(kNode1, kNow).changed.empty());  // IPv6 has come.
}

// A node that had twelve addresses in use and has none now.
Fleet WithSurplus() {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  node_api::AssignmentReport in_use;
  node_api::AssignmentReport released;
  for (uint64_t i = 0; i < 12; ++i) {
    const ip::Address address = ip::Advance(A("10.1.0.4"), i);
    fleet.OnReport(kNode1, {.in_use = {AssignmentOf(address, i + 1)}}, kNow);
    Attach(fleet, kNode1);
    released.released.push_back({address, i + 1});
    released.cooled.push_back(address);
  }
  fleet.OnReport(kNode1, released, kNow);
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)).available, 16U);
  return fleet;
}

TEST(FleetRelease, AnAvailableSurplusIsAskedForDetachedAndInCooldownBeforeReuse) {
  Fleet fleet = WithSurplus();
  EXPECT_TRUE(fleet.Review(kNode1, 0, kNow + absl::Minutes(4)).reclaim.empty());
  const absl::Time later = kNow + absl::Minutes(5);
  const Effects asked = fleet.Review(kNode1, 0, later);
  ASSERT_EQ(asked.reclaim.at(kNode1).size(), 12U);
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)).available, 16U);  // Asking changes nothing.

  const Effects agreed = fleet.OnReclaimAnswer(kNode1, {.agreed = asked.reclaim.at(kNode1)}, later);
  EXPECT_EQ(agreed.attach, std::set{kNode1});
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)), (AddressCounts{.available = 4, .detaching = 12}));
  const Effects detached = Attach(fleet, kNode1, later);
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)), (AddressCounts{.available = 4}));
  EXPECT_EQ(fleet.pools()[0].pool.cooldown(), 12U);
  EXPECT_EQ(fleet.Find(kNode1)->released.size(), 12U);
  fleet.Expire(later + absl::Seconds(30));
  EXPECT_EQ(fleet.pools()[0].pool.cooldown(), 0U);
  EXPECT_TRUE(fleet.Review(kNode1, 0, later + absl::Hours(1)).reclaim.empty());  // No flapping.
  fleet.CheckInvariants();
}

TEST(FleetRelease, ADenialIsRememberedAndRespected) {
  Fleet fleet = WithSurplus();
  const absl::Time later = kNow + absl::Minutes(5);
  const Effects asked = fleet.Review(kNode1, 0, later);
  fleet.OnReclaimAnswer(kNode1, {.denied = asked.reclaim.at(kNode1)}, later);
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)).available, 16U);
  const std::vector<ip::Prefix> denied = asked.reclaim.at(kNode1);
  const Effects again = fleet.Review(kNode1, 0, later + absl::Minutes(1));
  for (const auto& [node, ranges] : again.reclaim) {
    for (const ip::Prefix& range : ranges) {
      EXPECT_EQ(std::count(denied.begin(), denied.end(), range), 0) << range.ToString();
    }
  }
  EXPECT_FALSE(fleet.Review(kNode1, 0, later + absl::Minutes(6)).reclaim.empty());
}

TEST(FleetRelease, AnAssignmentThatComesInBetweenIsNotTakenAway) {
  Fleet fleet = WithSurplus();
  const absl::Time later = kNow + absl::Minutes(5);
  const ip::Prefix range = fleet.Review(kNode1, 0, later).reclaim.at(kNode1)[0];
  fleet.OnReport(kNode1, {.in_use = {AssignmentOf(range.base(), 99)}}, later);
  EXPECT_TRUE(fleet.OnReclaimAnswer(kNode1, {.agreed = {range}}, later).attach.empty());
  // It agreed, and after a restart it assigns it all the same: the cloud is to keep it.
  const ip::Prefix other = fleet.Review(kNode1, 0, later + absl::Minutes(9)).reclaim.at(kNode1)[0];
  fleet.OnReclaimAnswer(kNode1, {.agreed = {other}}, later);
  node_api::Hello hello = HelloOf(kNode1);
  hello.in_use = {AssignmentOf(other.base(), 100), AssignmentOf(range.base(), 99)};
  EXPECT_TRUE(fleet.OnHello(hello, later).attach.contains(kNode1));
  EXPECT_EQ(fleet.Find(kNode1)->Holding(other.base())->state, AddressState::kAttaching);
}

TEST(FleetRelease, OnePassThatWouldFreeTooMuchFreezesAndOnlyAnOperatorLiftsIt) {
  FleetPolicy policy = Policy();
  policy.breaker = {.share = 0.05, .floor = 4, .window = absl::Minutes(1)};
  policy.release.hysteresis = 0;
  Fleet fleet({Pool("default", "10.1.0.0/16")}, policy);
  for (int i = 0; i < 100; ++i) {
    const NodeKey key{"node" + std::to_string(i), "vm"};
    fleet.OnHello(HelloOf(key), kNow);
    node_api::AssignmentReport in_use;
    for (const ip::Prefix& range : RangesOf(fleet, key)) {
      in_use.in_use.push_back(AssignmentOf(range.base(), 1));
    }
    Attach(fleet, key);
    fleet.OnReport(key, in_use, kNow);
    Attach(fleet, key);
    fleet.OnHello(HelloOf(key), kNow);  // All its pods are gone.
  }
  const absl::Time later = kNow + absl::Minutes(6);
  int asked = 0;
  std::vector<Finding> findings;
  for (int i = 0; i < 100; ++i) {
    const Effects effects = fleet.Review({"node" + std::to_string(i), "vm"}, 0, later);
    asked += effects.reclaim.empty() ? 0 : 1;
    findings.insert(findings.end(), effects.findings.begin(), effects.findings.end());
  }
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, 20);
  ASSERT_EQ(findings.size(), 1U);  // Said once.
  EXPECT_EQ(findings[0].kind, Finding::Kind::kFrozen);
  EXPECT_TRUE(fleet.breaker().frozen());
  EXPECT_TRUE(fleet.Review({"node99", "vm"}, 0, later + absl::Hours(1)).reclaim.empty());
  EXPECT_TRUE(fleet.Unfreeze(later).breaker);
  EXPECT_FALSE(fleet.Review({"node99", "vm"}, 0, later).reclaim.empty());
}

TEST(FleetCloud, AVmMissingTwiceFromTheListIsGoneUnlessItsAgentIsThere) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  fleet.OnHello(HelloOf(kNode2), kNow);
  Attach(fleet, kNode2);
  EXPECT_FALSE(fleet.OnListing({kNode2}, {kNode2}, kNow).Stores());
  EXPECT_FALSE(fleet.OnListing({kNode1, kNode2}, {kNode2}, kNow).Stores());  // Back again.
  fleet.OnListing({kNode2}, {kNode2}, kNow);
  EXPECT_FALSE(fleet.OnListing({kNode2}, {kNode1, kNode2}, kNow).Stores());  // It speaks.
  const Effects gone = fleet.OnListing({kNode2}, {kNode2}, kNow);
  ASSERT_EQ(gone.findings.size(), 1U);
  EXPECT_EQ(gone.findings[0].kind, Finding::Kind::kGone);
  EXPECT_EQ(fleet.pools()[0].pool.StateOf(A("10.1.0.4")), State::kCooldown);
  fleet.CheckInvariants();
}

TEST(FleetCloud, AListThatSuddenlyShrinksFreezesInsteadOfFreeing) {
  Fleet fleet({Pool("default", "10.1.0.0/16")}, Policy());
  std::set<NodeKey> few;
  for (int i = 0; i < 100; ++i) {
    const NodeKey key{"node" + std::to_string(i), "vm"};
    fleet.OnHello(HelloOf(key), kNow);
    Attach(fleet, key);
    if (i < 50) few.insert(key);
  }
  fleet.OnListing(few, {}, kNow);
  const Effects effects = fleet.OnListing(few, {}, kNow);
  EXPECT_TRUE(effects.changed.empty());
  EXPECT_TRUE(fleet.breaker().frozen());
  EXPECT_EQ(fleet.pools()[0].pool.held(), 400U);
}

TEST(FleetOperator, ADrainedNodeGivesBackWhatIsAvailableAndGetsNothing) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  fleet.OnReport(kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  const auto drained = fleet.SetMode("node1", NodeMode::kDraining, kNow);
  ASSERT_TRUE(drained.ok());
  EXPECT_EQ(drained->reclaim.at(kNode1).size(), 3U);
  EXPECT_EQ(fleet.TargetOf(*fleet.Find(kNode1)), 0U);
  fleet.OnReclaimAnswer(kNode1, {.agreed = drained->reclaim.at(kNode1)}, kNow);
  EXPECT_TRUE(fleet.Plan(kNode1, kNow).changed.empty());
  fleet.OnReport(kNode1, {.released = {{A("10.1.0.4"), 1}}, .cooled = {A("10.1.0.4")}}, kNow);
  EXPECT_EQ(fleet.OnHello(HelloOf(kNode1), kNow).reclaim.at(kNode1), std::vector{One("10.1.0.4")});
  ASSERT_TRUE(fleet.SetMode("node1", NodeMode::kActive, kNow).ok());
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)).attaching, 3U);
}

TEST(FleetOperator, AFrozenNodeKeepsJustWhatItHas) {
  Fleet fleet = WithSurplus();
  ASSERT_TRUE(fleet.SetMode("node1", NodeMode::kFrozen, kNow).ok());
  EXPECT_TRUE(fleet.Review(kNode1, 0, kNow + absl::Hours(1)).reclaim.empty());
  node_api::AssignmentReport all;
  for (const ip::Prefix& range : RangesOf(fleet, kNode1)) {
    all.in_use.push_back(AssignmentOf(range.base(), 99));
  }
  fleet.OnReport(kNode1, all, kNow);
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)).attaching, 0U);
}

TEST(FleetOperator, AReleaseIsRefusedForWhatIsUsedFreeForeignOrAnothers) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  fleet.OnReport(kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  EXPECT_EQ(fleet.Release(A("10.1.0.4"), "").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fleet.Release(A("10.1.0.5"), "node2").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fleet.Release(A("10.1.0.99"), "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fleet.Release(A("192.0.2.1"), "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fleet.Release(A("10.1.0.5"), "node1")->reclaim.at(kNode1),
            std::vector{One("10.1.0.5")});
  EXPECT_EQ(fleet.SetMode("node9", NodeMode::kDraining, kNow).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(FleetReservations, AReservationIsHeldForItsNodesAndEndsWithItsTime) {
  Fleet fleet({Pool("default", "10.1.0.0/28")}, Policy());  // Eleven addresses.
  fleet.OnHello(HelloOf(kNode1), kNow);
  fleet.OnHello(HelloOf(kNode2), kNow);
  const ReservationRequest job{
      .name = "job", .nodes = {"node1"}, .addresses_per_node = 3, .ttl = absl::Hours(1)};
  EXPECT_FALSE(fleet.Reserve(job, kNow, /*dry_run=*/true)->Stores());
  const auto reserved = fleet.Reserve(job, kNow, /*dry_run=*/false);
  ASSERT_TRUE(reserved.ok()) << reserved.status();
  EXPECT_EQ(reserved->reservations, std::set<std::string>{"job"});
  EXPECT_EQ(reserved->plan, std::set{kNode1});
  EXPECT_EQ(fleet.PromisedOf("default"), 3U) << "promised at once, and assigned some at a time";
  fleet.Plan(kNode1, kNow);
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)).attaching, 7U);
  EXPECT_EQ(fleet.Reserve(job, kNow, false).status().code(), absl::StatusCode::kAlreadyExists);
  ReservationRequest more = job;
  more.name = "more";
  EXPECT_EQ(fleet.Reserve(more, kNow, false).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fleet.Expire(kNow + absl::Hours(2)).reservations, std::set<std::string>{"job"});
  EXPECT_EQ(fleet.TargetOf(*fleet.Find(kNode1)), 4U);
}

TEST(FleetReservations, WhatIsPromisedToNodesStillToComeIsNotGivenToOthers) {
  Fleet fleet({Pool("default", "10.1.0.0/28")}, Policy());  // Eleven addresses.
  fleet.OnHello(HelloOf(kNode1), kNow);                     // Has four of them.
  ASSERT_TRUE(
      fleet
          .Reserve({.name = "job", .count = 1, .addresses_per_node = 3, .ttl = absl::Hours(1)},
                   kNow, false)
          .ok());
  Attach(fleet, kNode1);
  node_api::AssignmentReport all;
  for (const ip::Prefix& range : RangesOf(fleet, kNode1)) {
    all.in_use.push_back(AssignmentOf(range.base(), 1));
  }
  fleet.OnReport(kNode1, all, kNow);
  Attach(fleet, kNode1);
  for (const ip::Prefix& range : RangesOf(fleet, kNode1)) {
    all.in_use.push_back(AssignmentOf(range.base(), 2));
  }
  fleet.OnReport(kNode1, all, kNow);  // Would like twelve, and four of the seven left are its own.
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)).total(), 8U);
  EXPECT_EQ(fleet.PromisedOf("default"), 3U);
  fleet.OnHello(HelloOf(kNode2), kNow);
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode2)).total(), 3U);
  EXPECT_EQ(fleet.PromisedOf("default"), 0U);
  fleet.CheckInvariants();
}

TEST(FleetPools, SettingTheSamePoolsTouchesNothing) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const PoolEntry* before = fleet.pools().data();
  ASSERT_TRUE(fleet.SetPools({Pool("default", "10.1.0.0/24")}).ok());
  EXPECT_EQ(fleet.pools().data(), before);
}

TEST(FleetPools, ReplacingPoolsKeepsWhatIsInCooldownOrQuarantine) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24"), Pool("other", "10.2.0.0/24")});
  ASSERT_TRUE(fleet.SetQuarantine(A("10.1.0.200"), Quarantine{.reason = "broken"}, kNow).ok());
  const std::set<ip::Prefix> held = RangesOf(fleet, kNode1);
  fleet.OnReclaimAnswer(kNode1, {.agreed = {held.begin(), held.end()}}, kNow);
  fleet.OnNic(kNode1, {}, kNow);
  ASSERT_EQ(fleet.PoolNamed("default")->pool.cooldown(), 4U);
  const absl::Status cut =
      fleet.SetPools({Pool("default", "10.1.0.0/25"), Pool("other", "10.2.0.0/24")});
  EXPECT_EQ(cut.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(cut.message().find("10.1.0.200/32 is in cooldown or in quarantine"),
            absl::string_view::npos)
      << cut;
  EXPECT_FALSE(fleet.SetPools({Pool("other", "10.2.0.0/24")}).ok());
  ASSERT_TRUE(fleet.SetPools({Pool("new", "10.3.0.0/24"), Pool("default", "10.1.0.0/23")}).ok());
  fleet.CheckInvariants();
  const AddressPool& pool = fleet.PoolNamed("default")->pool;
  EXPECT_EQ(pool.cooldown(), 4U);
  EXPECT_EQ(pool.quarantined(), 1U);
  EXPECT_EQ(pool.StateOf(A("10.1.0.4")), AddressPool::State::kCooldown);
  EXPECT_EQ(fleet.PoolNamed("other"), nullptr);
  fleet.Expire(kNow + absl::Minutes(1));
  EXPECT_EQ(pool.cooldown(), 0U);
}

}  // namespace
}  // namespace spoke::ipam
