#include "netagent/session/certificate_times.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const absl::Time kBegin = absl::FromUnixSeconds(1'800'000'000);
const CertificateTimes kOwn{.not_before = kBegin, .not_after = kBegin + absl::Hours(24)};
const absl::Status kHandshake = absl::UnavailableError("Ssl handshake failed: SSL_ERROR_SSL");

std::string Said(const absl::Status& failure, absl::Time now) {
  return std::string(WithTimes(failure, kOwn, now).message());
}

TEST(CertificateTimes, SayThatTheCertificateHasEndedByTheClockHere) {
  EXPECT_THAT(Said(kHandshake, kBegin + absl::Hours(48)),
              AllOf(HasSubstr("Ssl handshake failed"), HasSubstr("has ended, at 2027-01-16 08:00"),
                    HasSubstr("the clock here shows 2027-01-17 08:00")));
}

TEST(CertificateTimes, SayThatItHasNotBegun) {
  EXPECT_THAT(Said(kHandshake, kBegin - absl::Hours(48)),
              HasSubstr("is good from 2027-01-15 08:00:00 UTC on only"));
}

// The server takes it for one that has ended, and says nothing.
TEST(CertificateTimes, SayToLookAtTheOtherClockWhenTheOneHereFits) {
  EXPECT_THAT(Said(absl::UnavailableError("Socket closed"), kBegin + absl::Hours(1)),
              AllOf(HasSubstr("good until 2027-01-16"), HasSubstr("compare that with the server")));
}

TEST(CertificateTimes, AreNotBlamedForARefusal) {
  const absl::Status refused = absl::UnavailableError("connect: Connection refused");
  EXPECT_EQ(WithTimes(refused, kOwn, kBegin + absl::Hours(48)), refused);
  EXPECT_TRUE(WithTimes(absl::OkStatus(), kOwn, kBegin).ok());
}

}  // namespace
}  // namespace spoke::netagent
