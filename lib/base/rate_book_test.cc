#include "lib/base/rate_book.h"

#include "fmt/format.h"
#include "gtest/gtest.h"

namespace spoke::base {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

TEST(RateBook, GivesABurstAndThenOneEachRefill) {
  RateBook book({.burst = 2, .refill = absl::Seconds(10)}, 100);
  EXPECT_EQ(book.Take("a", kNow), absl::ZeroDuration());
  EXPECT_EQ(book.Take("a", kNow), absl::ZeroDuration());
  EXPECT_EQ(book.Take("a", kNow), absl::Seconds(10));
  EXPECT_EQ(book.Take("b", kNow), absl::ZeroDuration());
  // A refusal costs nothing.
  EXPECT_EQ(book.Take("a", kNow + absl::Seconds(4)), absl::Seconds(6));
  EXPECT_EQ(book.Take("a", kNow + absl::Seconds(10)), absl::ZeroDuration());
  EXPECT_EQ(book.Take("a", kNow + absl::Seconds(10)), absl::Seconds(10));
  EXPECT_EQ(book.Take("a", kNow + absl::Hours(1)), absl::ZeroDuration());
}

TEST(RateBook, ForgetsThoseWhoMayHaveAllAgainAndLocksNobodyOut) {
  RateBook book({.burst = 1, .refill = absl::Seconds(10)}, 50);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(book.Take(fmt::format("flood-{}", i), kNow), absl::ZeroDuration());
  }
  EXPECT_EQ(book.size(), 50U);
  EXPECT_EQ(book.Take("flood-1", kNow), absl::Seconds(10));
  EXPECT_EQ(book.Take("agent", kNow + absl::Seconds(10)), absl::ZeroDuration());
  EXPECT_EQ(book.size(), 1U);
}

TEST(RateBook, AClockThatIsSetBackKeepsNobodyWaiting) {
  RateBook book({.burst = 3, .refill = absl::Seconds(10)}, 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(book.Take("a", kNow), absl::ZeroDuration());
  const absl::Time earlier = kNow - absl::Hours(24);
  EXPECT_EQ(book.Take("a", earlier), absl::Seconds(10));
  EXPECT_EQ(book.Take("a", earlier + absl::Seconds(10)), absl::ZeroDuration());
  EXPECT_EQ(book.Take("b", earlier + absl::Hours(1)), absl::ZeroDuration());
  EXPECT_EQ(book.Take("b", earlier + absl::Hours(1)), absl::ZeroDuration()) << "a is forgotten";
  EXPECT_EQ(book.size(), 1U);
}

}  // namespace
}  // namespace spoke::base
