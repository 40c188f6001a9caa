// A cloud that chooses the addresses itself.
#include "ipam-server/ledger/decisions/nic.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/inventory.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"
#include "ipam-server/ledger/targets.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

node_api::Hello HelloFrom(const NodeKey& key, const std::string& subnet = "10.1.0.0/24") {
  node_api::Hello hello = HelloOf(key, "boot of " + key.vm_id);
  hello.node.instance = "/subscriptions/s/instances/" + key.vm_id;
  hello.node.subnets = {Block(subnet)};
  return hello;
}

std::vector<std::string> WantedOf(const Fleet& fleet, const NodeKey& key) {
  std::vector<std::string> names;
  for (const auto& [name, wanted] : fleet.ledger.Find(key)->wanted) names.push_back(name);
  return names;
}

class FleetNic : public testing::Test {
 protected:
  // A node whose NIC was looked at and is empty; it wants four addresses.
  void Join(const NodeKey& key) {
    OnHello(fleet_, HelloFrom(key), kNow);
    OnNic(fleet_, key, {}, kNow);
    ASSERT_THAT(WantedOf(fleet_, key), ElementsAre("spoke-1", "spoke-2", "spoke-3", "spoke-4"));
  }
  // The cloud gives these to spoke-1, spoke-2 and so on.
  Effects Give(const NodeKey& key, const std::vector<std::string>& addresses,
               absl::Time now = kNow) {
    std::vector<IpConfiguration> entries;
    for (const std::string& address : addresses) {
      entries.push_back({"spoke-" + std::to_string(entries.size() + 1), One(address)});
    }
    Effects effects = OnNic(fleet_, key, entries, now);
    CheckInvariants(fleet_.ledger);
    return effects;
  }
  AddressCounts CountsOf(const NodeKey& key) { return CountAddresses(*fleet_.ledger.Find(key)); }

  Fleet fleet_{{Pool("default", "10.1.0.0/24")}, Choosing()};
};

TEST_F(FleetNic, LooksBeforeItWants) {
  const Effects hello = OnHello(fleet_, HelloFrom(kNode1), kNow);
  EXPECT_THAT(hello.attach, ElementsAre(kNode1));
  EXPECT_THAT(WantedOf(fleet_, kNode1), IsEmpty());
  const Effects looked = OnNic(fleet_, kNode1, {}, kNow);
  EXPECT_THAT(WantedOf(fleet_, kNode1), SizeIs(4));
  EXPECT_THAT(looked.attach, ElementsAre(kNode1));
  EXPECT_TRUE(looked.changed.contains(kNode1)) << "names are stored before they are asked for";
}

TEST_F(FleetNic, TakesOverWhatTheModelOfTheScaleSetBrought) {
  OnHello(fleet_, HelloFrom(kNode1), kNow);
  const Effects effects = Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"});
  EXPECT_THAT(effects.attach, IsEmpty()) << "the node has its target: no call at all";
  EXPECT_THAT(effects.desired, ElementsAre(kNode1));
  EXPECT_EQ(CountsOf(kNode1), (AddressCounts{.available = 4}));
}

// A machine came, and its pods used what it got, when there was another store; then it booted.
TEST_F(FleetNic, WhatAStoreThatWasBehindDidNotAskForCoolsDownFirst) {
  fleet_.was_behind = true;
  OnHello(fleet_, HelloFrom(kNode1), kNow);
  const Effects effects = Give(kNode1, {"10.1.0.4"});
  EXPECT_EQ(CountsOf(kNode1).available, 0U);
  EXPECT_THAT(effects.findings, IsEmpty()) << "it is only a matter of time";
  const absl::Time early = kNow + fleet_.policy.cooldown - absl::Seconds(1);
  Give(kNode1, {"10.1.0.4"}, early);
  EXPECT_EQ(CountsOf(kNode1).available, 0U);
  const absl::Time later = kNow + fleet_.policy.cooldown;
  const Effects looks = Expire(fleet_, later);
  EXPECT_THAT(looks.attach, ElementsAre(kNode1)) << "what has cooled is looked at once more";
  Give(kNode1, {"10.1.0.4"}, later);
  EXPECT_EQ(CountsOf(kNode1).available, 1U);
}

// Others wrote the NIC, and a call that takes theirs off again was under way when it was read.
TEST_F(FleetNic, WhatNobodyAskedForIsUsedOnceItWasSeenTwice) {
  OnHello(fleet_, HelloFrom(kNode1), kNow);
  Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"});
  ASSERT_EQ(CountsOf(kNode1).available, 4U);
  const std::vector<std::string> five = {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7",
                                         "10.1.0.8"};
  const Effects once = Give(kNode1, five);
  EXPECT_EQ(CountsOf(kNode1).available, 4U);
  EXPECT_THAT(once.findings, IsEmpty()) << "it is only a matter of time";
  EXPECT_EQ(WantedOf(fleet_, kNode1), std::vector<std::string>{"spoke-5"}) << "it stays there";
  const absl::Time later = kNow + fleet_.policy.cooldown;
  EXPECT_THAT(Expire(fleet_, later).attach, ElementsAre(kNode1));
  Give(kNode1, five, later);
  EXPECT_EQ(CountsOf(kNode1).available, 5U);
}

TEST_F(FleetNic, WhatNobodyAskedForAndHasLeftTheNicIsForgotten) {
  OnHello(fleet_, HelloFrom(kNode1), kNow);
  Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"});
  Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7", "10.1.0.8"});
  Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"}, kNow + absl::Seconds(7));
  EXPECT_THAT(WantedOf(fleet_, kNode1), IsEmpty());
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.8")), nullptr);
}

// The record is of before the NIC got these.
TEST_F(FleetNic, ANameThatTheNicHasIsNotGivenAgain) {
  OnHello(fleet_, HelloFrom(kNode1), kNow);
  OnNic(fleet_, kNode1, {{"spoke-2", One("10.1.0.5")}, {"spoke-3", One("10.1.0.6")}}, kNow);
  EXPECT_THAT(WantedOf(fleet_, kNode1), ElementsAre("spoke-1", "spoke-4"));
  EXPECT_EQ(CountsOf(kNode1), (AddressCounts{.attaching = 2, .available = 2}));
}

TEST_F(FleetNic, WhatIsGivenByNameIsAttached) {
  Join(kNode1);
  EXPECT_EQ(CountsOf(kNode1), (AddressCounts{.attaching = 4}));
  EXPECT_EQ(fleet_.ledger.pools()[0].free(), 247U);
  Give(kNode1, {"10.1.0.9", "10.1.0.7"});
  EXPECT_EQ(CountsOf(kNode1), (AddressCounts{.attaching = 2, .available = 2}));
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.9"))->key, kNode1);
  EXPECT_EQ(fleet_.ledger.Find(kNode1)->Holding(A("10.1.0.7"))->name, "spoke-2");
  EXPECT_EQ(fleet_.ledger.pools()[0].free(), 247U);
  EXPECT_THAT(WantedOf(fleet_, kNode1), ElementsAre("spoke-3", "spoke-4"));
}

TEST_F(FleetNic, OnlyPoolsOfTheSubnetServeTheNode) {
  Fleet fleet({Pool("other", "10.2.0.0/24"), Pool("own", "10.1.0.0/25")}, Choosing());
  OnHello(fleet, HelloFrom(kNode1), kNow);
  OnNic(fleet, kNode1, {}, kNow);
  EXPECT_EQ(fleet.ledger.Find(kNode1)->wanted.at("spoke-1").pool, "own");
}

TEST_F(FleetNic, AnAddressOfAnotherNodeIsNeverUsed) {
  Join(kNode1);
  Join(kNode2);
  Give(kNode1, {"10.1.0.4"});
  const Effects doubled = Give(kNode2, {"10.1.0.4", "10.1.0.5"});
  ASSERT_THAT(doubled.findings, SizeIs(1));
  EXPECT_EQ(doubled.findings[0].kind, Finding::Kind::kUnusable);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4"))->key, kNode1);
  EXPECT_EQ(fleet_.ledger.Find(kNode2)->Holding(A("10.1.0.4")), nullptr);
  EXPECT_THAT(Give(kNode2, {"10.1.0.4", "10.1.0.5"}).findings, IsEmpty()) << "said once";
  EXPECT_TRUE(IsShort(fleet_, *fleet_.ledger.Find(kNode2)));
  EXPECT_THAT(ShortageOf(fleet_, *fleet_.ledger.Find(kNode2)),
              testing::HasSubstr("held by node node1"));
}

TEST_F(FleetNic, WhatIsInCooldownIsUsedOnlyAfterwards) {
  Join(kNode1);
  Join(kNode2);
  Give(kNode1, {"10.1.0.4"});
  OnReclaimAnswer(fleet_, kNode1, {.agreed = {One("10.1.0.4")}}, kNow);
  Give(kNode1, {});  // It is off the NIC: it is in cooldown for 30 s.
  ASSERT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4")), nullptr);
  const Effects early = Give(kNode2, {"10.1.0.4"}, kNow + absl::Seconds(10));
  EXPECT_EQ(CountsOf(kNode2).available, 0U);
  EXPECT_THAT(early.findings, IsEmpty()) << "only a matter of time";
  EXPECT_THAT(Expire(fleet_, kNow + absl::Seconds(29)).desired, IsEmpty());
  EXPECT_THAT(Expire(fleet_, kNow + absl::Seconds(31)).attach, ElementsAre(kNode2));
  EXPECT_THAT(Expire(fleet_, kNow + absl::Seconds(32)).attach, IsEmpty()) << "asked once";
  EXPECT_EQ(CountsOf(kNode2).available, 0U) << "the NIC is looked at again before";
  EXPECT_THAT(Give(kNode2, {"10.1.0.4"}, kNow + absl::Seconds(33)).desired, ElementsAre(kNode2));
  EXPECT_EQ(CountsOf(kNode2).available, 1U);
  CheckInvariants(fleet_.ledger);
}

TEST_F(FleetNic, AnOldPictureOfTheNicBringsNothingBackThatHasLeftIt) {
  Join(kNode1);
  Give(kNode1, {"10.1.0.4"});
  OnReclaimAnswer(fleet_, kNode1, {.agreed = {One("10.1.0.4")}}, kNow);
  Give(kNode1, {});
  Give(kNode1, {"10.1.0.4"}, kNow + absl::Seconds(10));  // As it was a while ago.
  EXPECT_THAT(Expire(fleet_, kNow + absl::Seconds(41)).attach, ElementsAre(kNode1));
  EXPECT_EQ(CountsOf(kNode1).available, 0U);
  Give(kNode1, {}, kNow + absl::Seconds(42));
  Expire(fleet_, kNow + absl::Seconds(43));
  EXPECT_EQ(CountsOf(kNode1).available, 0U);
  EXPECT_EQ(HolderOf(fleet_.ledger, A("10.1.0.4")), nullptr);
}

TEST_F(FleetNic, AnAddressOutsideThePoolsIsKeptOutOfUse) {
  Join(kNode1);
  const Effects effects = Give(kNode1, {"10.9.0.4"});
  ASSERT_THAT(effects.findings, SizeIs(1));
  EXPECT_EQ(effects.findings[0].kind, Finding::Kind::kUnusable);
  EXPECT_EQ(CountsOf(kNode1), (AddressCounts{.attaching = 4}));
  // The address is wanted again once it is off the NIC.
  EXPECT_THAT(Give(kNode1, {}).attach, ElementsAre(kNode1));
  EXPECT_EQ(ShortageOf(fleet_, *fleet_.ledger.Find(kNode1)), "");
}

TEST_F(FleetNic, AQuarantinedAddressIsNotUsed) {
  Join(kNode1);
  ASSERT_TRUE(
      SetQuarantine(fleet_, A("10.1.0.4"), Quarantine{.reason = "test", .since = kNow}, kNow).ok());
  EXPECT_THAT(Give(kNode1, {"10.1.0.4"}).findings, SizeIs(1));
  EXPECT_EQ(CountsOf(kNode1).available, 0U);
  ASSERT_TRUE(SetQuarantine(fleet_, A("10.1.0.4"), std::nullopt, kNow).ok());
  EXPECT_THAT(Expire(fleet_, kNow).attach, ElementsAre(kNode1));
  Give(kNode1, {"10.1.0.4"});
  EXPECT_EQ(CountsOf(kNode1).available, 1U);
}

// A quarantine, or a backup that knew less, had made it unusable. What nobody wants leaves the NIC.
TEST_F(FleetNic, WhatAPodUsesIsNotGivenBackWithANameThatWasUnusable) {
  Join(kNode1);
  ASSERT_TRUE(SetQuarantine(fleet_, A("10.1.0.4"), Quarantine{.since = kNow}, kNow).ok());
  Give(kNode1, {"10.1.0.4"});
  ASSERT_TRUE(SetQuarantine(fleet_, A("10.1.0.4"), std::nullopt, kNow).ok());
  node_api::Hello hello = HelloFrom(kNode1);
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 1)};
  OnHello(fleet_, hello, kNow);
  Give(kNode1, {"10.1.0.4"});
  EXPECT_THAT(WantedOf(fleet_, kNode1), testing::Not(testing::Contains("spoke-1")));
  ASSERT_TRUE(SetMode(fleet_, kNode1.name, NodeMode::kDraining, kNow).ok());
  EXPECT_EQ(fleet_.ledger.Find(kNode1)->configurations.at(A("10.1.0.4")).name, "spoke-1");
  EXPECT_EQ(CountsOf(kNode1).in_use, 1U);
}

// A drain may come before the next look at the NIC, and after a recovery it is nobody's hello.
TEST_F(FleetNic, WhatAPodUsesStaysThoughTheNodeIsDrainedBeforeTheNicIsReadAgain) {
  for (const bool recovering : {false, true}) {
    SCOPED_TRACE(recovering);
    fleet_ = Fleet({Pool("default", "10.1.0.0/24")}, Choosing());
    Join(kNode1);
    ASSERT_TRUE(SetQuarantine(fleet_, A("10.1.0.4"), Quarantine{.since = kNow}, kNow).ok());
    Give(kNode1, {"10.1.0.4"});
    ASSERT_TRUE(SetQuarantine(fleet_, A("10.1.0.4"), std::nullopt, kNow).ok());
    if (recovering) {
      fleet_.hold.active = true;
      OnInventory(fleet_, kNode1, {.held = {A("10.1.0.4")}}, kNow);
      EndHold(fleet_, {kNode1}, kNow);
    }
    node_api::Hello hello = HelloFrom(kNode1);
    hello.in_use = {AssignmentOf(A("10.1.0.4"), 1)};
    OnHello(fleet_, hello, kNow);
    CheckInvariants(fleet_.ledger);
    ASSERT_TRUE(SetMode(fleet_, kNode1.name, NodeMode::kDraining, kNow).ok());
    EXPECT_EQ(fleet_.ledger.Find(kNode1)->configurations.at(A("10.1.0.4")).name, "spoke-1");
    EXPECT_THAT(WantedOf(fleet_, kNode1), IsEmpty()) << "by that name it would leave the NIC";
    EXPECT_EQ(SlotOf(fleet_, kNode1, "10.1.0.4").use, Use::kInUse);
  }
}

TEST_F(FleetNic, AnEntryUnderAnotherNameKeepsItsAddress) {
  Join(kNode1);
  Give(kNode1, {"10.1.0.4"});
  OnNic(fleet_, kNode1, {{"spoke-77", One("10.1.0.4")}}, kNow);
  EXPECT_EQ(fleet_.ledger.Find(kNode1)->Holding(A("10.1.0.4"))->name, "spoke-77");
  EXPECT_EQ(CountsOf(kNode1).available, 1U);
  CheckInvariants(fleet_.ledger);
}

TEST_F(FleetNic, WhatIsOffTheNicTwiceIsReportedAndReclaimed) {
  Join(kNode1);
  Give(kNode1, {"10.1.0.4", "10.1.0.5"});
  OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(A("10.1.0.5"), 1)}}, kNow);
  EXPECT_THAT(Give(kNode1, {}).findings, IsEmpty()) << "one look may be at an old picture";
  EXPECT_THAT(ReviewNode(fleet_, kNode1, {}, kNow).attach, ElementsAre(kNode1))
      << "so it looks again";
  const Effects lost = Give(kNode1, {}, kNow + absl::Minutes(2));
  ASSERT_THAT(lost.findings, SizeIs(2));
  EXPECT_EQ(lost.findings[0].kind, Finding::Kind::kLost);
  EXPECT_THAT(lost.reclaim.at(kNode1), ElementsAre(One("10.1.0.4")));
  EXPECT_EQ(CountsOf(kNode1).in_use, 1U) << "what a pod uses stays its own";
  EXPECT_THAT(Give(kNode1, {}, kNow + absl::Minutes(3)).findings, IsEmpty()) << "said once";
}

// However long the breaker keeps it from being given up.
TEST_F(FleetNic, WhatIsOffTheNicGoesToNoPodAndOthersComeInItsPlace) {
  Join(kNode1);
  Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"});
  EXPECT_THAT(WantedOf(fleet_, kNode1), IsEmpty());
  Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6"});
  const auto& configurations = fleet_.ledger.Find(kNode1)->configurations;
  EXPECT_FALSE(IsWithheld(fleet_, configurations.at(A("10.1.0.7")))) << "after one look";
  const Effects lost = Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6"}, kNow + absl::Minutes(2));
  EXPECT_TRUE(IsWithheld(fleet_, configurations.at(A("10.1.0.7"))));
  EXPECT_FALSE(IsWithheld(fleet_, configurations.at(A("10.1.0.6"))));
  EXPECT_THAT(lost.desired, ElementsAre(kNode1)) << "its agent hears of it";
  EXPECT_THAT(WantedOf(fleet_, kNode1), SizeIs(1));
  const Effects found =
      Give(kNode1, {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"}, kNow + absl::Minutes(3));
  EXPECT_FALSE(IsWithheld(fleet_, configurations.at(A("10.1.0.7"))));
  EXPECT_THAT(found.desired, ElementsAre(kNode1));
}

// An agent that is not told of an address does not say that its cooldown is over either.
TEST_F(FleetNic, WhatIsOffTheNicAndCoolsIsReclaimedWhenItsCooldownIsOver) {
  Join(kNode1);
  Join(kNode2);
  Give(kNode2, {"10.1.0.9"});  // Never all there are may go.
  Give(kNode1, {"10.1.0.4"});
  OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  Give(kNode1, {});
  Give(kNode1, {}, kNow + absl::Minutes(2));
  node_api::Hello hello = HelloFrom(kNode1);
  hello.node.boot_id = "another boot";
  OnHello(fleet_, hello, kNow + absl::Minutes(3));
  EXPECT_EQ(SlotOf(fleet_, kNode1, "10.1.0.4").use, Use::kCooldown);
  EXPECT_THAT(Give(kNode1, {}, kNow + absl::Minutes(3) + absl::Seconds(29)).reclaim, IsEmpty());
  const Effects over = Give(kNode1, {}, kNow + absl::Minutes(3) + absl::Seconds(30));
  EXPECT_THAT(over.reclaim.at(kNode1), ElementsAre(One("10.1.0.4")));
}

// Somebody has taken it off the NIC of the first node, where a pod uses it, perhaps for days.
TEST_F(FleetNic, WhatAPodOfAnotherNodeUsesIsNoneOfWhatIsToCome) {
  Join(kNode1);
  Join(kNode2);
  Give(kNode1, {"10.1.0.4"});
  OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  Give(kNode2, {"10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"});
  EXPECT_EQ(CountsOf(kNode2).available, 3U);
  EXPECT_THAT(WantedOf(fleet_, kNode2), ElementsAre("spoke-1", "spoke-5"))
      << "the first stays on the NIC, where nobody gets it, and one more is asked for";
}

TEST_F(FleetNic, AListingThatDiffersMakesUsLookAndChangesNothing) {
  Join(kNode1);
  Give(kNode1, {"10.1.0.4"});
  const NodeRecord before = *fleet_.ledger.Find(kNode1);
  EXPECT_THAT(OnListedNic(fleet_, kNode1, {{"spoke-1", One("10.1.0.4")}}).attach, IsEmpty());
  EXPECT_THAT(OnListedNic(fleet_, kNode1, {{"spoke-9", One("10.1.0.4")}}).attach,
              ElementsAre(kNode1))
      << "a restored store may have another name for it";
  EXPECT_THAT(OnListedNic(fleet_, kNode1, {}).attach, ElementsAre(kNode1));
  EXPECT_THAT(
      OnListedNic(fleet_, kNode1, {{"spoke-1", One("10.1.0.4")}, {"x", One("10.1.0.9")}}).attach,
      ElementsAre(kNode1));
  EXPECT_EQ(*fleet_.ledger.Find(kNode1), before);
}

TEST_F(FleetNic, ADrainingNodeWantsNothing) {
  Join(kNode1);
  ASSERT_TRUE(SetMode(fleet_, "node1", NodeMode::kDraining, kNow).ok());
  EXPECT_THAT(WantedOf(fleet_, kNode1), IsEmpty());
  EXPECT_EQ(fleet_.ledger.pools()[0].free(), 251U);
  CheckInvariants(fleet_.ledger);
  // The cloud had been asked already: what it gave is known, and given back.
  Give(kNode1, {"10.1.0.4"});
  EXPECT_EQ(CountsOf(kNode1).available, 0U);
  ReviewNode(fleet_, kNode1, {.connected = true}, kNow);
  EXPECT_TRUE(fleet_.ledger.Find(kNode1)->wanted.at("spoke-1").given_back);
}

// The call that takes it off may be under way for longer than the cooldown, or the drain.
TEST_F(FleetNic, WhatADrainedNodeGivesBackIsNotUsedOnceItsCooldownIsOver) {
  Join(kNode1);
  Join(kNode2);
  Give(kNode1, {"10.1.0.4"});
  OnReclaimAnswer(fleet_, kNode1, {.agreed = {One("10.1.0.4")}}, kNow);
  Give(kNode1, {});
  Give(kNode2, {"10.1.0.4"}, kNow + absl::Seconds(10));
  ASSERT_TRUE(SetMode(fleet_, "node2", NodeMode::kDraining, kNow + absl::Seconds(20)).ok());
  Expire(fleet_, kNow + absl::Seconds(40));
  EXPECT_EQ(CountsOf(kNode2).available, 0U);
  ASSERT_TRUE(SetMode(fleet_, "node2", NodeMode::kActive, kNow + absl::Seconds(41)).ok());
  Expire(fleet_, kNow + absl::Seconds(42));
  Give(kNode2, {"10.1.0.4"}, kNow + absl::Seconds(43));
  EXPECT_EQ(CountsOf(kNode2).available, 0U);
  EXPECT_TRUE(fleet_.ledger.Find(kNode2)->wanted.at("spoke-1").given_back);
  Give(kNode2, {}, kNow + absl::Seconds(44));  // It is off the NIC.
  Give(kNode2, {"10.1.0.4"}, kNow + absl::Seconds(45));
  EXPECT_EQ(CountsOf(kNode2).available, 1U);
  CheckInvariants(fleet_.ledger);
}

TEST_F(FleetNic, AReplacedVmWantsNothing) {
  const NodeKey successor{kNode1.name, "vm-new"};
  Join(kNode1);
  Give(kNode1, {"10.1.0.4", "10.9.0.4"});
  const Effects effects = OnHello(fleet_, HelloFrom(successor), kNow);
  EXPECT_TRUE(effects.changed.contains(kNode1));
  EXPECT_THAT(effects.attach, ElementsAre(successor)) << "no call for the old VM";
  EXPECT_THAT(WantedOf(fleet_, kNode1), ElementsAre("spoke-2")) << "which is on its NIC";
  EXPECT_EQ(CountsOf(kNode1).available, 1U) << "only the cloud can say that it is gone";
  CheckInvariants(fleet_.ledger);
}

// Two machines have one name, and a store that was restored takes what the pods of one use for
// another node's: off its NIC it must not go.
TEST_F(FleetNic, WhatCannotBeUsedStaysOnTheNicOfAReplacedVm) {
  Join(kNode1);
  Join(kNode2);
  Give(kNode2, {"10.1.0.4"});
  Give(kNode1, {"10.1.0.4"});
  ASSERT_TRUE(fleet_.ledger.Find(kNode1)->wanted.at("spoke-1").given.has_value());
  OnHello(fleet_, HelloFrom({kNode1.name, "vm-new"}), kNow);
  EXPECT_FALSE(fleet_.ledger.Find(kNode1)->wanted.at("spoke-1").given_back);
  ReviewNode(fleet_, kNode1, {}, kNow);
  Give(kNode1, {"10.1.0.4"});
  EXPECT_FALSE(fleet_.ledger.Find(kNode1)->wanted.at("spoke-1").given_back);
}

TEST_F(FleetNic, ADrainedNodeGivesBackWhatItCannotUseButForWhatAPodUses) {
  Join(kNode1);
  Join(kNode2);
  Give(kNode2, {"10.1.0.4", "10.1.0.5"});
  Give(kNode1, {"10.1.0.4", "10.1.0.5"});
  node_api::Hello hello = HelloFrom(kNode1);
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 1)};
  OnHello(fleet_, hello, kNow);
  ASSERT_TRUE(SetMode(fleet_, kNode1.name, NodeMode::kDraining, kNow).ok());
  ReviewNode(fleet_, kNode1, {.connected = true}, kNow);
  EXPECT_FALSE(fleet_.ledger.Find(kNode1)->wanted.at("spoke-1").given_back);
  EXPECT_TRUE(fleet_.ledger.Find(kNode1)->wanted.at("spoke-2").given_back);
}

TEST_F(FleetNic, AReplacedVmThatHeldOnlyNamesIsForgottenOnceItsGrantsHaveEnded) {
  Join(kNode1);
  OnHello(fleet_, HelloFrom({kNode1.name, "vm-new"}), kNow);
  EXPECT_EQ(fleet_.ledger.pools()[0].free(), 251U);
  const absl::Time end = kNow + fleet_.policy.replaced_stays;
  Expire(fleet_, end - absl::Seconds(1));
  EXPECT_NE(fleet_.ledger.Find(kNode1), nullptr) << "it may be there, and use what it was granted";
  Expire(fleet_, end);
  EXPECT_EQ(fleet_.ledger.Find(kNode1), nullptr);
}

TEST_F(FleetNic, AClockSetBackDoesNotKeepTheRecordOfAReplacedVm) {
  Join(kNode1);
  const absl::Time ahead = kNow + absl::Hours(1000);
  OnHello(fleet_, HelloFrom({kNode1.name, "vm-new"}), ahead);
  Expire(fleet_, kNow);
  Expire(fleet_, kNow + fleet_.policy.replaced_stays);
  EXPECT_EQ(fleet_.ledger.Find(kNode1), nullptr);
}

TEST_F(FleetNic, AVmThatIsGoneAndHeldNothingIsForgotten) {
  for (const bool replaced : {false, true}) {
    Join(kNode1);
    ASSERT_TRUE(SetMode(fleet_, kNode1.name, NodeMode::kDraining, kNow).ok());
    ASSERT_TRUE(fleet_.ledger.Find(kNode1)->wanted.empty());
    const NodeKey successor{kNode1.name, "vm-new"};
    if (replaced) OnHello(fleet_, HelloFrom(successor), kNow);
    OnListing(fleet_, {successor}, {kNode1}, kNow);
    OnListing(fleet_, {successor}, {kNode1}, kNow);
    Expire(fleet_, kNow);
    EXPECT_NE(fleet_.ledger.Find(kNode1), nullptr) << "it has a session";
    const Effects gone = OnListing(fleet_, {successor}, {}, kNow);
    EXPECT_THAT(gone.changed, ElementsAre(kNode1));
    EXPECT_TRUE(OnListing(fleet_, {successor}, {}, kNow).findings.empty()) << "it is said once";
    EXPECT_THAT(Expire(fleet_, kNow).changed, ElementsAre(kNode1));
    EXPECT_EQ(fleet_.ledger.Find(kNode1), nullptr);
  }
}

class FleetBlocks : public testing::Test {
 protected:
  FleetBlocks() : fleet_(PoolsOf(28), Choosing()) {
    OnHello(fleet_, HelloFrom(kNode1), kNow);
    OnNic(fleet_, kNode1, {}, kNow);
  }
  static std::vector<PoolSpec> PoolsOf(uint32_t length) {
    PoolSpec pool = Pool("blocks", "10.1.0.0/24");
    pool.block_length = length;
    return {pool};
  }
  Effects Give(const std::vector<IpConfiguration>& entries, absl::Time now = kNow) {
    Effects effects = OnNic(fleet_, kNode1, entries, now);
    CheckInvariants(fleet_.ledger);
    return effects;
  }

  Fleet fleet_;
};

TEST_F(FleetBlocks, AreWantedWhole) {
  const WantedEntry& wanted = fleet_.ledger.Find(kNode1)->wanted.at("spoke-28-1");
  EXPECT_EQ(wanted.prefix_length, 28);
  EXPECT_EQ(wanted.size(), 16U);
  Give({{"spoke-28-1", Block("10.1.0.32/28")}});
  EXPECT_EQ(CountAddresses(*fleet_.ledger.Find(kNode1)).available, 16U);
}

// The other addresses of the block are withheld with those that pods use.
TEST_F(FleetBlocks, OneOffTheNicIsOfUseOnlyAsFarAsPodsHaveIt) {
  Give({{"spoke-28-1", Block("10.1.0.32/28")}});
  OnReport(fleet_, kNode1, {.in_use = {AssignmentOf(A("10.1.0.33"), 1)}}, kNow);
  Give({});
  Give({}, kNow + absl::Minutes(2));
  const NodeRecord& record = *fleet_.ledger.Find(kNode1);
  EXPECT_EQ(CountOfUse(fleet_, record.configurations.at(A("10.1.0.32"))),
            AddressCounts{.in_use = 1});
  EXPECT_THAT(WantedOf(fleet_, kNode1), SizeIs(1)) << "another comes in its place";
  const absl::Time later = kNow + absl::Hours(1);
  Give({{WantedOf(fleet_, kNode1)[0], Block("10.1.0.48/28")}}, later);
  const Effects review = ReviewNode(fleet_, kNode1, {}, later + absl::Hours(1));
  EXPECT_THAT(review.reclaim, IsEmpty()) << "which is none of what it has too much of";
}

// As those do who write machines in a version of the cloud's API that knows of no blocks.
TEST_F(FleetBlocks, WhatOthersMadeASingleAddressOfIsTakenOffTheNic) {
  Give({{"spoke-28-1", Block("10.1.0.32/28")}});
  for (const char* address : {"10.1.0.10", "10.1.0.77"}) {
    const Effects given = Give({{"spoke-28-1", One(address)}});
    ASSERT_THAT(given.findings, SizeIs(1));
    EXPECT_THAT(given.findings[0].detail, HasSubstr("is used in units of 16 addresses, and goes"));
    EXPECT_THAT(given.attach, ElementsAre(kNode1)) << "the cloud is told";
    EXPECT_TRUE(fleet_.ledger.Find(kNode1)->wanted.at("spoke-28-1").given_back);
    EXPECT_THAT(Give({{"spoke-28-1", One(address)}}).findings, IsEmpty()) << "said once";
  }
  Give({{"spoke-28-1", Block("10.1.0.32/28")}});
  EXPECT_THAT(WantedOf(fleet_, kNode1), IsEmpty()) << "it is as it was";
}

TEST_F(FleetBlocks, WhatAPodMayUseStaysThoughItIsNoBlock) {
  const auto given_back = [&] {
    return fleet_.ledger.Find(kNode1)->wanted.at("spoke-9").given_back;
  };
  fleet_.hold.active = true;
  Give({{"spoke-9", One("10.1.0.77")}});
  EXPECT_FALSE(given_back()) << "the store may be older than the node";
  fleet_.hold.active = false;
  fleet_.refused_claims[kNode1.name].insert(A("10.1.0.77"));
  Give({{"spoke-9", One("10.1.0.77")}});
  EXPECT_FALSE(given_back()) << "its agent says so";
  fleet_.refused_claims.clear();
  ASSERT_TRUE(SetMode(fleet_, kNode1.name, NodeMode::kFrozen, kNow).ok());
  Give({{"spoke-9", One("10.1.0.77")}});
  EXPECT_FALSE(given_back()) << "nothing is taken off a node that is frozen";
  ASSERT_TRUE(SetMode(fleet_, kNode1.name, NodeMode::kActive, kNow).ok());
  Give({{"spoke-9", One("10.1.0.77")}});
  EXPECT_TRUE(given_back());
}

TEST_F(FleetBlocks, OneIsClaimedThatHasAnyAddressThatItsAgentClaims) {
  OnHello(fleet_, HelloFrom(kNode2), kNow);
  fleet_.refused_claims[kNode1.name].insert(A("10.1.0.47"));
  EXPECT_TRUE(MayBeClaimed(fleet_, kNode1, Block("10.1.0.32/28")));
  EXPECT_FALSE(MayBeClaimed(fleet_, kNode1, Block("10.1.0.48/28")));
  EXPECT_FALSE(MayBeClaimed(fleet_, kNode2, Block("10.1.0.32/28")));
  fleet_.refused_claims.clear();
  fleet_.doubled[A("10.1.0.40")].claimant = kNode1;
  EXPECT_TRUE(MayBeClaimed(fleet_, kNode1, Block("10.1.0.32/28")));
  EXPECT_FALSE(MayBeClaimed(fleet_, kNode1, Block("10.1.0.16/28")));
  EXPECT_FALSE(MayBeClaimed(fleet_, kNode2, Block("10.1.0.32/28")));
}

TEST_F(FleetNic, ARestartRemembersWhatWasWanted) {
  Join(kNode1);
  Give(kNode1, {"10.1.0.4", "10.9.0.4"});
  Fleet restarted({Pool("default", "10.1.0.0/24")}, Choosing());
  ASSERT_TRUE(restarted.ledger.Upsert(*fleet_.ledger.Find(kNode1)).ok());
  FinishLoading(restarted, kNow);
  CheckInvariants(restarted.ledger);
  EXPECT_EQ(restarted.ledger.pools()[0].free(), fleet_.ledger.pools()[0].free());
  EXPECT_EQ(restarted.ledger.NodeOn("/subscriptions/s/instances/vm-1")->key, kNode1);
  OnNic(restarted, kNode1, {{"spoke-1", One("10.1.0.4")}, {"spoke-2", One("10.1.0.6")}}, kNow);
  EXPECT_EQ(CountAddresses(*restarted.ledger.Find(kNode1)).available, 2U);
}

TEST_F(FleetNic, AVmThatIsGoneWantsNothing) {
  Join(kNode1);
  Join(kNode2);
  OnListing(fleet_, {kNode2}, {}, kNow);
  OnListing(fleet_, {kNode2}, {}, kNow);
  EXPECT_EQ(fleet_.ledger.pools()[0].free(), 247U);
  EXPECT_EQ(fleet_.ledger.NodeOn("/subscriptions/s/instances/vm-1"), nullptr);
  CheckInvariants(fleet_.ledger);
}

TEST_F(FleetNic, AVmThatIsGoneAndHeldOnlyNamesIsStoredAndForgotten) {
  Join(kNode1);
  Join(kNode2);
  OnListing(fleet_, {kNode2}, {}, kNow);
  const Effects gone = OnListing(fleet_, {kNode2}, {}, kNow);
  EXPECT_TRUE(gone.changed.contains(kNode1)) << "a restart must not want its names again";
  EXPECT_EQ(fleet_.ledger.Find(kNode1)->mode, NodeMode::kRetired);
  EXPECT_THAT(Expire(fleet_, kNow).changed, ElementsAre(kNode1)) << "it has nothing in cooldown";
  EXPECT_EQ(fleet_.ledger.Find(kNode1), nullptr);
}

}  // namespace
}  // namespace spoke::ipam
