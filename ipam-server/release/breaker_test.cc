#include "ipam-server/release/breaker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
const BreakerPolicy kPolicy{
    .share = 0.05, .floor = 32, .source_floor = 3, .window = absl::Minutes(10)};

TEST(MassReleaseBreaker, AllowsTheShareAndNotOneMore) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_TRUE(breaker.Judge(200'000, 10'000, kNow).allowed);
  EXPECT_FALSE(breaker.frozen());
  const auto verdict = breaker.Judge(190'000, 1, kNow + absl::Minutes(9));
  EXPECT_FALSE(verdict.allowed);
  EXPECT_TRUE(breaker.frozen());
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("free 1 addresses after 10000"), HasSubstr("10m"),
                                    HasSubstr("of 200000 attached"), HasSubstr("10000 may go"),
                                    HasSubstr("spokectl unfreeze")));
}

TEST(MassReleaseBreaker, WhatWasFreedIsForgottenAfterTheWindow) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_TRUE(breaker.Judge(200'000, 10'000, kNow).allowed);
  EXPECT_TRUE(breaker.Judge(190'000, 9'500, kNow + absl::Minutes(10) + absl::Seconds(10)).allowed);
}

TEST(MassReleaseBreaker, ManySmallPassesAreOneLargeOne) {
  MassReleaseBreaker breaker(kPolicy);
  uint64_t attached = 200'000;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(breaker.Judge(attached, 10, kNow + absl::Milliseconds(i)).allowed) << i;
    attached -= 10;
  }
  EXPECT_LE(breaker.state().freed.size(), 2U) << "bounded, however many passes";
  EXPECT_FALSE(breaker.Judge(attached, 10, kNow + absl::Seconds(2)).allowed);
}

TEST(MassReleaseBreaker, ASmallClusterMayReleaseUpToTheFloorButNeverAll) {
  EXPECT_TRUE(MassReleaseBreaker(kPolicy).Judge(64, 32, kNow).allowed);
  EXPECT_FALSE(MassReleaseBreaker(kPolicy).Judge(64, 33, kNow).allowed);
  EXPECT_TRUE(MassReleaseBreaker(kPolicy).Judge(20, 19, kNow).allowed);
  EXPECT_FALSE(MassReleaseBreaker(kPolicy).Judge(20, 20, kNow).allowed);
  EXPECT_TRUE(MassReleaseBreaker(kPolicy).Judge(0, 0, kNow).allowed);
}

TEST(MassReleaseBreaker, AShareOfOneTurnsItOff) {
  BreakerPolicy off = kPolicy;
  off.share = 1;
  MassReleaseBreaker breaker(off);
  EXPECT_TRUE(breaker.Judge(100, 100, kNow).allowed);
  EXPECT_TRUE(breaker.SourceShrank("the list", 100, 0, kNow).allowed);
}

TEST(MassReleaseBreaker, WhatWasLetGoCountsForAsLongAsItTakesFromTheRoom) {
  MassReleaseBreaker breaker(kPolicy);
  ASSERT_TRUE(breaker.Judge(1000, 10, kNow).allowed);
  const uint64_t room = breaker.Headroom(1000, kNow + 2 * kPolicy.window);
  for (absl::Duration passed; passed < 2 * kPolicy.window; passed += absl::Seconds(1)) {
    EXPECT_EQ(breaker.Counts(kNow, kNow + passed), breaker.Headroom(1000, kNow + passed) < room)
        << passed;
  }
}

TEST(MassReleaseBreaker, NothingIsAllowedUntilAnOperatorUnfreezes) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_EQ(breaker.Unfreeze(kNow), std::nullopt);
  const auto tripped = breaker.Judge(1000, 500, kNow);
  const auto later = breaker.Judge(1000, 1, kNow + absl::Hours(48));
  EXPECT_FALSE(later.allowed);
  EXPECT_EQ(later.reason, tripped.reason) << "the cause, not the consequence";
  EXPECT_EQ(breaker.Headroom(1000, kNow), 0U);
  EXPECT_EQ(breaker.state().trips, 1U);
  EXPECT_EQ(breaker.Unfreeze(kNow), tripped.reason);
  EXPECT_FALSE(breaker.frozen());
  EXPECT_TRUE(breaker.Judge(1000, 50, kNow).allowed);
}

TEST(MassReleaseBreaker, AnUnfreezeLetsWhatWasRefusedHappenOnceAndSoon) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.Judge(1000, 500, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.Judge(1000, 500, kNow + absl::Minutes(1)).allowed);
  EXPECT_FALSE(breaker.Judge(500, 500, kNow + absl::Minutes(2)).allowed) << "but only once";

  MassReleaseBreaker slow(kPolicy);
  EXPECT_FALSE(slow.Judge(1000, 500, kNow).allowed);
  slow.Unfreeze(kNow);
  EXPECT_FALSE(slow.Judge(1000, 500, kNow + absl::Minutes(10)).allowed) << "a new question by then";
}

TEST(MassReleaseBreaker, AListingThatSuddenlyShrankFreezesReleases) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_TRUE(breaker.SourceShrank("the cloud's list of VMs", 7500, 7125, kNow).allowed);
  EXPECT_TRUE(breaker.SourceShrank("the cloud's list of VMs", 7500, 8000, kNow).allowed);
  EXPECT_TRUE(breaker.SourceShrank("the cloud's list of VMs", 10, 7, kNow).allowed);
  EXPECT_TRUE(breaker.SourceShrank("the cloud's list of VMs", 0, 0, kNow).allowed);
  const auto verdict = breaker.SourceShrank("the cloud's list of VMs", 7500, 7124, kNow);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("the cloud's list of VMs fell from 7500 entries to"),
                                    HasSubstr("spokectl unfreeze")));
  EXPECT_FALSE(breaker.Judge(200'000, 1, kNow).allowed) << "frozen for everything";
}

TEST(MassReleaseBreaker, AListingMayNotLoseItsOnlyEntries) {
  EXPECT_FALSE(MassReleaseBreaker(kPolicy).SourceShrank("the list", 3, 0, kNow).allowed);
}

TEST(MassReleaseBreaker, AnUnfrozenListingMayBeAsShortAsItWasButNoShorter) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.SourceShrank("the list", 100, 50, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.SourceShrank("the list", 100, 50, kNow).allowed);
  EXPECT_FALSE(breaker.SourceShrank("the list", 100, 49, kNow).allowed);
}

// Many machines that go at once are too many for the list, and have too many addresses.
TEST(MassReleaseBreaker, APassThatWasRefusedForBothReasonsHappensAfterTwoUnfreezes) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.SourceShrank("the list", 100, 50, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.SourceShrank("the list", 100, 50, kNow).allowed);
  EXPECT_FALSE(breaker.Judge(1000, 500, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.SourceShrank("the list", 100, 50, kNow).allowed);
  EXPECT_TRUE(breaker.Judge(1000, 500, kNow).allowed);
}

TEST(MassReleaseBreaker, WhatWasRefusedHappensAfterAnUnfreezeWhateverElseIsReleasedBefore) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.Judge(1000, 500, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_EQ(breaker.Headroom(1000, kNow), 50U) << "it is nobody else's";
  EXPECT_TRUE(breaker.Judge(1000, 50, kNow).allowed);
  EXPECT_TRUE(breaker.Judge(950, 500, kNow).allowed);
  EXPECT_FALSE(breaker.Judge(450, 50, kNow).allowed);
}

// A node's few addresses are judged before the many of machines that are gone.
TEST(MassReleaseBreaker, ASmallPassBeyondWhatMayGoTakesNoMoreOfAPardonThanItNeeds) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.Judge(1000, 500, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.Judge(1000, 50, kNow).allowed);
  EXPECT_TRUE(breaker.Judge(950, 10, kNow).allowed);
  EXPECT_TRUE(breaker.Judge(940, 490, kNow).allowed);
  EXPECT_FALSE(breaker.Judge(450, 1, kNow).allowed);
}

TEST(MassReleaseBreaker, ASmallerFreezeLeavesWhatIsLeftOfALargerPardon) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.Judge(1000, 500, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_FALSE(breaker.Judge(1000, 560, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_FALSE(MassReleaseBreaker(kPolicy, breaker.state()).Judge(2000, 1161, kNow).allowed);
  EXPECT_TRUE(breaker.Judge(2000, 1160, kNow).allowed);
}

TEST(MassReleaseBreaker, WhatAnAgentDeniesOfAPardonedPassMakesNoRoomForOthers) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.Judge(1000, 500, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.Judge(1000, 550, kNow).allowed);
  EXPECT_EQ(breaker.Headroom(450, kNow), 0U);
  breaker.GiveBack(300);
  EXPECT_EQ(breaker.Headroom(750, kNow), 0U);
  EXPECT_TRUE(breaker.Judge(750, 300, kNow).allowed) << "it may still go";
  EXPECT_FALSE(breaker.Judge(450, 1, kNow).allowed);
}

TEST(MassReleaseBreaker, WhatIsDeniedAfterTheNextUnfreezeMakesNoRoomForOthersEither) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.Judge(1000, 500, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.Judge(1000, 550, kNow).allowed);
  EXPECT_FALSE(breaker.Judge(450, 100, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.Judge(450, 32, kNow).allowed);
  breaker.GiveBack(300);
  EXPECT_EQ(breaker.Headroom(718, kNow), 5U) << "37 of 750, less the 32 that went";
}

TEST(MassReleaseBreaker, APardonThatIsOverTakesNoDenialsOfLaterPasses) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_FALSE(breaker.Judge(1000, 500, kNow).allowed);
  breaker.Unfreeze(kNow);
  EXPECT_TRUE(breaker.Judge(1000, 550, kNow).allowed);
  const absl::Time later = kNow + absl::Hours(1);
  EXPECT_TRUE(breaker.Judge(1000, 50, later).allowed);
  breaker.GiveBack(50);
  EXPECT_EQ(breaker.Headroom(1000, later), 50U);
}

TEST(MassReleaseBreaker, WhatAnAgentDeniedDoesNotCount) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_TRUE(breaker.Judge(1000, 50, kNow).allowed);
  breaker.GiveBack(20);
  EXPECT_EQ(breaker.Headroom(980, kNow), 20U);
  breaker.GiveBack(1000);
  EXPECT_EQ(breaker.Headroom(1000, kNow), 50U);
}

TEST(MassReleaseBreaker, AClockSetBackDoesNotMakeTheWindowLonger) {
  MassReleaseBreaker breaker(kPolicy);
  EXPECT_TRUE(breaker.Judge(1000, 50, kNow + absl::Hours(24)).allowed);
  EXPECT_TRUE(breaker.Judge(950, 0, kNow).allowed);
  EXPECT_TRUE(breaker.Judge(950, 40, kNow + absl::Minutes(11)).allowed);
}

TEST(MassReleaseBreaker, GoesOnFromItsStoredState) {
  MassReleaseBreaker before(kPolicy);
  EXPECT_TRUE(before.Judge(1000, 50, kNow).allowed);
  EXPECT_FALSE(before.Judge(950, 50, kNow).allowed);
  MassReleaseBreaker after(kPolicy, before.state());
  EXPECT_TRUE(after.frozen());
  EXPECT_EQ(after.Unfreeze(kNow), before.state().freeze->reason);
}

// An independent account: everything allowed, with its time.
TEST(MassReleaseBreaker, NeverLetsMoreThanTheShareGoInAnyWindow) {
  testing_support::Random random;
  for (int world = 0; world < testing_support::kRandomCases / 50; ++world) {
    BreakerPolicy policy = kPolicy;
    policy.share = 0.01 + random.Fraction() / 3;
    policy.floor = random.Between(0, 40);
    MassReleaseBreaker breaker(policy);
    uint64_t attached = random.Between(1, 3000);
    absl::Time now = kNow;
    std::vector<std::pair<absl::Time, uint64_t>> allowed;
    for (int step = 0; step < 50; ++step) {
      now += absl::Seconds(random.Between(0, 200));
      attached += random.OneIn(3) ? random.Between(0, 50) : 0;
      const uint64_t headroom = breaker.Headroom(attached, now);
      const uint64_t wanted =
          random.OneIn(20) ? random.Between(0, attached) : random.Between(0, headroom);
      uint64_t freed = 0;
      for (const auto& [at, count] : allowed) {
        if (now - at < policy.window) freed += count;
      }
      const bool ok = breaker.Judge(attached, wanted, now).allowed;
      ASSERT_EQ(ok, wanted <= headroom) << "Headroom() is exact";
      ASSERT_EQ(ok, !breaker.frozen());
      if (!ok) break;
      uint64_t counted = 0;  // What the breaker remembers may be a slice older.
      for (const auto& entry : breaker.state().freed) counted += entry.addresses;
      counted -= wanted;
      ASSERT_GE(counted, freed);
      const uint64_t total = attached + counted;
      const uint64_t limit =
          std::max(static_cast<uint64_t>(policy.share * static_cast<double>(total)),
                   std::min(policy.floor, total == 0 ? 0 : total - 1));
      ASSERT_LE(freed + wanted, limit);
      if (wanted > 0) allowed.emplace_back(now, wanted);
      attached -= wanted;
    }
    ASSERT_LE(breaker.state().freed.size(), 62U);
  }
}

}  // namespace
}  // namespace spoke::ipam
