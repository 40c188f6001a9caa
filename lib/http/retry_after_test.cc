#include <cstdint>

#include "gtest/gtest.h"
#include "lib/http/message.h"

namespace spoke::http {
namespace {

// The time 1999-12-31 23:59:59 UTC.
constexpr int64_t kLastSecond = 946684799;

struct Case {
  const char* name;
  const char* value;
  std::optional<absl::Duration> want;
};

class RetryAfterTest : public testing::TestWithParam<Case> {};

TEST_P(RetryAfterTest, IsReadFromBothForms) {
  const absl::Time now = absl::FromUnixSeconds(kLastSecond - 30);
  EXPECT_EQ(ParseRetryAfter(GetParam().value, now), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RetryAfterTest,
    testing::Values(Case{"Seconds", "120", absl::Seconds(120)},
                    Case{"Zero", "0", absl::ZeroDuration()},
                    Case{"Blanks", " 17 ", absl::Seconds(17)},
                    Case{"Date", "Fri, 31 Dec 1999 23:59:59 GMT", absl::Seconds(30)},
                    Case{"DateInThePast", "Fri, 31 Dec 1999 23:59:00 GMT", absl::ZeroDuration()},
                    Case{"DateFarAhead", "Fri, 31 Dec 2199 23:59:59 GMT", kMaxRetryAfter},
                    Case{"TooMuch", "999999999", kMaxRetryAfter},
                    Case{"Negative", "-1", std::nullopt}, Case{"Empty", "", std::nullopt},
                    Case{"Fraction", "1.5", std::nullopt}, Case{"Words", "soon", std::nullopt}),
    [](const auto& test) { return test.param.name; });

TEST(RetryAfter, IsTakenFromItsHeaderInAnyCase) {
  EXPECT_EQ(RetryAfter({{"retry-after", "5"}}, absl::UnixEpoch()), absl::Seconds(5));
  EXPECT_EQ(RetryAfter({}, absl::UnixEpoch()), std::nullopt);
}

}  // namespace
}  // namespace spoke::http
