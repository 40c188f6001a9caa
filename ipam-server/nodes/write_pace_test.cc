#include "ipam-server/nodes/write_pace.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kBegin = absl::UnixEpoch() + absl::Hours(1);

// How many go in `seconds`, looking ten times a second.
size_t Taken(WritePace& pace, int seconds, absl::Time& now) {
  size_t taken = 0;
  for (int i = 0; i < seconds * 10; ++i) {
    now += absl::Milliseconds(100);
    const size_t available = pace.Available(now);
    pace.Take(available);
    taken += available;
  }
  return taken;
}

TEST(WritePace, KeepsToItsRateAndItsBurst) {
  WritePace pace(20, 5);
  absl::Time now = kBegin;
  EXPECT_EQ(pace.Available(now), 5U);
  pace.Take(5);
  EXPECT_EQ(pace.Available(now), 0U);
  EXPECT_NEAR(static_cast<double>(Taken(pace, 60, now)), 1200, 2);
  EXPECT_EQ(pace.Available(now + absl::Hours(1)), 5U);
}

TEST(WritePace, GoesSlowerWhenThereIsNoRoomAndRecovers) {
  WritePace pace(320, 32);
  absl::Time now = kBegin;
  static_cast<void>(pace.Available(now));
  for (int i = 0; i < 50; ++i) pace.OnThrottled(now);
  EXPECT_EQ(pace.rate(), 160) << "many refusals at once are one";
  for (int i = 0; i < 20; ++i) pace.OnThrottled(now += absl::Seconds(1));
  EXPECT_EQ(pace.rate(), 10);
  static_cast<void>(Taken(pace, 12, now));
  EXPECT_EQ(pace.rate(), 320);
}

}  // namespace
}  // namespace spoke::ipam
