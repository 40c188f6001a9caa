#include "lib/base/time_text.h"

#include "gtest/gtest.h"

namespace spoke::base {
namespace {

TEST(TimeText, IsRfc3339InUtc) {
  EXPECT_EQ(ClockText(absl::FromUnixMillis(1'700'000'000'123)), "2023-11-14T22:13:20Z");
}

TEST(TimeText, AnAgeHasOneUnit) {
  EXPECT_EQ(AgeText(absl::Seconds(-3)), "0s");
  EXPECT_EQ(AgeText(absl::Seconds(119)), "119s");
  EXPECT_EQ(AgeText(absl::Seconds(120)), "2m");
  EXPECT_EQ(AgeText(absl::Minutes(119)), "119m");
  EXPECT_EQ(AgeText(absl::Hours(47)), "47h");
  EXPECT_EQ(AgeText(absl::Hours(48)), "2d");
}

}  // namespace
}  // namespace spoke::base
