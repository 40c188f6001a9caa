#include "ipam-server/cloud/calls/cloud_gates.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);

TEST(CloudGates, EachClosingDoublesUpToTheMost) {
  CloudGates gates;
  absl::Time now = kStart;
  for (const int minutes : {5, 10, 20, 30, 30}) {
    EXPECT_EQ(gates.Close("set", kForbiddenPark, "403", now, 0), now + absl::Minutes(minutes));
    EXPECT_NE(gates.ClosedAt("set", now + absl::Minutes(minutes) - absl::Seconds(1)), nullptr);
    now += absl::Minutes(minutes);
    EXPECT_EQ(gates.ClosedAt("set", now), nullptr);
  }
  EXPECT_EQ(gates.ClosedAt("another", kStart), nullptr);
}

TEST(CloudGates, FailuresTogetherAreOne) {
  CloudGates gates;
  for (int i = 0; i < 100; ++i) gates.Close("set", kForbiddenPark, "403", kStart, 0);
  EXPECT_EQ(gates.ClosedAt("set", kStart)->closed_until, kStart + absl::Minutes(5));
}

TEST(CloudGates, SuccessStartsAnew) {
  CloudGates gates;
  gates.Close("vm", kRejectedPark, "400", kStart, 0);
  gates.Open("vm");
  EXPECT_EQ(gates.ClosedAt("vm", kStart), nullptr);
  EXPECT_EQ(gates.Close("vm", kRejectedPark, "400", kStart, 0), kStart + absl::Minutes(1));
}

TEST(CloudGates, JitterOnlyEverMakesItLonger) {
  CloudGates gates;
  EXPECT_EQ(gates.Close("vm", kRejectedPark, "400", kStart, 0.5), kStart + absl::Seconds(63));
}

TEST(CloudGates, ForgetsWhatOpenedLongAgo) {
  CloudGates gates;
  for (int i = 0; i < 10000; ++i) {
    gates.Close("vm" + std::to_string(i), kFailedPark, "500", kStart + i * absl::Minutes(1), 0);
  }
  EXPECT_LT(gates.size(), 1500U);
}

}  // namespace
}  // namespace spoke::ipam
