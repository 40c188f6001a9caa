#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "netagent/links/link_plan.h"

namespace spoke::netagent {
namespace {

using units::BitCount;
using units::BitRate;
using units::ByteCount;
using units::ByteRate;

constexpr uint64_t kMbit = 1'000'000;
constexpr uint64_t kGbit = 1000 * kMbit;

LinkShaping Want(uint64_t rate, uint64_t burst, uint64_t limit) {
  return {ByteRate(rate), ByteCount(burst), ByteCount(limit)};
}

struct Case {
  std::string name;
  uint64_t rate, burst;
  uint32_t mtu;
  LinkShaping want;
};

class PlanLinkShapingTest : public testing::TestWithParam<Case> {};

TEST_P(PlanLinkShapingTest, BoundsBurstAndQueue) {
  const Case& c = GetParam();
  const auto got = PlanLinkShaping(BitRate(c.rate), BitCount(c.burst), c.mtu);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->rate, c.want.rate);
  EXPECT_EQ(got->burst, c.want.burst);
  EXPECT_EQ(got->limit, c.want.limit);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlanLinkShapingTest,
    testing::Values(
        Case{"TenMbit", 10 * kMbit, 0, 1500, Want(1'250'000, 16384, 62'500)},
        // The bursts that runtimes pass when a pod asks for a rate alone: 2^31-1, containerd's
        // 2^32-1, CRI-O's 4 GiB.
        Case{"RuntimesBurst", 10 * kMbit, 2'147'483'647, 1500, Want(1'250'000, 16384, 62'500)},
        Case{"ContainerdsBurst", 10 * kMbit, 4'294'967'295, 1500, Want(1'250'000, 16384, 62'500)},
        Case{"CriosBurst", 10 * kMbit, 34'359'738'359, 1500, Want(1'250'000, 16384, 62'500)},
        Case{"OneGbit", kGbit, 0, 1500, Want(125'000'000, 125'000, 6'250'000)},
        Case{"LessBurstThanOurs", kGbit, 800'000, 1500, Want(125'000'000, 100'000, 6'250'000)},
        Case{"BurstOfHalfAPacket", kGbit, 8 * 750, 1500, Want(125'000'000, 1518, 6'250'000)},
        Case{"SlowLinkStillQueuesAFewPackets", 64'000, 0, 1500, Want(8'000, 16384, 16384)},
        Case{"SlowLinkAndSmallBurst", 64'000, 8 * 1600, 1500, Want(8'000, 1600, 8 * 1518)},
        Case{"JumboFrames", kMbit, 0, 65'000, Want(125'000, 65'018, 8 * 65'018)},
        Case{"AboveThirtyTwoBits", 100 * kGbit, 0, 9000,
             Want(12'500'000'000, 12'500'000, 16U << 20U)},
        Case{"LessThanAByte", 1, 1, 1500, Want(1, 1518, 8 * 1518)},
        Case{"Most", std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max(),
             1500, Want(std::numeric_limits<uint64_t>::max() / 8, 16U << 20U, 16U << 20U)}),
    [](const auto& test) { return test.param.name; });

TEST(PlanLinkShaping, NoRateIsNoShaping) {
  EXPECT_EQ(PlanLinkShaping(BitRate(), BitCount(), 1500), std::nullopt);
  EXPECT_EQ(PlanLinkShaping(BitRate(), BitCount(kGbit), 1500), std::nullopt);
}

TEST(PlanLinkShaping, WhatWaitsAtTenMbitIsNotLateByMoreThanFiftyMilliseconds) {
  for (const uint64_t rate : {10 * kMbit, 50 * kMbit, kGbit, 40 * kGbit}) {
    const auto shaping = PlanLinkShaping(BitRate(rate), BitCount(), 1500);
    EXPECT_LE(shaping->limit.count() * 20, shaping->rate.count()) << rate;
  }
}

}  // namespace
}  // namespace spoke::netagent
