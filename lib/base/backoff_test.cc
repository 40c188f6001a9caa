#include "lib/base/backoff.h"

#include "gtest/gtest.h"

namespace spoke::base {
namespace {

constexpr Backoff kBackoff{.initial = absl::Seconds(1), .max = absl::Seconds(30)};

TEST(Backoff, DoublesUntilTheMaximum) {
  EXPECT_EQ(kBackoff.Delay(0, 1.0), absl::Seconds(1));
  EXPECT_EQ(kBackoff.Delay(3, 1.0), absl::Seconds(8));
  EXPECT_EQ(kBackoff.Delay(5, 1.0), absl::Seconds(30));
  EXPECT_EQ(kBackoff.Delay(1'000'000, 1.0), absl::Seconds(30));
}

TEST(Backoff, JitterSpreadsButNeverReachesZero) {
  EXPECT_EQ(kBackoff.Delay(0, 0.0), absl::Milliseconds(100));
  EXPECT_LT(kBackoff.Delay(4, 0.2), kBackoff.Delay(4, 0.9));
  EXPECT_GT(kBackoff.Delay(-1, -5.0), absl::ZeroDuration());
}

}  // namespace
}  // namespace spoke::base
