#include "lib/os/heartbeat.h"

#include "gtest/gtest.h"

namespace spoke::os {
namespace {

TEST(Heartbeat, SaysForHowLongItWasSilent) {
  Heartbeat heartbeat;
  EXPECT_EQ(heartbeat.SilentFor(1'000'000), absl::ZeroDuration()) << "it has not begun";
  heartbeat.Beat(5'000);
  EXPECT_EQ(heartbeat.SilentFor(5'000), absl::ZeroDuration());
  EXPECT_EQ(heartbeat.SilentFor(36'000), absl::Seconds(31));
  heartbeat.Beat(36'000);
  EXPECT_EQ(heartbeat.SilentFor(36'001), absl::Milliseconds(1));
  // Another thread may have read the time before this beat.
  EXPECT_EQ(heartbeat.SilentFor(35'999), absl::ZeroDuration());
}

}  // namespace
}  // namespace spoke::os
