#include "ipam-server/cloud/azure/resources/throttle_headers.h"

#include <fmt/core.h>

#include "gtest/gtest.h"

namespace spoke::ipam::azure {
namespace {

TEST(DecodeThrottleHeaders, ReadsPoliciesJoinedAndRepeated) {
  const std::vector<RemainingQuota> want = {{"Microsoft.Compute/GetVMScaleSetVM3Min", 998},
                                            {"Microsoft.Compute/GetVMScaleSetVM30Min", 4981}};
  EXPECT_EQ(DecodeThrottleHeaders({{"x-ms-ratelimit-remaining-resource",
                                    "Microsoft.Compute/GetVMScaleSetVM3Min;998, "
                                    "Microsoft.Compute/GetVMScaleSetVM30Min;4981"}})
                .remaining,
            want);
  EXPECT_EQ(
      DecodeThrottleHeaders(
          {{"X-Ms-Ratelimit-Remaining-Resource", "Microsoft.Compute/GetVMScaleSetVM3Min;998"},
           {"Date", "today"},
           {"x-ms-ratelimit-remaining-resource", "Microsoft.Compute/GetVMScaleSetVM30Min;4981"}})
          .remaining,
      want);
}

TEST(DecodeThrottleHeaders, ReadsTheFrontDoorAndTheCharge) {
  const ThrottleState state =
      DecodeThrottleHeaders({{"X-Ms-Ratelimit-Remaining-Subscription-Global-Writes", "2999"},
                             {"x-ms-ratelimit-remaining-subscription-writes", "1189"},
                             {"x-ms-request-charge", "4"}});
  const std::vector<RemainingQuota> want = {{"subscription-global-writes", 2999},
                                            {"subscription-writes", 1189}};
  EXPECT_EQ(state.remaining, want);
  EXPECT_EQ(state.charge, 4);
}

TEST(DecodeThrottleHeaders, PassesOverWhatItCannotRead) {
  const ThrottleState state =
      DecodeThrottleHeaders({{"x-ms-ratelimit-remaining-resource", "A;1,B,;2,C;x,D;-1,E;3;4,F; 5"},
                             {"x-ms-ratelimit-remaining-tenant-reads", "many"},
                             {"x-ms-ratelimit-remaining-", "7"},
                             {"x-ms-request-charge", ""}});
  const std::vector<RemainingQuota> want = {{"A", 1}, {"F", 5}};
  EXPECT_EQ(state.remaining, want);
  EXPECT_EQ(state.charge, std::nullopt);
}

TEST(DecodeThrottleHeaders, IsBounded) {
  http::Headers headers;
  for (size_t i = 0; i < 2 * kMaxQuotas; ++i) {
    headers.Add("x-ms-ratelimit-remaining-resource", fmt::format("P{};1", i));
  }
  EXPECT_EQ(DecodeThrottleHeaders(headers).remaining.size(), kMaxQuotas);
}

}  // namespace
}  // namespace spoke::ipam::azure
