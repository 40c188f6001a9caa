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

class AssignmentsWithClearing : public testing::Test {
 protected:
  void Hold(const std::vector<ip::Address>& addresses) {
    HoldingsReplaced event;
    for (const ip::Address& address : addresses) event.holdings.push_back({address, "default"});
    assignments_.Apply(event);
  }
  void Assign(const AttachmentKey& key) {
    assignments_.Apply(AssignmentBegun{assignments_.PlanAssignment({.key = key}, kNow).value()});
    assignments_.Apply(AssignmentBuilt{key});
  }

  Assignments assignments_{kCooldown, /*proof_required=*/{}, /*clearing_required=*/true};
};

TEST_F(AssignmentsWithClearing, TheCooldownEndsOnlyAfterTheConnectionsAreDeleted) {
  Hold({kFirst, kThird});
  Assign(kPodA);
  EXPECT_THAT(assignments_.Uncleared(), IsEmpty());
  assignments_.Apply(AssignmentReleased{kPodA, kNow});
  EXPECT_THAT(assignments_.Uncleared(), ElementsAre(kFirst, kThird));
  const absl::Time later = kNow + absl::Hours(24);
  EXPECT_THAT(assignments_.EndCooldowns(later), IsEmpty());
  EXPECT_FALSE(assignments_.PlanAssignment({.key = kPodB}, later).ok());
  EXPECT_EQ(assignments_.NextCooldownEnd(), std::nullopt) << "there is no moment to wake for";
  assignments_.SetCleared({kFirst});
  EXPECT_LE(assignments_.NextCooldownEnd(), later);
  EXPECT_THAT(assignments_.EndCooldowns(later), ElementsAre(kFirst));
  assignments_.SetCleared({kThird});
  EXPECT_THAT(assignments_.EndCooldowns(later), ElementsAre(kThird));
  EXPECT_TRUE(assignments_.PlanAssignment({.key = kPodB}, later).ok());
}

TEST_F(AssignmentsWithClearing, AClearedAddressStaysInCooldownForTheRestOfItsTime) {
  Hold({kFirst});
  Assign(kPodA);
  assignments_.Apply(AssignmentReleased{kPodA, kNow});
  assignments_.SetCleared({kFirst});
  EXPECT_EQ(assignments_.NextCooldownEnd(), kNow + kCooldown);
  EXPECT_THAT(assignments_.EndCooldowns(kNow + kCooldown - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(assignments_.EndCooldowns(kNow + kCooldown), ElementsAre(kFirst));
}

TEST_F(AssignmentsWithClearing, EachReleaseHasToBeClearedAnew) {
  Hold({kFirst});
  for (int i = 0; i < 3; ++i) {
    Assign(kPodA);
    assignments_.Apply(AssignmentReleased{kPodA, kNow});
    EXPECT_THAT(assignments_.EndCooldowns(kNow + kCooldown), IsEmpty());
    assignments_.SetCleared({kFirst});
    EXPECT_THAT(assignments_.EndCooldowns(kNow + kCooldown), ElementsAre(kFirst));
  }
}

TEST_F(AssignmentsWithClearing, WhatNoPodHadAndWhatIsAssignedAgainAreNotToBeCleared) {
  Hold({kFirst, kSecond});
  Assign(kPodA);
  assignments_.Apply(AssignmentReleased{kPodA, kNow, /*unused=*/true});
  EXPECT_THAT(assignments_.Uncleared(), IsEmpty());
  assignments_.Apply(CooldownSet{kSecond, kNow + kCooldown});
  EXPECT_THAT(assignments_.Uncleared(), ElementsAre(kSecond)) << "who had it is not known";
  // A damaged journal may hold this event.
  assignments_.Apply(AssignmentBegun{{.key = kPodB, .addresses = {kSecond}}});
  EXPECT_THAT(assignments_.Uncleared(), IsEmpty());
  assignments_.SetCleared({kFirst, kSecond, kThird});
  EXPECT_EQ(assignments_.CountByPool()["default"], (UseCounts{.available = 1, .in_use = 1}));
}

TEST_F(AssignmentsWithClearing, AnotherEndOfACooldownDoesNotAskForClearingAgain) {
  Hold({kFirst});
  Assign(kPodA);
  assignments_.Apply(AssignmentReleased{kPodA, kNow});
  assignments_.SetCleared({kFirst});
  assignments_.Apply(CooldownSet{kFirst, kNow + absl::Seconds(5)});
  EXPECT_THAT(assignments_.Uncleared(), IsEmpty());
  EXPECT_THAT(assignments_.EndCooldowns(kNow + absl::Seconds(5)), ElementsAre(kFirst));
}

TEST_F(AssignmentsWithClearing, AReplayHasAllInCooldownClearedOnceMore) {
  Hold({kFirst});
  Assign(kPodA);
  assignments_.Apply(AssignmentReleased{kPodA, kNow});
  assignments_.SetCleared({kFirst});
  Assignments replayed(kCooldown, {}, true);
  for (const Event& event : assignments_.Snapshot()) replayed.Apply(event);
  EXPECT_THAT(replayed.Uncleared(), ElementsAre(kFirst));
  EXPECT_THAT(replayed.EndCooldowns(kNow + kCooldown), IsEmpty());
}

TEST_F(AssignmentsWithClearing, WhatIsUnclearedStaysInCooldownWhateverHappens) {
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
        if (const auto assignment = assignments_.PlanAssignment({.key = key}, now);
            assignment.ok()) {
          assignments_.Apply(AssignmentBegun{*assignment});
        }
        break;
      case 1:
        assignments_.Apply(AssignmentReleased{key, now, /*unused=*/random() % 4 == 0});
        break;
      case 2:
        assignments_.Apply(CooldownSet{any, now + absl::Seconds(random() % 100)});
        break;
      case 3:
        assignments_.SetCleared({any});
        break;
      case 4:
        Hold(random() % 2 == 0 ? std::vector{kFirst, kThird}
                               : std::vector{kFirst, kSecond, kThird});
        break;
      case 5:
        assignments_.ClampCooldowns(now);
        break;
      default:
        now += absl::Seconds(random() % 20);
        for (const ip::Address& cooled : assignments_.EndCooldowns(now)) {
          ASSERT_FALSE(assignments_.Uncleared().contains(cooled));
        }
    }
    const std::vector<ip::Address> cooldown = assignments_.Cooldown();
    ASSERT_TRUE(std::includes(cooldown.begin(), cooldown.end(), assignments_.Uncleared().begin(),
                              assignments_.Uncleared().end()));
    // Every address in cooldown is either waited for or has a moment to wake for.
    if (!cooldown.empty() && assignments_.Uncleared().empty()) {
      ASSERT_NE(assignments_.NextCooldownEnd(), std::nullopt);
    }
  }
}

TEST(AssignmentsCooldown, AClockThatWasAheadKeepsNoAddressLongerThanTheCooldown) {
  Assignments assignments(kCooldown);
  HoldingsReplaced holdings;
  for (const ip::Address& address : {kFirst, kSecond, kThird}) {
    holdings.holdings.push_back({address, "default"});
  }
  assignments.Apply(holdings);
  // These are the events of a journal written a day ahead; one cooldown's end is near.
  assignments.Apply(AssignmentBegun{{.key = kPodA, .addresses = {kFirst}}});
  assignments.Apply(AssignmentReleased{kPodA, kNow + absl::Hours(24)});
  assignments.Apply(CooldownSet{kSecond, absl::InfiniteFuture()});
  assignments.Apply(CooldownSet{kThird, kNow + absl::Seconds(5)});
  assignments.ClampCooldowns(kNow);
  EXPECT_THAT(assignments.EndCooldowns(kNow + absl::Seconds(5)), ElementsAre(kThird));
  EXPECT_THAT(assignments.EndCooldowns(kNow + kCooldown - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(assignments.EndCooldowns(kNow + kCooldown), ElementsAre(kFirst, kSecond));
}

TEST(AssignmentsCooldown, AClockThatWasBehindEndsCooldownsAndAsksForNothing) {
  Assignments assignments(kCooldown);
  assignments.Apply(CooldownSet{kFirst, kNow - absl::Hours(24)});
  assignments.ClampCooldowns(kNow);
  EXPECT_THAT(assignments.EndCooldowns(kNow), ElementsAre(kFirst));
}

}  // namespace
}  // namespace spoke::netagent
