#include "netagent/session/reconnect.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr StreamEnd kRefused{};
const StreamEnd kLost{.welcomed = true, .lasted = absl::Hours(1)};
const StreamEnd kBrief{.welcomed = true, .lasted = absl::Seconds(1)};

TEST(Reconnect, ASingleNodeNeedNotWaitAndAWholeFleetMaySpread) {
  EXPECT_EQ(Reconnect({}).BeforeFirst(0.9), absl::ZeroDuration());
  const Reconnect spread({.first_connect = absl::Seconds(10)});
  EXPECT_EQ(spread.BeforeFirst(0.0), absl::ZeroDuration());
  EXPECT_EQ(spread.BeforeFirst(0.5), absl::Seconds(5));
}

TEST(Reconnect, ALostSessionIsTriedAgainWithinThreeSecondsEvenly) {
  for (const double jitter : {0.0, 0.25, 0.999}) {
    EXPECT_EQ(Reconnect({}).After(kLost, jitter), absl::Seconds(3) * jitter);
  }
}

TEST(Reconnect, AServerSaysWithinWhichTimeItsAgentsComeBack) {
  for (const double jitter : {0.0, 0.25, 0.999}) {
    Reconnect reconnect({});
    reconnect.SetWithin(absl::Seconds(20));
    EXPECT_EQ(reconnect.After(kLost, jitter), absl::Seconds(20) * jitter);
  }
  Reconnect next({});
  next.SetWithin(absl::Seconds(20));
  next.SetWithin(absl::ZeroDuration());
  EXPECT_EQ(next.After(kLost, 1.0), absl::Seconds(3)) << "the next server does not say";
}

TEST(Reconnect, AttemptsThatFailSpreadOutUpToThirtySeconds) {
  Reconnect reconnect({});
  reconnect.After(kLost, 0.5);
  absl::Duration before = absl::ZeroDuration();
  for (int i = 0; i < 20; ++i) {
    const absl::Duration delay = reconnect.After(kRefused, 1.0);
    EXPECT_GE(delay, before);
    before = delay;
  }
  EXPECT_EQ(before, absl::Seconds(30));
  // The wait is never zero: a refused connection must not become a tight loop.
  EXPECT_GT(reconnect.After(kRefused, 0.0), absl::ZeroDuration());
}

TEST(Reconnect, AServerOfAnotherVersionIsAskedNoFasterThanTheSlowestBackoff) {
  const StreamEnd skewed{.welcomed = false, .lasted = absl::Milliseconds(1), .skewed = true};
  EXPECT_EQ(Reconnect({}).After(skewed, 0.0), absl::Seconds(30));
  EXPECT_EQ(Reconnect({}).After(skewed, 0.5), absl::Seconds(45));
  Reconnect reconnect({});
  reconnect.After(skewed, 0.5);
  // An upgraded server is one like any other.
  EXPECT_EQ(reconnect.After(kLost, 1.0), absl::Seconds(3));
}

TEST(Reconnect, ASessionThatHeldMakesTheNextLossTheFirstAgain) {
  Reconnect reconnect({});
  for (int i = 0; i < 10; ++i) reconnect.After(kRefused, 1.0);
  EXPECT_EQ(reconnect.After(kLost, 1.0), absl::Seconds(3));
}

TEST(Reconnect, SessionsThatBreakAtOnceAreTriedMoreAndMoreSeldom) {
  Reconnect reconnect({});
  EXPECT_LE(reconnect.After(kBrief, 1.0), absl::Seconds(3));
  for (int i = 0; i < 10; ++i) reconnect.After(kBrief, 1.0);
  EXPECT_EQ(reconnect.After(kBrief, 1.0), absl::Seconds(30));
}

}  // namespace
}  // namespace spoke::netagent
