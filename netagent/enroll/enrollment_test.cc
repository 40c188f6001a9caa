#include "netagent/enroll/enrollment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

TEST(RenewAt, IsAfterHalfOfTheLifeAndSpreadBehind) {
  const absl::Time begin = absl::FromUnixSeconds(1'800'000'000);
  const absl::Time end = begin + absl::Hours(24 * 30);
  EXPECT_EQ(RenewAt(begin, end, 0), begin + absl::Hours(24 * 15));
  EXPECT_EQ(RenewAt(begin, end, 0.5), begin + absl::Hours(24 * 15 + 12));
  EXPECT_LE(RenewAt(begin, end, 1), begin + absl::Hours(24 * 16));
}

TEST(EnrollRemedy, SaysWhatToLookAt) {
  using testing::HasSubstr;
  EXPECT_THAT(EnrollRemedy(absl::PermissionDeniedError("")), HasSubstr("spec.nodeName"));
  EXPECT_THAT(EnrollRemedy(absl::NotFoundError("")), HasSubstr("spoke-ca"));
  EXPECT_THAT(EnrollRemedy(absl::FailedPreconditionError("")), HasSubstr("server's log"));
  EXPECT_THAT(EnrollRemedy(absl::UnavailableError("")), HasSubstr("enroll.server"));
}

}  // namespace
}  // namespace spoke::netagent
