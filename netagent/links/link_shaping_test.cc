#include "netagent/links/link_shaping.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr uint64_t kMbit = 1'000'000;
constexpr uint64_t kGbit = 1000 * kMbit;

struct Case {
  std::string name;
  uint64_t rate, burst;
  uint32_t mtu;
  LinkShaping want;
};

class PlanLinkShapingTest : public testing::TestWithParam<Case> {};

TEST_P(PlanLinkShapingTest, BoundsBurstAndQueue) {
  const Case& c = GetParam();
  const auto got = PlanLinkShaping(c.rate, c.burst, c.mtu);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->bytes_per_second, c.want.bytes_per_second);
  EXPECT_EQ(got->burst_bytes, c.want.burst_bytes);
  EXPECT_EQ(got->limit_bytes, c.want.limit_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlanLinkShapingTest,
    testing::Values(
        Case{"TenMbit", 10 * kMbit, 0, 1500, {1'250'000, 16384, 62'500}},
        // The bursts that runtimes pass when a pod asks for a rate alone: 2^31-1, containerd's
        // 2^32-1, CRI-O's 4 GiB.
        Case{"RuntimesBurst", 10 * kMbit, 2'147'483'647, 1500, {1'250'000, 16384, 62'500}},
        Case{"ContainerdsBurst", 10 * kMbit, 4'294'967'295, 1500, {1'250'000, 16384, 62'500}},
        Case{"CriosBurst", 10 * kMbit, 34'359'738'359, 1500, {1'250'000, 16384, 62'500}},
        Case{"OneGbit", kGbit, 0, 1500, {125'000'000, 125'000, 6'250'000}},
        Case{"LessBurstThanOurs", kGbit, 800'000, 1500, {125'000'000, 100'000, 6'250'000}},
        Case{"BurstOfHalfAPacket", kGbit, 8 * 750, 1500, {125'000'000, 1518, 6'250'000}},
        Case{"SlowLinkStillQueuesAFewPackets", 64'000, 0, 1500, {8'000, 16384, 16384}},
        Case{"SlowLinkAndSmallBurst", 64'000, 8 * 1600, 1500, {8'000, 1600, 8 * 1518}},
        Case{"JumboFrames", kMbit, 0, 65'000, {125'000, 65'018, 8 * 65'018}},
        Case{"AboveThirtyTwoBits", 100 * kGbit, 0, 9000, {12'500'000'000, 12'500'000, 16U << 20U}},
        Case{"LessThanAByte", 1, 1, 1500, {1, 1518, 8 * 1518}},
        Case{"Most",
             std::numeric_limits<uint64_t>::max(),
             std::numeric_limits<uint64_t>::max(),
             1500,
             {std::numeric_limits<uint64_t>::max() / 8, 16U << 20U, 16U << 20U}}),
    [](const auto& test) { return test.param.name; });

TEST(PlanLinkShaping, NoRateIsNoShaping) {
  EXPECT_EQ(PlanLinkShaping(0, 0, 1500), std::nullopt);
  EXPECT_EQ(PlanLinkShaping(0, kGbit, 1500), std::nullopt);
}

TEST(PlanLinkShaping, WhatWaitsAtTenMbitIsNotLateByMoreThanFiftyMilliseconds) {
  for (const uint64_t rate : {10 * kMbit, 50 * kMbit, kGbit, 40 * kGbit}) {
    const auto shaping = PlanLinkShaping(rate, 0, 1500);
    EXPECT_LE(shaping->limit_bytes * 20ULL, shaping->bytes_per_second) << rate;
  }
}

}  // namespace
}  // namespace spoke::netagent
