// While the store may be older than what nodes were told.
#include "ipam-server/ledger/decisions/inventory.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/decisions/reservations.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

// Returns what the node has and does not give up.
std::vector<ip::Address> HeldBy(const Fleet& fleet, const NodeKey& key) {
  std::vector<ip::Address> held;
  for (const auto& [base, configuration] : fleet.ledger.Find(key)->configurations) {
    if (configuration.state == AddressState::kDetaching) continue;
    for (size_t i = 0; i < configuration.slots.size(); ++i) {
      held.push_back(configuration.AddressAt(i));
    }
  }
  return held;
}

class FleetRecovery : public testing::Test {
 protected:
  // The old store knows of node1 with .4 to .7, and of node2 with .8 to .11.
  FleetRecovery() {
    for (const NodeKey& key : {kNode1, kNode2}) {
      OnHello(fleet_, HelloOf(key), kNow);
      Attach(fleet_, key);
    }
    fleet_.hold.active = true;
  }
  Effects Speak(const NodeKey& key, std::vector<ip::Address> held,
                std::vector<node_api::Assignment> in_use = {}) {
    node_api::Hello hello = HelloOf(key, "boot of " + key.vm_id);
    hello.in_use = in_use;
    Effects effects = OnHello(fleet_, hello, kNow);
    effects.Merge(
        OnInventory(fleet_, key, {.held = std::move(held), .in_use = std::move(in_use)}, kNow));
    CheckInvariants(fleet_.ledger);
    return effects;
  }

  Fleet fleet_{{Pool("default", "10.1.0.0/24")}, Policy()};
  const NodeKey node3_{"node3", "vm-3"};
};

TEST_F(FleetRecovery, NothingIsAssignedAskedForOrFreed) {
  EXPECT_THAT(PlanNode(fleet_, kNode1, kNow).changed, IsEmpty());
  OnHello(fleet_, HelloOf(node3_, "boot-3"), kNow);
  EXPECT_EQ(CountAddresses(*fleet_.ledger.Find(node3_)).total(), 0U);
  ASSERT_TRUE(SetMode(fleet_, "node1", NodeMode::kDraining, kNow)->reclaim.empty());
  for (int i = 0; i < 3; ++i) OnListing(fleet_, {}, {}, kNow);
  EXPECT_NE(HolderOf(fleet_.ledger, A("10.1.0.4")), nullptr);
  EXPECT_EQ(Release(fleet_, A("10.1.0.4"), "").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      Reserve(fleet_,
              {.name = "job", .nodes = {"node2"}, .addresses_per_node = 1, .ttl = absl::Hours(1)},
              kNow, false)
          .status()
          .code(),
      absl::StatusCode::kFailedPrecondition);
}

TEST_F(FleetRecovery, WhatANodeHasAndNobodyHadBecomesItsOwn) {
  Speak(node3_, {A("10.1.0.20"), A("10.1.0.21")}, {AssignmentOf(A("10.1.0.20"), 7)});
  EXPECT_EQ(CountAddresses(*fleet_.ledger.Find(node3_)),
            (AddressCounts{.available = 1, .in_use = 1}));
  EXPECT_EQ(SlotOf(fleet_, node3_, "10.1.0.20").generation, 7U);
  const Effects over = EndHold(fleet_, {node3_}, kNow);
  EXPECT_TRUE(over.resend.contains(node3_));
  EXPECT_TRUE(over.plan.contains(kNode1));
  PlanNode(fleet_, node3_, kNow);
  EXPECT_EQ(CountAddresses(*fleet_.ledger.Find(node3_)).total(), 4U)
      << "it gets the rest of its target";
}

TEST_F(FleetRecovery, WhatMovedSinceGoesToWhoHasItOnceTheOtherHasSpoken) {
  Speak(node3_, {A("10.1.0.4")}, {AssignmentOf(A("10.1.0.4"), 1)});
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4"))->key, kNode1) << "who has yet to speak";
  EXPECT_EQ(fleet_.hold.claims.size(), 1U);
  Speak(kNode1, {A("10.1.0.5"), A("10.1.0.6"), A("10.1.0.7")});
  const Effects over = EndHold(fleet_, {kNode1, node3_}, kNow);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4"))->key, node3_);
  EXPECT_THAT(over.greet_anew, ElementsAre(Key(node3_))) << "its assignments were not taken";
  CheckInvariants(fleet_.ledger);
}

TEST_F(FleetRecovery, WhatMovedFromANodeThatHasSpokenGoesAtOnce) {
  Speak(kNode1, {A("10.1.0.5")});
  Speak(node3_, {A("10.1.0.4")}, {AssignmentOf(A("10.1.0.4"), 1)});
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4"))->key, node3_);
  EXPECT_THAT(EndHold(fleet_, {kNode1, node3_}, kNow).greet_anew, ElementsAre(Key(node3_)));
}

// The store may be of the time between an agent's word and the cloud's deed.
TEST_F(FleetRecovery, WhatANodeGaveUpSinceIsFreeOnceItIsOffTheNic) {
  Speak(kNode1, {A("10.1.0.5")});
  const AddressPool* pool = &fleet_.ledger.pools().Covering(A("10.1.0.4"))->pool;
  EXPECT_EQ(pool->StateOf(A("10.1.0.4")), AddressPool::State::kHeld);
  const Effects over = EndHold(fleet_, {kNode1}, kNow);
  EXPECT_TRUE(over.attach.contains(kNode1));
  EXPECT_TRUE(over.changed.contains(kNode1));
  EXPECT_EQ(pool->StateOf(A("10.1.0.4")), AddressPool::State::kHeld) << "perhaps it is on the NIC";
  EXPECT_EQ(fleet_.ledger.Find(kNode1)->Holding(A("10.1.0.4"))->state, AddressState::kDetaching);
  Attach(fleet_, kNode1);
  EXPECT_EQ(pool->StateOf(A("10.1.0.4")), AddressPool::State::kCooldown);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.8"))->key, kNode2)
      << "a silent node keeps what it had";
  CheckInvariants(fleet_.ledger);
}

// The store has it in use by a pod of the boot before, so that it rests since the hello.
TEST_F(FleetRecovery, WhatANodeGaveUpSinceIsNotListedAgainThoughItsBootMadeItRest) {
  fleet_.hold.active = false;
  OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  fleet_.hold.active = true;
  Speak(kNode1, {A("10.1.0.5")});
  ASSERT_EQ(SlotOf(fleet_, kNode1, "10.1.0.4").use, Use::kCooldown);
  EndHold(fleet_, {kNode1}, kNow);
  EXPECT_EQ(fleet_.ledger.Find(kNode1)->Holding(A("10.1.0.4"))->state, AddressState::kDetaching)
      << "its NIC need not have it";
  CheckInvariants(fleet_.ledger);
  Attach(fleet_, kNode1);
  const AddressPool& pool = fleet_.ledger.pools().Covering(A("10.1.0.4"))->pool;
  EXPECT_EQ(pool.StateOf(A("10.1.0.4")), AddressPool::State::kCooldown);
  CheckInvariants(fleet_.ledger);
}

TEST_F(FleetRecovery, WhatASilentNodeHadGoesToWhoHasIt) {
  Speak(node3_, {A("10.1.0.8")}, {AssignmentOf(A("10.1.0.8"), 1)});
  const Effects over = EndHold(fleet_, {kNode1, node3_}, kNow);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.8"))->key, node3_);
  EXPECT_TRUE(over.changed.contains(kNode2));
  CheckInvariants(fleet_.ledger);
}

TEST(FleetRecoveryEnd, WhatTheSilentHaveByAnOldStoreIsToldOnceTheNicHasIt) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnHello(fleet, HelloOf(kNode2), kNow);
  Attach(fleet, kNode2);
  const ip::Address used = RangesOf(fleet, kNode1).begin()->base();
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(used, 1)}}, kNow);
  const auto counts_of = [&](const NodeKey& key) {
    return CountAddresses(*fleet.ledger.Find(key));
  };
  const AddressCounts before = counts_of(kNode1);
  const AddressCounts others = counts_of(kNode2);
  ASSERT_GT(before.available, 0U);
  Effects effects;
  Doubt(fleet, {kNode1}, effects, kNow);
  CheckInvariants(fleet.ledger);
  EXPECT_THAT(effects.changed, ElementsAre(kNode1));
  EXPECT_EQ(counts_of(kNode1).available, 0U);
  EXPECT_EQ(counts_of(kNode1).in_use, 1U) << "a pod goes on";
  EXPECT_EQ(counts_of(kNode2), others) << "it has spoken";
  Attach(fleet, kNode1);
  EXPECT_EQ(counts_of(kNode1).cooldown, before.available) << "a pod may just have had it";
}

// Its agent lets rest what it is listed after a boot; what is in quarantine it is listed later.
TEST(FleetBoot, WhatIsInQuarantineRestsToo) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const ip::Address withheld = RangesOf(fleet, kNode1).begin()->base();
  ASSERT_TRUE(
      SetQuarantine(fleet, withheld, Quarantine{.reason = "a test", .since = kNow}, kNow).ok());
  OnHello(fleet, HelloOf(kNode1, "another boot"), kNow);
  const Configuration* configuration = fleet.ledger.Find(kNode1)->Holding(withheld);
  ASSERT_NE(configuration, nullptr);
  EXPECT_EQ(configuration->At(withheld).use, Use::kCooldown);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).cooldown, 1U) << "the others it is listed";
  CheckInvariants(fleet.ledger);
}

TEST(FleetRecoveryEnd, AMachineThatHasItsNameAgainIsLookedAt) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  EXPECT_FALSE(OnHello(fleet, HelloOf(kNode1), kNow).attach.contains(kNode1));
  OnHello(fleet, HelloOf({kNode1.name, "vm-9"}, "another boot"), kNow);
  EXPECT_TRUE(OnHello(fleet, HelloOf(kNode1), kNow).attach.contains(kNode1));
}

TEST_F(FleetRecovery, WhatTwoSayTheyHaveStaysAndIsTold) {
  Speak(node3_, {A("10.1.0.4")});
  Speak(kNode1, HeldBy(fleet_, kNode1));
  const Effects over = EndHold(fleet_, {kNode1, node3_}, kNow);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4"))->key, kNode1);
  ASSERT_EQ(over.findings.size(), 1U);
  EXPECT_EQ(over.findings[0].kind, Finding::Kind::kHeldElsewhere);
}

TEST_F(FleetRecovery, AClaimBeyondTheNicIsRefused) {
  std::vector<ip::Address> all;
  for (uint64_t i = 12; i < 250; ++i) all.push_back(ip::Advance(A("10.1.0.0"), i));
  FleetPolicy policy = Policy();
  policy.nic_configurations = 100;
  Fleet fleet({Pool("default", "10.1.0.0/24")}, policy);
  fleet.hold.active = true;
  OnHello(fleet, HelloOf(kNode1), kNow);
  OnInventory(fleet, kNode1, {.held = all}, kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)).total(), 100U);
}

TEST_F(FleetRecovery, WhatARefusedNodeUsesIsKeptFromOthersForAWhile) {
  node_api::Hello hello = HelloOf(node3_);
  hello.in_use = {AssignmentOf(A("10.1.0.30"), 1), AssignmentOf(A("10.1.0.4"), 2)};
  Effects effects;
  HoldClaims(fleet_, hello, effects, kNow);
  EXPECT_EQ(effects.quarantined, std::set{A("10.1.0.30")}) << "the other is node1's";
  EXPECT_EQ(fleet_.ledger.Find(node3_), nullptr);
  Expire(fleet_, kNow + Policy().conflict.quarantine);
  EXPECT_TRUE(fleet_.ledger.quarantine().entries.empty());
}

TEST_F(FleetRecovery, ARefusedNodeKeepsNoMoreThanANicTakesHoweverOftenItTries) {
  Fleet fleet({Pool("default", "10.1.0.0/16")}, Policy());
  absl::Time now = kNow;
  for (uint64_t attempt = 0; attempt < 50; ++attempt) {
    node_api::Hello hello = HelloOf(node3_);
    for (uint64_t i = 0; i < 200; ++i) {
      hello.in_use.push_back(AssignmentOf(ip::Advance(A("10.1.1.0"), 200 * attempt + i), 1));
    }
    Effects effects;
    HoldClaims(fleet, hello, effects, now);
    now += absl::Seconds(1);
  }
  EXPECT_EQ(fleet.ledger.quarantine().entries.size(), 255U);
}

TEST_F(FleetRecovery, WhatARefusedNodeSaysAgainIsKeptForAsLongAgain) {
  node_api::Hello hello = HelloOf(node3_);
  hello.in_use = {AssignmentOf(A("10.1.0.30"), 1)};
  for (int minutes = 0; minutes <= 60; minutes += 5) {
    Effects effects;
    Expire(fleet_, kNow + absl::Minutes(minutes));
    EXPECT_EQ(fleet_.ledger.quarantine().entries.contains(A("10.1.0.30")), minutes > 0)
        << "without a gap";
    HoldClaims(fleet_, hello, effects, kNow + absl::Minutes(minutes));
  }
}

// Whatever the old store says, and in whatever order nodes speak: once all have, each has just what
// it has, and none has another's.
TEST(FleetRecoveryProperty, OnceAllHaveSpokenTheRecordsAreWhatNodesHave) {
  testing_support::Random random;
  for (int world = 0; world < testing_support::kRandomCases / 50; ++world) {
    Fleet fleet({Pool("default", "10.1.0.0/26")}, Policy());
    std::vector<NodeKey> nodes;
    for (int i = 0; i < 5; ++i) nodes.push_back({"node" + std::to_string(i), "vm"});
    for (const NodeKey& key : nodes) {
      if (random.OneIn(4)) continue;  // The old store does not know it.
      OnHello(fleet, HelloOf(key, "boot"), kNow);
      Attach(fleet, key);
    }
    std::map<NodeKey, std::vector<ip::Address>> truth;
    for (uint64_t offset = 4; offset < 63; ++offset) {
      if (random.OneIn(3)) continue;
      truth[nodes[random.Between(0, 4)]].push_back(ip::Advance(A("10.1.0.0"), offset));
    }
    fleet.hold.active = true;
    std::set<NodeKey> spoken;
    for (int step = 0; step < 40; ++step) {
      const NodeKey& key = nodes[step < 20 ? random.Between(0, 4) : static_cast<size_t>(step) % 5];
      OnHello(fleet, HelloOf(key, "boot"), kNow);
      OnInventory(fleet, key, {.held = truth[key]}, kNow);
      spoken.insert(key);
    }
    EndHold(fleet, spoken, kNow);
    CheckInvariants(fleet.ledger);
    for (const NodeKey& key : nodes) ASSERT_EQ(HeldBy(fleet, key), truth[key]);
  }
}

// A backup was restored that is older than one of its pools: no record can hold what pods have of
// that.
class FleetLostPool : public testing::Test {
 protected:
  static node_api::Hello HelloWith(const NodeKey& key, const std::vector<std::string>& used) {
    node_api::Hello hello = HelloOf(key, "boot of " + key.vm_id);
    hello.node.instance = "/subscriptions/s/instances/" + key.vm_id;
    hello.node.subnets = {ip::Prefix::Parse("10.9.0.0/24").value()};
    for (const std::string& address : used) hello.in_use.push_back(AssignmentOf(A(address), 1));
    return hello;
  }
  Effects Greet(const NodeKey& key, const std::vector<std::string>& used) {
    return OnHello(fleet_, HelloWith(key, used), kNow);
  }
  // What the NIC has, as spoke-1, spoke-2 and so on.
  void Show(const NodeKey& key, const std::vector<std::string>& addresses) {
    std::vector<IpConfiguration> entries;
    for (const std::string& address : addresses) {
      entries.push_back({"spoke-" + std::to_string(entries.size() + 1), One(address)});
    }
    OnNic(fleet_, key, entries, kNow);
    CheckInvariants(fleet_.ledger);
  }

  Fleet fleet_{{Pool("default", "10.1.0.0/24")}, Choosing()};
};

TEST_F(FleetLostPool, WhatAPodUsesStaysOnItsNic) {
  EXPECT_EQ(Greet(kNode1, {"10.9.0.4"}).findings.at(0).kind, Finding::Kind::kForeign);
  Show(kNode1, {"10.9.0.4", "10.9.0.5"});
  OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(A("10.9.0.6"), 1)}}, kNow);
  Show(kNode1, {"10.9.0.4", "10.9.0.5", "10.9.0.6"});
  const auto given_back = [&](const char* name) {
    return fleet_.ledger.Find(kNode1)->wanted.at(name).given_back;
  };
  ASSERT_TRUE(SetMode(fleet_, kNode1.name, NodeMode::kDraining, kNow).ok());
  EXPECT_TRUE(given_back("spoke-2")) << "no pod has it";
  EXPECT_FALSE(given_back("spoke-1")) << "its agent said hello with it";
  EXPECT_FALSE(given_back("spoke-3")) << "its agent reported it since";

  const Effects released =
      OnReport(fleet_, kNode1, {.released = {{A("10.9.0.4"), 1}, {A("10.9.0.6"), 1}}}, kNow);
  EXPECT_THAT(released.attach, ElementsAre(kNode1)) << "its NIC may be written again";
  ReviewNode(fleet_, kNode1, {}, kNow);
  EXPECT_TRUE(given_back("spoke-1"));
  EXPECT_TRUE(given_back("spoke-3"));
}

// What agents said is not stored: a server that has just started knows nothing of it.
TEST_F(FleetLostPool, WhatAPodMayUseStaysOnItsNicUntilItsAgentHasSpoken) {
  Greet(kNode1, {"10.9.0.4"});
  Show(kNode1, {"10.9.0.4", "10.9.0.5"});
  Fleet restarted({Pool("default", "10.1.0.0/24")}, Choosing());
  ASSERT_TRUE(restarted.ledger.Upsert(*fleet_.ledger.Find(kNode1)).ok());
  FinishLoading(restarted, kNow);
  const auto given_back = [&](const char* name) {
    return restarted.ledger.Find(kNode1)->wanted.at(name).given_back;
  };
  ASSERT_TRUE(SetMode(restarted, kNode1.name, NodeMode::kDraining, kNow).ok());
  EXPECT_FALSE(given_back("spoke-1"));
  EXPECT_FALSE(given_back("spoke-2"));

  OnHello(restarted, HelloWith(kNode1, {"10.9.0.4"}), kNow);
  ReviewNode(restarted, kNode1, {}, kNow);
  EXPECT_FALSE(given_back("spoke-1"));
  EXPECT_TRUE(given_back("spoke-2")) << "no pod has it";
}

TEST_F(FleetLostPool, WhatPodsUseIsTheirNodesOnceItsPoolIsThereAgain) {
  Greet(kNode1, {"10.9.0.4"});
  Greet(kNode2, {});
  Show(kNode1, {"10.9.0.4"});
  Show(kNode2, {"10.9.0.5"});
  const auto changed =
      SetPools(fleet_, {Pool("default", "10.1.0.0/24"), Pool("lost", "10.9.0.0/24")}, kNow);
  ASSERT_TRUE(changed.ok()) << changed.status();
  ASSERT_NE(HolderOf(fleet_.ledger, A("10.9.0.4")), nullptr);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.9.0.4"))->key, kNode1);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.9.0.5")), nullptr) << "no pod has it";
  EXPECT_THAT(changed->greet_anew, ElementsAre(Key(kNode1))) << "it says whose it is";
  EXPECT_TRUE(changed->changed.contains(kNode1)) << "that is stored";
  EXPECT_THAT(Greet(kNode1, {"10.9.0.4"}).findings, IsEmpty());
  EXPECT_THAT(fleet_.used_unheld, IsEmpty());
  Show(kNode1, {"10.9.0.4"});
  EXPECT_EQ(CountAddresses(*fleet_.ledger.Find(kNode1)).in_use, 1U);
}

// An agent says what it likes; the NIC tells.
TEST_F(FleetLostPool, WhatItsNicHasNotIsNotKeptForIt) {
  Greet(kNode1, {});
  Show(kNode1, {});
  OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(A("10.9.0.4"), 1)}}, kNow);
  ASSERT_TRUE(
      SetPools(fleet_, {Pool("default", "10.1.0.0/24"), Pool("lost", "10.9.0.0/24")}, kNow).ok());
  ASSERT_NE(HolderOf(fleet_.ledger, A("10.9.0.4")), nullptr);
  OnNic(fleet_, kNode1, {}, kNow);
  const absl::Time later = kNow + fleet_.policy.lost_after;
  OnNic(fleet_, kNode1, {}, later);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.9.0.4")), nullptr) << "two looks do not find it";
  EXPECT_TRUE(Expire(fleet_, later).findings.empty()) << "nor is it taken again";
}

// Whoever had it by the store is gone, or has given it back.
TEST_F(FleetLostPool, WhatPodsUseIsTheirNodesOnceNoOtherHasIt) {
  Greet(kNode1, {});
  fleet_.ledger.Hold(*fleet_.ledger.Find(kNode1), One("10.1.0.9"), AddressState::kAttached, kNow);
  EXPECT_EQ(Greet(kNode2, {"10.1.0.9"}).findings.at(0).kind, Finding::Kind::kHeldElsewhere);
  EXPECT_THAT(Expire(fleet_, kNow).findings, IsEmpty());
  Effects gone;
  FreeGone(fleet_, *fleet_.ledger.Find(kNode1), gone, kNow);
  fleet_.hold.active = true;
  EXPECT_THAT(Expire(fleet_, kNow).findings, IsEmpty()) << "others may have it";
  fleet_.hold.active = false;
  fleet_.ledger.Find(kNode2)->mode = NodeMode::kRetired;
  EXPECT_THAT(Expire(fleet_, kNow).findings, IsEmpty()) << "who knows whether it runs";
  fleet_.ledger.Find(kNode2)->mode = NodeMode::kActive;
  const Effects taken = Expire(fleet_, kNow);
  ASSERT_EQ(taken.findings.size(), 0U) << "its pool does not serve the subnet of the node";

  node_api::Hello hello = HelloOf(kNode2, "boot of " + kNode2.vm_id);
  hello.node.subnets = {ip::Prefix::Parse("10.1.0.0/24").value()};
  OnHello(fleet_, hello, kNow);
  OnReport(fleet_, kNode2, {.in_use = {AssignmentOf(A("10.1.0.9"), 1)}}, kNow);
  const Effects adopted = Expire(fleet_, kNow);
  ASSERT_EQ(adopted.findings.size(), 1U);
  EXPECT_EQ(adopted.findings[0].kind, Finding::Kind::kAdopted);
  EXPECT_THAT(adopted.greet_anew, ElementsAre(Key(kNode2)));
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.9"))->key, kNode2);
  CheckInvariants(fleet_.ledger);
}

// The server may have given it to the node since, which is no more than what it says.
TEST_F(FleetLostPool, WhatTheNodeHasByNowHoldsNothingUp) {
  Greet(kNode1, {});
  OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(A("10.1.0.9"), 1)}}, kNow);
  EXPECT_TRUE(UsesUnheld(fleet_, *fleet_.ledger.Find(kNode1)));
  fleet_.ledger.Hold(*fleet_.ledger.Find(kNode1), One("10.1.0.9"), AddressState::kAttached, kNow);
  EXPECT_FALSE(UsesUnheld(fleet_, *fleet_.ledger.Find(kNode1)));
  OnReport(fleet_, kNode1, {.released = {{A("10.1.0.9"), 1}}}, kNow);
  EXPECT_THAT(fleet_.used_unheld, IsEmpty()) << "the pod is gone";
  EXPECT_FALSE(UsesUnheld(fleet_, *fleet_.ledger.Find(kNode1)));
}

TEST_F(FleetLostPool, WhatIsSaidToBeUsedIsForgottenWithTheNextHello) {
  Greet(kNode1, {"10.9.0.4"});
  Greet(kNode2, {});
  EXPECT_TRUE(MayBeClaimed(fleet_, kNode1, One("10.9.0.4")));
  EXPECT_FALSE(MayBeClaimed(fleet_, kNode2, One("10.9.0.4")));
  Greet(kNode1, {});
  EXPECT_FALSE(MayBeClaimed(fleet_, kNode1, One("10.9.0.4")));
  for (uint32_t i = 0; i < 2 * fleet_.policy.nic_configurations; ++i) {
    OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(ip::Advance(A("10.9.0.0"), i), 1)}}, kNow);
  }
  EXPECT_EQ(fleet_.used_unheld.at(kNode1).size(), fleet_.policy.nic_configurations)
      << "no agent fills the server's memory";
}

}  // namespace
}  // namespace spoke::ipam
