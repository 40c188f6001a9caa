// Which machine a node is, and who may say so.
#include "ipam-server/ledger/decisions/hello.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;
using testing::Key;
using testing::SizeIs;

constexpr const char* kPlace = "/subscriptions/s/instances/1";
constexpr const char* kOtherPlace = "/subscriptions/s/instances/2";

node_api::Hello HelloOn(const NodeKey& key, const std::string& instance,
                        std::string boot = "boot-1") {
  node_api::Hello hello = HelloOf(key, std::move(boot));
  hello.node.instance = instance;
  return hello;
}

class FleetIdentity : public testing::Test {
 protected:
  // Greets as the loop does it.
  absl::Status Greet(const node_api::Hello& hello, absl::Time now = kNow, bool proved = false) {
    if (absl::Status may = CheckIdentity(fleet_, hello, proved); !may.ok()) return may;
    last_ = OnHello(fleet_, hello, now, proved);
    CheckInvariants(fleet_.ledger);
    return absl::OkStatus();
  }
  void ExpectRefused(const node_api::Hello& hello, std::string_view why, bool proved = false) {
    const absl::Status status = Greet(hello, kNow, proved);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(why)));
  }

  Fleet fleet_{{Pool("default", "10.1.0.0/24")}, Choosing()};
  Effects last_;
};

TEST_F(FleetIdentity, TheInstanceOfAnotherNodeIsRefused) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  ExpectRefused(HelloOn(kNode2, kPlace), "that of node node1 (VM vm-1)");
  EXPECT_EQ(fleet_.ledger.NodeOn(kPlace)->key, kNode1);
  EXPECT_EQ(fleet_.ledger.Find(kNode2), nullptr);
  EXPECT_TRUE(Greet(HelloOn(kNode2, kOtherPlace)).ok());
  ExpectRefused(HelloOn(kNode2, kPlace), "is on instance " + std::string(kOtherPlace));
}

TEST_F(FleetIdentity, ANodeThatMovesToAnotherInstanceWithoutProofIsRefused) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  ExpectRefused(HelloOn(kNode1, kOtherPlace), "spokectl node forget node1");
  EXPECT_TRUE(Greet(HelloOn(kNode1, "")).ok()) << "it need not say it again";
  EXPECT_EQ(fleet_.ledger.NodeOn(kPlace)->key, kNode1);
  EXPECT_TRUE(Greet(HelloOn(kNode1, kOtherPlace), kNow, /*proved=*/true).ok());
  EXPECT_EQ(fleet_.ledger.NodeOn(kPlace), nullptr);
  EXPECT_EQ(fleet_.ledger.NodeOn(kOtherPlace)->key, kNode1);
}

TEST_F(FleetIdentity, ProofGoesBeforeAClaim) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  OnNic(fleet_, kNode1, {{"spoke-1", One("10.1.0.4")}}, kNow);
  ASSERT_TRUE(Greet(HelloOn(kNode2, kPlace), kNow, /*proved=*/true).ok());
  EXPECT_EQ(fleet_.ledger.NodeOn(kPlace)->key, kNode2);
  EXPECT_EQ(fleet_.ledger.Find(kNode1)->instance, "");
  EXPECT_THAT(last_.greet_anew, testing::ElementsAre(Key(kNode1)));
  ASSERT_THAT(last_.findings, SizeIs(1));
  EXPECT_EQ(last_.findings[0].kind, Finding::Kind::kDisplaced);
  ExpectRefused(HelloOn(kNode1, kPlace), "that of node node2");
  ExpectRefused(HelloOn(kNode1, kPlace), "that of node node2", /*proved=*/true);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4"))->key, kNode1)
      << "until an operator knows better";
}

// The first session after the boot ended before its agent was told.
TEST_F(FleetIdentity, WhatRestsSinceABootDoesSoWhateverTheNextHelloSays) {
  node_api::Hello hello = HelloOf(kNode1, "boot-1");
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 7)};
  ASSERT_TRUE(Greet(hello).ok());
  const auto use = [&] { return fleet_.ledger.Find(kNode1)->Holding(A("10.1.0.4"))->slots[0].use; };
  ASSERT_TRUE(Greet(HelloOf(kNode1, "boot-2"), kNow + absl::Seconds(1)).ok());
  EXPECT_EQ(use(), Use::kCooldown);
  ASSERT_TRUE(Greet(HelloOf(kNode1, "boot-2"), kNow + absl::Seconds(2)).ok());
  EXPECT_EQ(use(), Use::kCooldown);
  ASSERT_TRUE(Greet(HelloOf(kNode1, "boot-2"), kNow + absl::Seconds(31)).ok());
  EXPECT_EQ(use(), Use::kAvailable);
}

// The agent's clock may be ahead of the server's, and the session end before its report.
TEST_F(FleetIdentity, AHelloEndsTheCooldownThatItDoesNotName) {
  node_api::Hello hello = HelloOf(kNode1, "boot-1");
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 7)};
  ASSERT_TRUE(Greet(hello).ok());
  OnReport(fleet_, kNode1, {.released = {{A("10.1.0.4"), 7}}}, kNow);
  const auto use = [&] { return fleet_.ledger.Find(kNode1)->Holding(A("10.1.0.4"))->slots[0].use; };
  hello.in_use.clear();
  hello.cooldown = {A("10.1.0.4")};
  ASSERT_TRUE(Greet(hello, kNow + absl::Seconds(28)).ok());
  EXPECT_EQ(use(), Use::kCooldown);
  ASSERT_TRUE(Greet(HelloOf(kNode1, "boot-1"), kNow + absl::Seconds(29)).ok());
  EXPECT_EQ(use(), Use::kAvailable);
}

// A reimage or a new model of the scale set gives a VM the NIC of its first day.
TEST(FleetBoots, AfterAnotherBootTheNicIsLookedAt) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const auto looked_at = [&](const char* boot) {
    return OnHello(fleet, HelloOf(kNode1, boot), kNow).attach.contains(kNode1);
  };
  EXPECT_FALSE(looked_at("boot-1")) << "only its agent was restarted";
  EXPECT_TRUE(looked_at("boot-2"));
  EXPECT_FALSE(looked_at("boot-2"));
}

// Its clock was set back, and a store that has been restored does not know of the boot.
TEST_F(FleetIdentity, AfterABootGenerationsBeginAnewForWhatPodsUseAlreadyToo) {
  node_api::Hello hello = HelloOf(kNode1, "boot-1");
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 7)};
  ASSERT_TRUE(Greet(hello).ok());
  node_api::Hello next = HelloOf(kNode1, "boot-2");
  next.in_use = {AssignmentOf(A("10.1.0.4"), 3, "c2")};
  ASSERT_TRUE(Greet(next).ok());
  const Slot& slot = fleet_.ledger.Find(kNode1)->Holding(A("10.1.0.4"))->slots[0];
  EXPECT_EQ(slot.generation, 3U);
  ASSERT_NE(slot.lessee, nullptr);
  EXPECT_EQ(slot.lessee->container_id, "c2");
}

TEST_F(FleetIdentity, AReplacedMachineGivesItsPlaceUp) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  OnNic(fleet_, kNode1, {{"spoke-1", One("10.1.0.4")}}, kNow);
  const NodeKey successor{"node1", "vm-9"};
  ASSERT_TRUE(Greet(HelloOn(successor, kPlace, "boot-9")).ok());
  EXPECT_EQ(fleet_.ledger.NodeOn(kPlace)->key, successor);
  EXPECT_TRUE(HasItsInstance(fleet_.ledger, *fleet_.ledger.Find(successor)));
  EXPECT_FALSE(HasItsInstance(fleet_.ledger, *fleet_.ledger.Find(kNode1)))
      << "the NIC there is that of the new machine";
  // Two listings have no machine of the old one.
  OnListing(fleet_, {successor}, {successor}, kNow);
  OnListing(fleet_, {successor}, {successor}, kNow + absl::Minutes(1));
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4")), nullptr);
  // The successor takes over what is on its NIC, after the cooldown.
  const absl::Time later = kNow + absl::Minutes(2);
  Expire(fleet_, later);
  OnNic(fleet_, successor, {{"spoke-1", One("10.1.0.4")}}, later);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4"))->key, successor);
  CheckInvariants(fleet_.ledger);
}

// The same holds after a restart: its VM may still run, and its pods with it.
TEST_F(FleetIdentity, ARetiredMachineThatTheCloudStillHasKeepsItsPlace) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  OnNic(fleet_, kNode1, {{"spoke-1", One("10.1.0.4")}}, kNow);
  const NodeKey successor{"node1", "vm-9"};
  ASSERT_TRUE(Greet(HelloOn(successor, kOtherPlace, "boot-9")).ok());
  for (const bool retired_first : {true, false}) {
    Fleet loaded({Pool("default", "10.1.0.0/24")}, Choosing());
    const NodeKey& first = retired_first ? kNode1 : successor;
    ASSERT_TRUE(loaded.ledger.Upsert(*fleet_.ledger.Find(first)).ok());
    ASSERT_TRUE(loaded.ledger.Upsert(*fleet_.ledger.Find(retired_first ? successor : kNode1)).ok());
    FinishLoading(loaded, kNow);
    ASSERT_NE(loaded.ledger.NodeOn(kPlace), nullptr);
    EXPECT_EQ(loaded.ledger.NodeOn(kPlace)->key, kNode1);
    EXPECT_EQ(loaded.ledger.NodeOn(kOtherPlace)->key, successor);
  }
}

TEST_F(FleetIdentity, AnAgentWithEverNewVmIdsGetsAFewMachinesAtMost) {
  const uint32_t most = fleet_.policy.machines_per_name;
  for (uint32_t i = 0; i < most; ++i) {
    const NodeKey key{"node1", "vm-" + std::to_string(i)};
    ASSERT_TRUE(Greet(HelloOn(key, "", "boot-" + std::to_string(i))).ok());
    OnNic(fleet_, key, {{"spoke-1", One("10.1.0." + std::to_string(4 + i))}}, kNow);
  }
  const absl::Status refused = Greet(HelloOn({"node1", "vm-x"}, "", "boot-x"));
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("spokectl node forget node1 --vm ID"));
  EXPECT_EQ(fleet_.ledger.nodes().size(), most);
  EXPECT_TRUE(Greet(HelloOn({"node1", "vm-x"}, "", "boot-1")).ok()) << "the same machine";
  EXPECT_TRUE(Greet(HelloOn(kNode2, "")).ok()) << "others are not held up";
}

// The one before it has no successor until then: it counts as missing, and may freeze releases.
TEST_F(FleetIdentity, OneMachineTooManyIsLetInOnceTheCloudHasNoFormerOnes) {
  const uint32_t most = fleet_.policy.machines_per_name;
  const auto key = [](uint32_t i) { return NodeKey{"node1", "vm-" + std::to_string(i)}; };
  const auto address = [](uint32_t i) { return "10.1.0." + std::to_string(4 + i); };
  const auto greet = [&](uint32_t i) {
    return Greet(HelloOn(key(i), "", "boot-" + std::to_string(i)));
  };
  for (uint32_t i = 0; i < most; ++i) {
    ASSERT_TRUE(greet(i).ok());
    OnNic(fleet_, key(i), {{"spoke-1", One(address(i))}}, kNow);
  }
  ASSERT_FALSE(greet(most).ok());
  OnListing(fleet_, {}, {}, kNow);
  ASSERT_FALSE(greet(most).ok()) << "one listing is not believed";
  OnListing(fleet_, {}, {}, kNow);
  EXPECT_TRUE(fleet_.breaker.frozen()) << "the last one has no successor";
  EXPECT_EQ(HolderOf(fleet_.ledger, A(address(most - 1)))->key, key(most - 1));
  const AddressPool& pool = fleet_.ledger.pools()[0].pool;
  for (uint32_t i = 0; i + 1 < most; ++i) {
    EXPECT_EQ(pool.StateOf(A(address(i))), AddressPool::State::kCooldown) << "not free at once";
  }
  ASSERT_TRUE(greet(most).ok());
  // Now it has one, and goes though releases are frozen.
  OnListing(fleet_, {key(most)}, {key(most)}, kNow);
  OnListing(fleet_, {key(most)}, {key(most)}, kNow);
  EXPECT_EQ(pool.StateOf(A(address(most - 1))), AddressPool::State::kCooldown);
  CheckInvariants(fleet_.ledger);
}

// --- What an operator says is gone. ---

TEST_F(FleetIdentity, AMachineIsForgottenOnlyOnceTheCloudHasItNot) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  OnNic(fleet_, kNode1, {{"spoke-1", One("10.1.0.4")}}, kNow);
  const Farewell farewell{.node = "node1", .silent = {{kNode1, 1}}};
  const auto early = Forget(fleet_, farewell, kNow);
  EXPECT_TRUE(absl::IsFailedPrecondition(early.status())) << early.status();
  EXPECT_THAT(std::string(early.status().message()), HasSubstr("has not said"));
  OnListing(fleet_, {}, {}, kNow);
  const auto forgotten = Forget(fleet_, farewell, kNow);
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_EQ(forgotten->node, kNode1);
  EXPECT_EQ(forgotten->addresses, 4U);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4")), nullptr);
  EXPECT_EQ(fleet_.ledger.NodeOn(kPlace), nullptr);
  CheckInvariants(fleet_.ledger);
  EXPECT_TRUE(Greet(HelloOn(kNode2, kPlace)).ok()) << "its place is free";
}

class ForgetOnStaticCloud : public testing::Test {
 protected:
  ForgetOnStaticCloud() {
    OnHello(fleet_, HelloOf(kNode1), kNow);
    Attach(fleet_, kNode1);
  }
  void ExpectRefused(const Farewell& farewell, absl::StatusCode code, std::string_view why) {
    const auto refused = Forget(fleet_, farewell, kNow);
    EXPECT_EQ(refused.status().code(), code) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(std::string(why)));
    EXPECT_THAT(fleet_.ledger.Find(kNode1)->configurations, SizeIs(4));
  }

  Fleet fleet_{{Pool("default", "10.1.0.0/24")}, Policy()};
};

TEST_F(ForgetOnStaticCloud, NeedsASilentAgentAndTheRightNumber) {
  const auto precondition = absl::StatusCode::kFailedPrecondition;
  OnReport(fleet_, kNode1, {.sequence = 1, .in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  ExpectRefused({.node = "node1"}, precondition, "is connected");
  ExpectRefused({.node = "node1", .silent = {{kNode1, 0}}}, precondition, "is connected");
  ExpectRefused({.node = "node1", .silent = {{kNode1, 1}}}, precondition, "--in-use 1");
  ExpectRefused({.node = "node1", .in_use = 2, .silent = {{kNode1, 1}}}, precondition, "not 2");
  ExpectRefused({.node = "node3"}, absl::StatusCode::kNotFound, "no node node3");
  ExpectRefused({.node = "node1", .vm_id = "vm-7"}, absl::StatusCode::kNotFound, "vm-7");
  const auto done = Forget(fleet_, {.node = "node1", .in_use = 1, .silent = {{kNode1, 1}}}, kNow);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(fleet_.ledger.pools()[0].pool.StateOf(A("10.1.0.4")), AddressPool::State::kCooldown);
  Expire(fleet_, kNow + absl::Minutes(1));
  EXPECT_EQ(fleet_.ledger.Find(kNode1), nullptr);
}

TEST_F(ForgetOnStaticCloud, OfSeveralMachinesOneIsNamed) {
  const NodeKey successor{"node1", "vm-9"};
  OnHello(fleet_, HelloOf(successor, "boot-9"), kNow);
  ExpectRefused({.node = "node1", .silent = {{kNode1, 1}}}, absl::StatusCode::kInvalidArgument,
                "vm-1, vm-9");
  EXPECT_TRUE(
      Forget(fleet_, {.node = "node1", .vm_id = "vm-1", .silent = {{kNode1, 1}}}, kNow).ok());
  EXPECT_EQ(FindByName(fleet_.ledger, "node1")->key, successor);
}

TEST_F(ForgetOnStaticCloud, WaitsWhileARecoveryIsUnderWay) {
  fleet_.hold.active = true;
  ExpectRefused({.node = "node1", .silent = {{kNode1, 1}}}, absl::StatusCode::kFailedPrecondition,
                "recovery");
}

}  // namespace
}  // namespace spoke::ipam
