#include "ipam-server/ledger/recovery.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Phase = Recovery::Phase;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
const NodeKey kNode1{"node1", "vm-1"};
const NodeKey kNode2{"node2", "vm-2"};

// All have had the time to come back.
const absl::Time kReady = kNow + Recovery::kLeastTime;

Recovery AtEpoch(uint64_t epoch) { return Recovery({.store_id = "ours", .epoch = epoch}); }
Witness Last(std::string store, uint64_t epoch, bool same_boot = true) {
  return {.last = StoreMark{.store_id = std::move(store), .epoch = epoch, .nodes = 2},
          .same_boot = same_boot};
}

TEST(Recovery, AnOrdinaryRestartDecidesAtOnce) {
  Recovery recovery = AtEpoch(10);
  recovery.Begin(Last("ours", 10), kNow);
  EXPECT_TRUE(recovery.open());
  recovery = AtEpoch(10);
  recovery.Begin(Last("ours", 9), kNow);
  EXPECT_TRUE(recovery.open()) << "the last commits may not have been noted beside the store";
}

TEST(Recovery, TheFirstStartOfAllDecidesAtOnce) {
  Recovery recovery = AtEpoch(0);
  recovery.Begin({.first_start = true}, kNow);
  EXPECT_TRUE(recovery.open());
}

TEST(Recovery, SaysUnderWhichLeadershipTheStoreWasTakenForTheNewest) {
  Recovery recovery({.store_id = "ours", .epoch = 10, .opened_under = 7});
  recovery.Begin(Last("ours", 10, /*same_boot=*/false), kNow, 8);
  EXPECT_EQ(recovery.Next().opened_under, 0) << "nodes have time to contradict";
  recovery.Open(kNow);
  EXPECT_EQ(recovery.Next().opened_under, 8);
  recovery.OnMark({.store_id = "another", .epoch = 1, .nodes = 1}, kNow);
  EXPECT_EQ(recovery.Next().opened_under, 0);
}

TEST(Recovery, RemembersWhenTheStoreWasBehind) {
  Recovery recovery = AtEpoch(10);
  recovery.Begin(Last("ours", 10, /*same_boot=*/false), kNow);
  recovery.Open(kNow);
  EXPECT_EQ(recovery.Next().recovered, absl::InfinitePast()) << "nobody had been told more";
  recovery.OnMark({.store_id = "ours", .epoch = 1000, .nodes = 1}, kNow);
  EXPECT_EQ(recovery.Next().recovered, absl::InfinitePast()) << "that is not over";
  recovery.Open(kNow + absl::Seconds(5));
  EXPECT_EQ(recovery.Next().recovered, kNow + absl::Seconds(5));
  Recovery next(recovery.Next());
  next.Begin(Last("ours", 10, /*same_boot=*/false), kNow);
  next.Open(kNow + absl::Seconds(90));
  EXPECT_EQ(next.Next().recovered, kNow + absl::Seconds(5));
}

TEST(Recovery, AStoreOlderThanWhatLiesBesideItRecovers) {
  Recovery recovery = AtEpoch(10);
  recovery.Begin(Last("ours", 11), kNow);
  EXPECT_EQ(recovery.phase(), Phase::kRecovering);
  EXPECT_THAT(recovery.Reason(), HasSubstr("epoch 10 after 11"));
}

TEST(Recovery, AnotherStoreThanBeforeRecovers) {
  Recovery recovery({.store_id = "made anew"});
  recovery.Begin(Last("ours", 11), kNow);
  EXPECT_EQ(recovery.phase(), Phase::kRecovering);
  EXPECT_THAT(recovery.Reason(), HasSubstr("lost or replaced"));
}

TEST(Recovery, OnAMachineThatHasBootedNodesHaveTimeToSpeak) {
  for (const Witness& witness : {Last("ours", 10, /*same_boot=*/false), Witness()}) {
    Recovery recovery = AtEpoch(10);
    recovery.Begin(witness, kNow);
    EXPECT_EQ(recovery.phase(), Phase::kProving);
    EXPECT_FALSE(recovery.MayOpen({kNode1}, kNow + absl::Seconds(59)));
    EXPECT_FALSE(recovery.MayOpen({}, kNow)) << "a store without nodes may be a new one";
    EXPECT_TRUE(recovery.MayOpen({kNode1}, kNow + absl::Minutes(1)));
    recovery.OnSpoken(kNode1);
    EXPECT_FALSE(recovery.MayOpen({kNode1}, kNow + absl::Seconds(14)))
        << "there may be one that this store does not know";
    EXPECT_TRUE(recovery.MayOpen({kNode1}, kNow + absl::Seconds(15))) << "all have spoken";
    recovery.Open(kNow);
    EXPECT_TRUE(recovery.open());
  }
}

// Each hello is a commit, so that an old store would come up to what nodes were told since.
TEST(Recovery, WhoHasForgottenWhatItWasToldConfirmsNothing) {
  Recovery recovery = AtEpoch(10);
  recovery.Begin(Last("ours", 10, /*same_boot=*/false), kNow);
  recovery.OnSpoken(kNode1);
  recovery.OnForgotten(kNode2);
  EXPECT_THAT(recovery.forgotten(), ElementsAre(kNode2));
  EXPECT_FALSE(recovery.MayOpen({kNode1}, kNow + absl::Seconds(59)))
      << "by the store it has nothing, but that may be an old one";
  EXPECT_FALSE(recovery.MayOpen({kNode1, kNode2}, kNow + absl::Seconds(59)));
  EXPECT_TRUE(recovery.MayOpen({kNode1, kNode2}, kNow + absl::Minutes(1)));
}

TEST(Recovery, WhoIsGoneIsNotWaitedFor) {
  Recovery recovery({.store_id = "ours", .epoch = 10, .backup = true});
  recovery.Begin(Last("ours", 10), kNow);  // Two nodes had addresses.
  recovery.OnSpoken(kNode1);
  EXPECT_TRUE(recovery.IsAwaited(kNode2));
  EXPECT_EQ(recovery.Silent({kNode1, kNode2}), 1U);
  recovery.OnGone(kNode2);
  EXPECT_FALSE(recovery.IsAwaited(kNode2));
  EXPECT_EQ(recovery.Silent({kNode1, kNode2}), 0U);
  EXPECT_TRUE(recovery.MayOpen({kNode1, kNode2}, kReady));
  EXPECT_THAT(recovery.spoken(), ElementsAre(kNode1)) << "what it had goes to those that have it";
  recovery.OnSpoken(kNode2);
  recovery.OnGone(kNode1);
  EXPECT_EQ(recovery.Silent({}), 0U) << "each counts once";
  recovery.OnMark({.store_id = "ours", .epoch = 1000, .nodes = 3}, kNow);
  EXPECT_EQ(recovery.Silent({}), 1U);
  recovery.OnGone({"node3", "vm-3"});
  EXPECT_EQ(recovery.Silent({}), 0U);
  recovery.Open(kReady);
  recovery.OnMark({.store_id = "ours", .epoch = 9000, .nodes = 2}, kReady);
  EXPECT_EQ(recovery.Silent({}), 2U) << "who was gone before is not among these";
}

// Its mark may have been restored as well, in this boot even, and whoever was told more be away.
TEST(Recovery, ABackupIsNeverTakenForTheNewest) {
  Recovery recovery({.store_id = "ours", .epoch = 10, .backup = true});
  recovery.Begin(Last("ours", 10), kNow);
  EXPECT_EQ(recovery.phase(), Phase::kRecovering);
  EXPECT_THAT(recovery.Reason(), HasSubstr("backup"));
  EXPECT_FALSE(recovery.Next().backup) << "the cause says it from now on";
  ASSERT_TRUE(recovery.Next().cause.has_value());
  EXPECT_FALSE(recovery.MayOpen({kNode1}, kNow + absl::Hours(24))) << "it has not spoken";
  recovery.OnSpoken(kNode1);
  recovery.OnSpoken(kNode2);
  EXPECT_TRUE(recovery.MayOpen({kNode1}, kReady));
}

// A move into etcd raises the epoch, so that it is not behind.
TEST(Recovery, ABackupUnderTheServerBeginsOneHoweverFarItsEpochIs) {
  Recovery recovery = AtEpoch(10);
  recovery.Begin(Last("ours", 10), kNow);
  recovery.Committed();
  recovery.OnReload({.store_id = "ours", .epoch = 5000}, 2, kNow);
  EXPECT_TRUE(recovery.open());
  recovery.OnReload({.store_id = "ours", .epoch = 5000, .backup = true}, 2, kNow);
  EXPECT_EQ(recovery.phase(), Phase::kRecovering);
  EXPECT_EQ(recovery.Silent({}), 2U);
}

TEST(Recovery, WhatIsStoredWhileNobodyIsToldAnythingHidesNoMark) {
  Recovery recovery = AtEpoch(10);
  recovery.Begin(Witness(), kNow);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(recovery.Next().epoch, 10U);
    recovery.Committed();
  }
  EXPECT_TRUE(recovery.OnMark({.store_id = "ours", .epoch = 12, .nodes = 2}, kNow));
  recovery.Committed();
  recovery.OnSpoken(kNode1);
  EXPECT_FALSE(recovery.OnMark({.store_id = "ours", .epoch = 11, .nodes = 3}, kNow)) << "already";
  EXPECT_EQ(recovery.Silent({kNode1}), 2U) << "the older mark counts as well";
  recovery.Open(kNow);
  recovery.Committed();
  EXPECT_EQ(recovery.state().epoch, 14U);
}

TEST(Recovery, WhatANodeWasToldBeyondTheStoreBeginsARecovery) {
  Recovery recovery = AtEpoch(10);
  EXPECT_FALSE(recovery.OnMark({.store_id = "ours", .epoch = 10}, kNow));
  EXPECT_TRUE(recovery.open());
  EXPECT_TRUE(recovery.OnMark({.store_id = "ours", .epoch = 12, .nodes = 1}, kNow));
  EXPECT_FALSE(recovery.OnMark({.store_id = "ours", .epoch = 15, .nodes = 2}, kNow)) << "already";
  EXPECT_FALSE(recovery.MayOpen({kNode1}, kNow + absl::Hours(24))) << "time does not help";
  recovery.OnSpoken(kNode1);
  EXPECT_EQ(recovery.Silent({kNode1}), 1U) << "there were two nodes";
  EXPECT_FALSE(recovery.MayOpen({kNode1}, kReady));
  recovery.OnSpoken(kNode2);
  EXPECT_TRUE(recovery.MayOpen({kNode1}, kReady));
  recovery.Open(kNow);
  EXPECT_FALSE(recovery.OnMark({.store_id = "ours", .epoch = 15}, kNow)) << "that is old now";
  EXPECT_GT(recovery.state().epoch, 15U);
}

TEST(Recovery, WhoSpokeWhileItWasProvedHasToSayAllOnceItRecovers) {
  Recovery recovery = AtEpoch(10);
  recovery.Begin(Last("ours", 10, /*same_boot=*/false), kNow);
  recovery.OnSpoken(kNode1);
  EXPECT_TRUE(recovery.OnMark({.store_id = "ours", .epoch = 12, .nodes = 1}, kNow));
  EXPECT_FALSE(recovery.MayOpen({kNode1}, kReady));
  EXPECT_EQ(recovery.Silent({kNode1}), 1U);
  recovery.OnSpoken(kNode1);
  EXPECT_TRUE(recovery.MayOpen({kNode1}, kReady));
}

// A server with thousands of nodes asks in each turn: mostly it need not look at them all.
TEST(Recovery, ALookAtTimeOrAtOneNodeSaysThatItStaysShut) {
  Recovery proving = AtEpoch(10);
  EXPECT_FALSE(proving.WaitsFor(kNode1, kNow)) << "it is open";
  proving.Begin(Last("ours", 10, /*same_boot=*/false), kNow);
  EXPECT_TRUE(proving.IsEarly(kNow + absl::Seconds(14)));
  EXPECT_FALSE(proving.IsEarly(kNow + absl::Seconds(15)));
  EXPECT_TRUE(proving.WaitsFor(kNode1, kNow + absl::Seconds(59)));
  EXPECT_FALSE(proving.WaitsFor(kNode1, kNow + absl::Minutes(1))) << "it has had its time";
  proving.OnSpoken(kNode1);
  EXPECT_FALSE(proving.WaitsFor(kNode1, kNow + absl::Seconds(59)));
  EXPECT_TRUE(proving.WaitsFor(kNode2, kNow + absl::Seconds(59)));

  Recovery recovery = AtEpoch(10);
  recovery.OnMark({.store_id = "ours", .epoch = 12, .nodes = 2}, kNow);
  EXPECT_TRUE(recovery.IsEarly(kNow + absl::Hours(24))) << "nobody has spoken";
  recovery.OnSpoken(kNode1);
  EXPECT_TRUE(recovery.IsEarly(kReady)) << "there were two nodes";
  EXPECT_FALSE(recovery.WaitsFor(kNode1, kReady));
  EXPECT_TRUE(recovery.WaitsFor(kNode2, kNow + absl::Hours(24)));
  EXPECT_FALSE(recovery.MayOpen({kNode1, kNode2}, kNow + absl::Hours(24)));
  recovery.OnSpoken(kNode2);
  EXPECT_TRUE(recovery.IsEarly(kReady - absl::Seconds(1))) << "others may be on their way";
  EXPECT_FALSE(recovery.IsEarly(kReady));
  EXPECT_FALSE(recovery.WaitsFor(kNode2, kReady));
  EXPECT_TRUE(recovery.MayOpen({kNode1, kNode2}, kReady));
}

TEST(Recovery, AMarkOfAnotherStoreBeginsOneAndIsSettledByIt) {
  Recovery recovery({.store_id = "made anew", .epoch = 3});
  EXPECT_TRUE(recovery.OnMark({.store_id = "ours", .epoch = 2, .nodes = 1}, kNow));
  EXPECT_FALSE(recovery.MayOpen({}, kReady)) << "nobody is known, and nobody has spoken";
  recovery.OnSpoken(kNode1);
  EXPECT_TRUE(recovery.MayOpen({}, kReady));
  recovery.Open(kNow);
  EXPECT_THAT(recovery.state().former, ElementsAre("ours"));
  EXPECT_FALSE(recovery.OnMark({.store_id = "ours", .epoch = 200}, kNow));
}

TEST(Recovery, GoesOnAfterARestart) {
  Recovery recovery = AtEpoch(10);
  recovery.OnMark({.store_id = "ours", .epoch = 12, .nodes = 7}, kNow);
  Recovery restarted(recovery.Next());
  restarted.Begin(Last("ours", 11), kNow);
  EXPECT_EQ(restarted.phase(), Phase::kRecovering);
  EXPECT_EQ(restarted.Silent({}), 7U);
}

TEST(Recovery, AnEndThatCouldNotBeStoredHasNotBeen) {
  Recovery recovery = AtEpoch(10);
  recovery.OnMark({.store_id = "ours", .epoch = 12, .nodes = 1}, kNow);
  const RecoveryState stored = recovery.Next();
  recovery.OnSpoken(kNode1);
  recovery.Open(kNow);
  recovery.OnReload(stored, 2, kNow);
  EXPECT_EQ(recovery.phase(), Phase::kRecovering);
  EXPECT_FALSE(recovery.MayOpen({}, kNow)) << "nodes have to speak again";
  recovery.OnSpoken(kNode1);
  recovery.Open(kNow);
  EXPECT_GT(recovery.state().epoch, 12U);
}

TEST(Recovery, AStoreThatIsRestoredUnderTheServerBeginsOne) {
  Recovery recovery = AtEpoch(10);
  recovery.Begin(Last("ours", 10), kNow);
  recovery.Committed();
  recovery.Committed();
  recovery.OnReload({.store_id = "ours", .epoch = 12}, 2, kNow);
  EXPECT_TRUE(recovery.open()) << "what could not be stored was not";
  recovery.OnReload({.store_id = "ours", .epoch = 11}, 2, kNow);
  EXPECT_EQ(recovery.phase(), Phase::kRecovering);
  EXPECT_THAT(recovery.Reason(), HasSubstr("epoch 11 after 12"));
  recovery.OnSpoken(kNode1);
  EXPECT_EQ(recovery.Silent({kNode1}), 1U) << "the one that the restored store does not know";
  recovery.OnSpoken(kNode2);
  recovery.Open(kNow);
  EXPECT_EQ(recovery.state().epoch, 13U) << "what nodes were told is old from now on";
}

TEST(Recovery, ABeginningThatCouldNotBeStoredHolds) {
  Recovery recovery = AtEpoch(10);
  recovery.OnMark({.store_id = "ours", .epoch = 12, .nodes = 1}, kNow);
  recovery.OnReload({.store_id = "ours", .epoch = 10}, 2, kNow);
  EXPECT_EQ(recovery.phase(), Phase::kRecovering);
}

TEST(Recovery, UnverifiedMarksAreRefusedUntilAnOperatorTakesThemForAWhile) {
  Recovery recovery = AtEpoch(10);
  EXPECT_TRUE(recovery.Refuse("node1", "signed by another key", kNow));
  EXPECT_EQ(recovery.refused().at("node1").why, "signed by another key");
  recovery.AcceptUnverified(kNow);
  EXPECT_TRUE(recovery.refused().empty());
  EXPECT_FALSE(recovery.Refuse("node1", "", kNow + absl::Minutes(59)));
  EXPECT_TRUE(recovery.Refuse("node1", "", kNow + absl::Hours(1)));
  recovery.Accept("node1");
  EXPECT_TRUE(recovery.refused().empty());
}

TEST(Recovery, ARefusedNodeThatDoesNotComeAgainIsForgotten) {
  Recovery recovery = AtEpoch(10);
  EXPECT_TRUE(recovery.Refuse("node1", "", kNow));
  EXPECT_TRUE(recovery.Refuse("node2", "", kNow));
  const absl::Time late = kNow + Recovery::kRefusedTime;
  EXPECT_TRUE(recovery.Refuse("node2", "", late - absl::Seconds(1)));
  recovery.ForgetRefused(late - absl::Nanoseconds(1));
  EXPECT_EQ(recovery.refused().size(), 2U);
  recovery.ForgetRefused(late);
  EXPECT_EQ(recovery.refused().size(), 1U);
  EXPECT_TRUE(recovery.refused().contains("node2"));
  recovery.ForgetRefused(kNow);
  EXPECT_TRUE(recovery.refused().empty()) << "the clock was set back";
}

TEST(Recovery, RemembersAFewFormerStores) {
  Recovery recovery = AtEpoch(1);
  for (int i = 0; i < 20; ++i) {
    recovery.OnMark({.store_id = "store" + std::to_string(i), .epoch = 1}, kNow);
    recovery.Open(kNow);
  }
  EXPECT_EQ(recovery.state().former.size(), Recovery::kMostFormer);
  EXPECT_EQ(recovery.state().former.back(), "store19");
}

}  // namespace
}  // namespace spoke::ipam
