#include "ipam-server/budget/grant_belief.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);
constexpr absl::Duration kHalfLife = absl::Seconds(30);

TEST(DecayedRate, HoldsThenHalvesWithAHundredthMoreForTheClock) {
  EXPECT_EQ(DecayedRate(1000, kStart, kHalfLife, kStart - absl::Nanoseconds(1)), 1000U);
  EXPECT_EQ(DecayedRate(1000, kStart, kHalfLife, kStart + absl::Seconds(30.2)), 1000U);
  EXPECT_EQ(DecayedRate(1000, kStart, kHalfLife, kStart + absl::Seconds(30.4)), 500U);
  EXPECT_EQ(DecayedRate(1000, kStart, kHalfLife, kStart + absl::Seconds(60.7)), 250U);
  EXPECT_EQ(DecayedRate(1000, kStart, kHalfLife, kStart + absl::Hours(1)), 0U);
}

TEST(DecayedRate, RoundsUpUntilNothingIsLeft) {
  EXPECT_EQ(DecayedRate(5, kStart, kHalfLife, kStart + absl::Seconds(31)), 3U);
  EXPECT_EQ(DecayedRate(5, kStart, kHalfLife, kStart + absl::Seconds(30.3 * 39.5)), 1U);
  EXPECT_EQ(DecayedRate(5, kStart, kHalfLife, kStart + absl::Seconds(30.3 * 40.5)), 0U);
}

TEST(DecayedRate, WithoutAHalfLifeEndsAtOnce) {
  EXPECT_EQ(DecayedRate(5, kStart, absl::ZeroDuration(), kStart), 0U);
}

class GrantBeliefTest : public ::testing::Test {
 protected:
  uint64_t Rate(absl::Duration after = absl::ZeroDuration()) const {
    return belief_.RateAt(kStart + after, kHalfLife);
  }
  uint32_t Connections(absl::Duration after = absl::ZeroDuration()) const {
    return belief_.ConnectionsAt(kStart + after, kHalfLife);
  }
  void Send(uint64_t message, uint64_t rate) {
    belief_.Add(message, rate, static_cast<uint32_t>(rate / 10), kStart + absl::Minutes(7));
  }

  GrantBelief belief_;
};

TEST_F(GrantBeliefTest, ASmallerGrantCountsOnlyOnceItIsApplied) {
  Send(1, 1000);
  belief_.OnApplied(1);
  Send(2, 100);
  EXPECT_EQ(Rate(), 1000U);
  EXPECT_EQ(Connections(), 100U);
  belief_.OnApplied(1);
  EXPECT_EQ(Rate(), 1000U);
  belief_.OnApplied(2);
  EXPECT_EQ(Rate(), 100U);
  EXPECT_EQ(Connections(), 10U);
}

TEST_F(GrantBeliefTest, ALargerGrantCountsFromWhenItIsSent) {
  Send(1, 100);
  Send(2, 1000);
  EXPECT_EQ(Rate(), 1000U);
  belief_.OnApplied(1);
  EXPECT_EQ(Rate(), 1000U);
}

TEST_F(GrantBeliefTest, WhatWasTakenAwayIsOverOnceThatIsApplied) {
  Send(1, 1000);
  Send(2, 0);
  EXPECT_EQ(Rate(), 1000U);
  belief_.OnApplied(2);
  EXPECT_EQ(Rate(), 0U);
  EXPECT_EQ(Connections(), 0U);
  EXPECT_TRUE(belief_.empty());
}

TEST_F(GrantBeliefTest, AMessageWithoutAGrantForNothingIsNothing) {
  Send(1, 0);
  EXPECT_TRUE(belief_.empty());
}

TEST_F(GrantBeliefTest, ANodeThatAppliesALaterMessageHasOnlyWhatThatHad) {
  Send(1, 1000);
  belief_.OnApplied(5);
  EXPECT_EQ(Rate(), 0U);
}

TEST_F(GrantBeliefTest, ANodeThatNeverAnswersStillCountsWithTheMostOfAll) {
  for (uint64_t message = 1; message <= 100; ++message) Send(message, message == 1 ? 1000 : 10);
  EXPECT_EQ(Rate(), 1000U);
  belief_.OnApplied(100);
  EXPECT_EQ(Rate(), 10U);
}

TEST_F(GrantBeliefTest, TheMostOfWhatHasDecayedCounts) {
  belief_.Add(1, 1000, 7, kStart);
  belief_.Add(2, 400, 5, kStart + absl::Minutes(2));
  EXPECT_EQ(Rate(absl::Seconds(31)), 500U);
  EXPECT_EQ(Rate(absl::Seconds(61)), 400U);
  EXPECT_EQ(Connections(absl::Seconds(61)), 7U);
  EXPECT_EQ(Connections(absl::Hours(2)), 0U);
}

TEST_F(GrantBeliefTest, ALongerHoldCountsForWhatWasSentBefore) {
  belief_.Add(1, 1000, 0, kStart);
  belief_.Extend(absl::Seconds(60));
  EXPECT_EQ(Rate(absl::Seconds(59)), 1000U);
  EXPECT_EQ(Rate(absl::Seconds(91)), 500U);
}

}  // namespace
}  // namespace spoke::ipam
