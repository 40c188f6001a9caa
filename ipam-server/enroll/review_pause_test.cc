#include "ipam-server/enroll/review_pause.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000);
constexpr absl::Duration kTook = absl::Seconds(5);

TEST(ReviewPause, EverybodyAsksWhileAnswersCome) {
  ReviewPause pause;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pause.MayAsk(kNow));
  pause.Answered();
  EXPECT_TRUE(pause.MayAsk(kNow));
}

TEST(ReviewPause, NobodyAsksForAWhileAfterALongSilence) {
  ReviewPause pause;
  ASSERT_TRUE(pause.MayAsk(kNow));
  pause.Unanswered(kTook, kNow);
  EXPECT_FALSE(pause.MayAsk(kNow));
  EXPECT_FALSE(pause.MayAsk(kNow + ReviewPause::kPause - absl::Milliseconds(1)));
}

TEST(ReviewPause, ThenOneTriesAndTheOthersWaitForIt) {
  ReviewPause pause;
  pause.Unanswered(kTook, kNow);
  const absl::Time later = kNow + ReviewPause::kPause;
  EXPECT_TRUE(pause.MayAsk(later));
  EXPECT_FALSE(pause.MayAsk(later));
  pause.Unanswered(kTook, later + kTook);
  EXPECT_FALSE(pause.MayAsk(later + kTook));
  const absl::Time again = later + kTook + ReviewPause::kPause;
  EXPECT_TRUE(pause.MayAsk(again));
  pause.Answered();
  EXPECT_TRUE(pause.MayAsk(again));
  EXPECT_TRUE(pause.MayAsk(again));
}

TEST(ReviewPause, WhatFailsAtOnceIsNoReason) {
  ReviewPause pause;
  pause.Unanswered(absl::Milliseconds(3), kNow);
  EXPECT_TRUE(pause.MayAsk(kNow));
  pause.Unanswered(kTook, kNow);
  const absl::Time later = kNow + ReviewPause::kPause;
  ASSERT_TRUE(pause.MayAsk(later));
  pause.Unanswered(absl::Milliseconds(3), later);
  EXPECT_TRUE(pause.MayAsk(later)) << "the outage is one that costs nothing now";
}

}  // namespace
}  // namespace spoke::ipam
