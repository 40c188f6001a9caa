// Which machine a node is, and who may say so.
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/fleet_for_test.h"

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
    if (absl::Status may = fleet_.CheckIdentity(hello, proved); !may.ok()) return may;
    last_ = fleet_.OnHello(hello, now, proved);
    fleet_.CheckInvariants();
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
  EXPECT_EQ(fleet_.NodeOn(kPlace)->key, kNode1);
  EXPECT_EQ(fleet_.Find(kNode2), nullptr);
  EXPECT_TRUE(Greet(HelloOn(kNode2, kOtherPlace)).ok());
  ExpectRefused(HelloOn(kNode2, kPlace), "is on instance " + std::string(kOtherPlace));
}

TEST_F(FleetIdentity, ANodeThatMovesToAnotherInstanceWithoutProofIsRefused) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  ExpectRefused(HelloOn(kNode1, kOtherPlace), "spokectl node forget node1");
  EXPECT_TRUE(Greet(HelloOn(kNode1, "")).ok()) << "it need not say it again";
  EXPECT_EQ(fleet_.NodeOn(kPlace)->key, kNode1);
  EXPECT_TRUE(Greet(HelloOn(kNode1, kOtherPlace), kNow, /*proved=*/true).ok());
  EXPECT_EQ(fleet_.NodeOn(kPlace), nullptr);
  EXPECT_EQ(fleet_.NodeOn(kOtherPlace)->key, kNode1);
}

TEST_F(FleetIdentity, ProofGoesBeforeAClaim) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  fleet_.OnNic(kNode1, {{"spoke-1", One("10.1.0.4")}}, kNow);
  ASSERT_TRUE(Greet(HelloOn(kNode2, kPlace), kNow, /*proved=*/true).ok());
  EXPECT_EQ(fleet_.NodeOn(kPlace)->key, kNode2);
  EXPECT_EQ(fleet_.Find(kNode1)->instance, "");
  EXPECT_THAT(last_.greet_anew, testing::ElementsAre(Key(kNode1)));
  ASSERT_THAT(last_.findings, SizeIs(1));
  EXPECT_EQ(last_.findings[0].kind, Finding::Kind::kDisplaced);
  ExpectRefused(HelloOn(kNode1, kPlace), "that of node node2");
  ExpectRefused(HelloOn(kNode1, kPlace), "that of node node2", /*proved=*/true);
  EXPECT_EQ(fleet_.HolderOf(A("10.1.0.4"))->key, kNode1) << "until an operator knows better";
}

TEST_F(FleetIdentity, AReplacedMachineGivesItsPlaceUp) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  fleet_.OnNic(kNode1, {{"spoke-1", One("10.1.0.4")}}, kNow);
  const NodeKey successor{"node1", "vm-9"};
  ASSERT_TRUE(Greet(HelloOn(successor, kPlace, "boot-9")).ok());
  EXPECT_EQ(fleet_.NodeOn(kPlace)->key, successor);
  EXPECT_TRUE(fleet_.HasItsInstance(*fleet_.Find(successor)));
  EXPECT_FALSE(fleet_.HasItsInstance(*fleet_.Find(kNode1)))
      << "the NIC there is that of the new machine";
  // Two listings have no machine of the old one.
  fleet_.OnListing({successor}, {successor}, kNow);
  fleet_.OnListing({successor}, {successor}, kNow + absl::Minutes(1));
  EXPECT_EQ(fleet_.HolderOf(A("10.1.0.4")), nullptr);
  // The successor takes over what is on its NIC, after the cooldown.
  const absl::Time later = kNow + absl::Minutes(2);
  fleet_.Expire(later);
  fleet_.OnNic(successor, {{"spoke-1", One("10.1.0.4")}}, later);
  EXPECT_EQ(fleet_.HolderOf(A("10.1.0.4"))->key, successor);
  fleet_.CheckInvariants();
}

// The same holds after a restart: its VM may still run, and its pods with it.
TEST_F(FleetIdentity, ARetiredMachineThatTheCloudStillHasKeepsItsPlace) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  fleet_.OnNic(kNode1, {{"spoke-1", One("10.1.0.4")}}, kNow);
  const NodeKey successor{"node1", "vm-9"};
  ASSERT_TRUE(Greet(HelloOn(successor, kOtherPlace, "boot-9")).ok());
  for (const bool retired_first : {true, false}) {
    Fleet loaded({Pool("default", "10.1.0.0/24")}, Choosing());
    const NodeKey& first = retired_first ? kNode1 : successor;
    ASSERT_TRUE(loaded.Load(*fleet_.Find(first)).ok());
    ASSERT_TRUE(loaded.Load(*fleet_.Find(retired_first ? successor : kNode1)).ok());
    loaded.FinishLoading(kNow);
    ASSERT_NE(loaded.NodeOn(kPlace), nullptr);
    EXPECT_EQ(loaded.NodeOn(kPlace)->key, kNode1);
    EXPECT_EQ(loaded.NodeOn(kOtherPlace)->key, successor);
  }
}

TEST_F(FleetIdentity, AnAgentWithEverNewVmIdsGetsAFewMachinesAtMost) {
  const uint32_t most = fleet_.policy().machines_per_name;
  for (uint32_t i = 0; i < most; ++i) {
    const NodeKey key{"node1", "vm-" + std::to_string(i)};
    ASSERT_TRUE(Greet(HelloOn(key, "", "boot-" + std::to_string(i))).ok());
    fleet_.OnNic(key, {{"spoke-1", One("10.1.0." + std::to_string(4 + i))}}, kNow);
  }
  const absl::Status refused = Greet(HelloOn({"node1", "vm-x"}, "", "boot-x"));
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("spokectl node forget node1 --vm ID"));
  EXPECT_EQ(fleet_.nodes().size(), most);
  EXPECT_TRUE(Greet(HelloOn({"node1", "vm-x"}, "", "boot-1")).ok()) << "the same machine";
  EXPECT_TRUE(Greet(HelloOn(kNode2, "")).ok()) << "others are not held up";
}

// --- What an operator says is gone. ---

TEST_F(FleetIdentity, AMachineIsForgottenOnlyOnceTheCloudHasItNot) {
  ASSERT_TRUE(Greet(HelloOn(kNode1, kPlace)).ok());
  fleet_.OnNic(kNode1, {{"spoke-1", One("10.1.0.4")}}, kNow);
  const Farewell farewell{.node = "node1", .silent = {{kNode1, 1}}};
  const auto early = fleet_.Forget(farewell, kNow);
  EXPECT_TRUE(absl::IsFailedPrecondition(early.status())) << early.status();
  EXPECT_THAT(std::string(early.status().message()), HasSubstr("has not said"));
  fleet_.OnListing({}, {}, kNow);
  const auto forgotten = fleet_.Forget(farewell, kNow);
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_EQ(forgotten->node, kNode1);
  EXPECT_EQ(forgotten->addresses, 4U);
  EXPECT_EQ(fleet_.HolderOf(A("10.1.0.4")), nullptr);
  EXPECT_EQ(fleet_.NodeOn(kPlace), nullptr);
  fleet_.CheckInvariants();
  EXPECT_TRUE(Greet(HelloOn(kNode2, kPlace)).ok()) << "its place is free";
}

class ForgetOnStaticCloud : public testing::Test {
 protected:
  ForgetOnStaticCloud() {
    fleet_.OnHello(HelloOf(kNode1), kNow);
    Attach(fleet_, kNode1);
  }
  void ExpectRefused(const Farewell& farewell, absl::StatusCode code, std::string_view why) {
    const auto refused = fleet_.Forget(farewell, kNow);
    EXPECT_EQ(refused.status().code(), code) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(std::string(why)));
    EXPECT_THAT(fleet_.Find(kNode1)->configurations, SizeIs(4));
  }

  Fleet fleet_{{Pool("default", "10.1.0.0/24")}, Policy()};
};

TEST_F(ForgetOnStaticCloud, NeedsASilentAgentAndTheRightNumber) {
  const auto precondition = absl::StatusCode::kFailedPrecondition;
  fleet_.OnReport(kNode1, {.sequence = 1, .in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  ExpectRefused({.node = "node1"}, precondition, "is connected");
  ExpectRefused({.node = "node1", .silent = {{kNode1, 0}}}, precondition, "is connected");
  ExpectRefused({.node = "node1", .silent = {{kNode1, 1}}}, precondition, "--in-use 1");
  ExpectRefused({.node = "node1", .in_use = 2, .silent = {{kNode1, 1}}}, precondition, "not 2");
  ExpectRefused({.node = "node3"}, absl::StatusCode::kNotFound, "no node node3");
  ExpectRefused({.node = "node1", .vm_id = "vm-7"}, absl::StatusCode::kNotFound, "vm-7");
  const auto done = fleet_.Forget({.node = "node1", .in_use = 1, .silent = {{kNode1, 1}}}, kNow);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(fleet_.pools()[0].pool.StateOf(A("10.1.0.4")), AddressPool::State::kCooldown);
  fleet_.Expire(kNow + absl::Minutes(1));
  EXPECT_EQ(fleet_.Find(kNode1), nullptr);
}

TEST_F(ForgetOnStaticCloud, OfSeveralMachinesOneIsNamed) {
  const NodeKey successor{"node1", "vm-9"};
  fleet_.OnHello(HelloOf(successor, "boot-9"), kNow);
  ExpectRefused({.node = "node1", .silent = {{kNode1, 1}}}, absl::StatusCode::kInvalidArgument,
                "vm-1, vm-9");
  EXPECT_TRUE(
      fleet_.Forget({.node = "node1", .vm_id = "vm-1", .silent = {{kNode1, 1}}}, kNow).ok());
  EXPECT_EQ(fleet_.FindByName("node1")->key, successor);
}

TEST_F(ForgetOnStaticCloud, WaitsWhileARecoveryIsUnderWay) {
  fleet_.Hold();
  ExpectRefused({.node = "node1", .silent = {{kNode1, 1}}}, absl::StatusCode::kFailedPrecondition,
                "recovery");
}

}  // namespace
}  // namespace spoke::ipam
