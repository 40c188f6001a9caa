// When a cooldown ends: after its time, after the connections of the address have been deleted, and
// never later than the configuration says, whatever clock the journal was written by.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kCooldown = absl::Seconds(30);
const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};
constexpr ip::Address kFirst = ip::Address::V4(0x0A010005);
constexpr ip::Address kSecond = ip::Address::V4(0x0A010006);
constexpr ip::Address kThird = ip::Address::V6(0xFD00'0000'0000'0000, 5);

class LendingsWithClearing : public testing::Test {
 protected:
  void Hold(const std::vector<ip::Address>& addresses) {
    HoldingsReplaced event;
    for (const ip::Address& address : addresses) event.holdings.push_back({address, "default"});
    lendings_.Apply(event);
  }
  void Lend(const AttachmentKey& key) {
    lendings_.Apply(LendingBegun{lendings_.PlanLend({.key = key}, kNow).value()});
    lendings_.Apply(LendingBuilt{key});
  }

  Lendings lendings_{kCooldown, /*proof_required=*/{}, /*clearing_required=*/true};
};

TEST_F(LendingsWithClearing, TheCooldownEndsOnlyAfterTheConnectionsAreDeleted) {
  Hold({kFirst, kThird});
  Lend(kPodA);
  EXPECT_THAT(lendings_.Uncleared(), IsEmpty());
  lendings_.Apply(LendingReleased{kPodA, kNow});
  EXPECT_THAT(lendings_.Uncleared(), ElementsAre(kFirst, kThird));
  const absl::Time later = kNow + absl::Hours(24);
  EXPECT_THAT(lendings_.EndCooldowns(later), IsEmpty());
  EXPECT_FALSE(lendings_.PlanLend({.key = kPodB}, later).ok());
  EXPECT_EQ(lendings_.NextCooldownEnd(), std::nullopt) << "there is no moment to wake for";
  lendings_.SetCleared({kFirst});
  EXPECT_LE(lendings_.NextCooldownEnd(), later);
  EXPECT_THAT(lendings_.EndCooldowns(later), ElementsAre(kFirst));
  lendings_.SetCleared({kThird});
  EXPECT_THAT(lendings_.EndCooldowns(later), ElementsAre(kThird));
  EXPECT_TRUE(lendings_.PlanLend({.key = kPodB}, later).ok());
}

TEST_F(LendingsWithClearing, ClearedItCoolsForTheRestOfItsTime) {
  Hold({kFirst});
  Lend(kPodA);
  lendings_.Apply(LendingReleased{kPodA, kNow});
  lendings_.SetCleared({kFirst});
  EXPECT_EQ(lendings_.NextCooldownEnd(), kNow + kCooldown);
  EXPECT_THAT(lendings_.EndCooldowns(kNow + kCooldown - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(lendings_.EndCooldowns(kNow + kCooldown), ElementsAre(kFirst));
}

TEST_F(LendingsWithClearing, EachReleaseHasToBeClearedAnew) {
  Hold({kFirst});
  for (int i = 0; i < 3; ++i) {
    Lend(kPodA);
    lendings_.Apply(LendingReleased{kPodA, kNow});
    EXPECT_THAT(lendings_.EndCooldowns(kNow + kCooldown), IsEmpty());
    lendings_.SetCleared({kFirst});
    EXPECT_THAT(lendings_.EndCooldowns(kNow + kCooldown), ElementsAre(kFirst));
  }
}

TEST_F(LendingsWithClearing, WhatNoPodHadAndWhatIsLentAgainAreNotToBeCleared) {
  Hold({kFirst, kSecond});
  Lend(kPodA);
  lendings_.Apply(LendingReleased{kPodA, kNow, /*unused=*/true});
  EXPECT_THAT(lendings_.Uncleared(), IsEmpty());
  lendings_.Apply(CoolingSet{kSecond, kNow + kCooldown});
  EXPECT_THAT(lendings_.Uncleared(), ElementsAre(kSecond)) << "who had it is not known";
  // Of a damaged journal.
  lendings_.Apply(LendingBegun{{.key = kPodB, .addresses = {kSecond}}});
  EXPECT_THAT(lendings_.Uncleared(), IsEmpty());
  lendings_.SetCleared({kFirst, kSecond, kThird});
  EXPECT_EQ(lendings_.CountByPool()["default"], (UseCounts{.idle = 1, .lent = 1}));
}

TEST_F(LendingsWithClearing, AnotherEndOfACooldownDoesNotAskForClearingAgain) {
  Hold({kFirst});
  Lend(kPodA);
  lendings_.Apply(LendingReleased{kPodA, kNow});
  lendings_.SetCleared({kFirst});
  lendings_.Apply(CoolingSet{kFirst, kNow + absl::Seconds(5)});
  EXPECT_THAT(lendings_.Uncleared(), IsEmpty());
  EXPECT_THAT(lendings_.EndCooldowns(kNow + absl::Seconds(5)), ElementsAre(kFirst));
}

TEST_F(LendingsWithClearing, AReplayHasAllThatCoolClearedOnceMore) {
  Hold({kFirst});
  Lend(kPodA);
  lendings_.Apply(LendingReleased{kPodA, kNow});
  lendings_.SetCleared({kFirst});
  Lendings replayed(kCooldown, {}, true);
  for (const Event& event : lendings_.Snapshot()) replayed.Apply(event);
  EXPECT_THAT(replayed.Uncleared(), ElementsAre(kFirst));
  EXPECT_THAT(replayed.EndCooldowns(kNow + kCooldown), IsEmpty());
}

TEST_F(LendingsWithClearing, WhatIsUnclearedCoolsWhateverHappens) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  absl::Time now = kNow;
  Hold({kFirst, kSecond, kThird});
  for (int i = 0; i < 20'000; ++i) {
    const AttachmentKey key{std::to_string(random() % 3), "eth0"};
    const ip::Address any = std::vector{kFirst, kSecond, kThird}[random() % 3];
    switch (random() % 7) {
      case 0:
        if (const auto lending = lendings_.PlanLend({.key = key}, now); lending.ok()) {
          lendings_.Apply(LendingBegun{*lending});
        }
        break;
      case 1:
        lendings_.Apply(LendingReleased{key, now, /*unused=*/random() % 4 == 0});
        break;
      case 2:
        lendings_.Apply(CoolingSet{any, now + absl::Seconds(random() % 100)});
        break;
      case 3:
        lendings_.SetCleared({any});
        break;
      case 4:
        Hold(random() % 2 == 0 ? std::vector{kFirst, kThird}
                               : std::vector{kFirst, kSecond, kThird});
        break;
      case 5:
        lendings_.ClampCooldowns(now);
        break;
      default:
        now += absl::Seconds(random() % 20);
        for (const ip::Address& cooled : lendings_.EndCooldowns(now)) {
          ASSERT_FALSE(lendings_.Uncleared().contains(cooled));
        }
    }
    const std::vector<ip::Address> cooling = lendings_.Cooling();
    ASSERT_TRUE(std::includes(cooling.begin(), cooling.end(), lendings_.Uncleared().begin(),
                              lendings_.Uncleared().end()));
    // Whatever cools is either waited for or has a moment to wake for.
    if (!cooling.empty() && lendings_.Uncleared().empty()) {
      ASSERT_NE(lendings_.NextCooldownEnd(), std::nullopt);
    }
  }
}

TEST(LendingsCooldown, AClockThatWasAheadKeepsNoAddressLongerThanTheCooldown) {
  Lendings lendings(kCooldown);
  HoldingsReplaced holdings;
  for (const ip::Address& address : {kFirst, kSecond, kThird}) {
    holdings.holdings.push_back({address, "default"});
  }
  lendings.Apply(holdings);
  // As the journal has them that was written a day ahead; and one whose end is near.
  lendings.Apply(LendingBegun{{.key = kPodA, .addresses = {kFirst}}});
  lendings.Apply(LendingReleased{kPodA, kNow + absl::Hours(24)});
  lendings.Apply(CoolingSet{kSecond, absl::InfiniteFuture()});
  lendings.Apply(CoolingSet{kThird, kNow + absl::Seconds(5)});
  lendings.ClampCooldowns(kNow);
  EXPECT_THAT(lendings.EndCooldowns(kNow + absl::Seconds(5)), ElementsAre(kThird));
  EXPECT_THAT(lendings.EndCooldowns(kNow + kCooldown - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(lendings.EndCooldowns(kNow + kCooldown), ElementsAre(kFirst, kSecond));
}

TEST(LendingsCooldown, AClockThatWasBehindEndsCooldownsAndAsksForNothing) {
  Lendings lendings(kCooldown);
  lendings.Apply(CoolingSet{kFirst, kNow - absl::Hours(24)});
  lendings.ClampCooldowns(kNow);
  EXPECT_THAT(lendings.EndCooldowns(kNow), ElementsAre(kFirst));
}

}  // namespace
}  // namespace spoke::netagent
