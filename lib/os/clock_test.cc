#include "lib/os/clock.h"

#include "gtest/gtest.h"

namespace spoke::os {
namespace {

TEST(SteadyClock, GoesOnEvenlyWhenTheTimeOfDayIsSet) {
  SimClock time_of_day;
  SimClock uptime(absl::UnixEpoch() + absl::Minutes(3));
  const SteadyClock clock(time_of_day, uptime);
  const absl::Time begun = time_of_day.Now();
  EXPECT_EQ(clock.Now(), begun);
  for (const absl::Duration set : {-absl::Hours(24), absl::Hours(48)}) {
    time_of_day.Advance(set);
    EXPECT_EQ(clock.Now(), begun);
  }
  EXPECT_EQ(clock.SetAhead(), absl::Hours(24));
  time_of_day.Advance(absl::Seconds(5));
  uptime.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), begun + absl::Seconds(5));
  EXPECT_EQ(clock.SetAhead(), absl::Hours(24));
}

TEST(SteadyClock, GoesOnWhereAnEarlierOneWasThoughTheTimeOfDayWasSet) {
  SimClock time_of_day;
  SimClock uptime(absl::UnixEpoch() + absl::Minutes(3));
  const absl::Duration ahead = time_of_day.Now() - uptime.Now();
  const SteadyClock earlier(time_of_day, uptime, ahead);
  time_of_day.Advance(absl::Hours(1));
  const SteadyClock later(time_of_day, uptime, ahead);
  uptime.Advance(absl::Seconds(5));
  EXPECT_EQ(later.Now(), earlier.Now());
  EXPECT_EQ(later.SetAhead(), absl::Hours(1) - absl::Seconds(5));
}

}  // namespace
}  // namespace spoke::os
