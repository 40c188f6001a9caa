#include "ipam-server/budget/grant_belief.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using units::BitRate;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);
constexpr absl::Duration kHalfLife = absl::Seconds(30);

TEST(DecayedRate, HoldsThenHalvesWithAHundredthMoreForTheClock) {
  EXPECT_EQ(DecayedRate(BitRate(1000), kStart, kHalfLife, kStart - absl::Nanoseconds(1)),
            BitRate(1000));
  EXPECT_EQ(DecayedRate(BitRate(1000), kStart, kHalfLife, kStart + absl::Seconds(30.2)),
            BitRate(1000));
  EXPECT_EQ(DecayedRate(BitRate(1000), kStart, kHalfLife, kStart + absl::Seconds(30.4)),
            BitRate(500));
  EXPECT_EQ(DecayedRate(BitRate(1000), kStart, kHalfLife, kStart + absl::Seconds(60.7)),
            BitRate(250));
  EXPECT_EQ(DecayedRate(BitRate(1000), kStart, kHalfLife, kStart + absl::Hours(1)), BitRate(0));
}

TEST(DecayedRate, RoundsUpUntilNothingIsLeft) {
  EXPECT_EQ(DecayedRate(BitRate(5), kStart, kHalfLife, kStart + absl::Seconds(31)), BitRate(3));
  EXPECT_EQ(DecayedRate(BitRate(5), kStart, kHalfLife, kStart + absl::Seconds(30.3 * 39.5)),
            BitRate(1));
  EXPECT_EQ(DecayedRate(BitRate(5), kStart, kHalfLife, kStart + absl::Seconds(30.3 * 40.5)),
            BitRate(0));
}

TEST(DecayedRate, WithoutAHalfLifeEndsAtOnce) {
  EXPECT_EQ(DecayedRate(BitRate(5), kStart, absl::ZeroDuration(), kStart), BitRate(0));
}

class GrantBeliefTest : public ::testing::Test {
 protected:
  BitRate Rate(absl::Duration after = absl::ZeroDuration()) const {
    return belief_.RateAt(kStart + after, kHalfLife);
  }
  uint32_t Connections(absl::Duration after = absl::ZeroDuration()) const {
    return belief_.ConnectionsAt(kStart + after, kHalfLife);
  }
  void Send(uint64_t message, uint64_t rate) {
    belief_.Add(message, BitRate(rate), static_cast<uint32_t>(rate / 10),
                kStart + absl::Minutes(7));
  }

  GrantBelief belief_;
};

TEST_F(GrantBeliefTest, ASmallerGrantCountsOnlyOnceItIsApplied) {
  Send(1, 1000);
  belief_.OnApplied(1);
  Send(2, 100);
  EXPECT_EQ(Rate(), BitRate(1000));
  EXPECT_EQ(Connections(), 100U);
  belief_.OnApplied(1);
  EXPECT_EQ(Rate(), BitRate(1000));
  belief_.OnApplied(2);
  EXPECT_EQ(Rate(), BitRate(100));
  EXPECT_EQ(Connections(), 10U);
}

TEST_F(GrantBeliefTest, ALargerGrantCountsFromWhenItIsSent) {
  Send(1, 100);
  Send(2, 1000);
  EXPECT_EQ(Rate(), BitRate(1000));
  belief_.OnApplied(1);
  EXPECT_EQ(Rate(), BitRate(1000));
}

TEST_F(GrantBeliefTest, WhatWasTakenAwayIsOverOnceThatIsApplied) {
  Send(1, 1000);
  Send(2, 0);
  EXPECT_EQ(Rate(), BitRate(1000));
  belief_.OnApplied(2);
  EXPECT_EQ(Rate(), BitRate(0));
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
  EXPECT_EQ(Rate(), BitRate(0));
}

TEST_F(GrantBeliefTest, ANodeThatNeverAnswersStillCountsWithTheMostOfAll) {
  for (uint64_t message = 1; message <= 100; ++message) Send(message, message == 1 ? 1000 : 10);
  EXPECT_EQ(Rate(), BitRate(1000));
  belief_.OnApplied(100);
  EXPECT_EQ(Rate(), BitRate(10));
}

TEST_F(GrantBeliefTest, TheMostOfWhatHasDecayedCounts) {
  belief_.Add(1, BitRate(1000), 7, kStart);
  belief_.Add(2, BitRate(400), 5, kStart + absl::Minutes(2));
  EXPECT_EQ(Rate(absl::Seconds(31)), BitRate(500));
  EXPECT_EQ(Rate(absl::Seconds(61)), BitRate(400));
  EXPECT_EQ(Connections(absl::Seconds(61)), 7U);
  EXPECT_EQ(Connections(absl::Hours(2)), 0U);
}

TEST_F(GrantBeliefTest, ALongerHoldCountsForWhatWasSentBefore) {
  belief_.Add(1, BitRate(1000), 0, kStart);
  belief_.Extend(absl::Seconds(60));
  EXPECT_EQ(Rate(absl::Seconds(59)), BitRate(1000));
  EXPECT_EQ(Rate(absl::Seconds(91)), BitRate(500));
}

}  // namespace
}  // namespace spoke::ipam
