#include "netagent/attach/turn.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(100);
const absl::Time kEarlier = kNow - absl::Seconds(1);

TEST(Turn, OfThoseThatAreDueTheOneThatHasWaitedLongestIsTaken) {
  Turn turn(kNow, kEarlier);
  EXPECT_TRUE(turn.Admits(kNow + absl::Nanoseconds(1))) << "what is not due is quick";
  EXPECT_FALSE(turn.Admits(kNow));
  EXPECT_TRUE(turn.Admits(kEarlier));
  EXPECT_FALSE(turn.Admits(kEarlier)) << "one a turn";
  EXPECT_TRUE(turn.Admits(absl::InfiniteFuture()));
}

TEST(Turn, WhatIsTurnedAwayHasItsTurnWhenTheFirstIsDone) {
  EXPECT_TRUE(Turn(kNow, kNow).Admits(kNow));
  EXPECT_TRUE(Turn(kNow, absl::InfinitePast()).Admits(absl::InfinitePast()));
}

}  // namespace
}  // namespace spoke::netagent
