#include "lib/os/heartbeat.h"

#include "gtest/gtest.h"

namespace spoke::os {
namespace {

TEST(Heartbeat, SaysForHowLongItWasSilent) {
  Heartbeat heart;
  EXPECT_EQ(heart.SilentFor(1'000'000), absl::ZeroDuration()) << "it has not begun";
  heart.Beat(5'000);
  EXPECT_EQ(heart.SilentFor(5'000), absl::ZeroDuration());
  EXPECT_EQ(heart.SilentFor(36'000), absl::Seconds(31));
  heart.Beat(36'000);
  EXPECT_EQ(heart.SilentFor(36'001), absl::Milliseconds(1));
  // Another thread may have read the time before this beat.
  EXPECT_EQ(heart.SilentFor(35'999), absl::ZeroDuration());
}

}  // namespace
}  // namespace spoke::os
