#include "netagent/connections/connection_passes.h"

#include <array>

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kPod = ip::Address::V4(0x0A010005);
constexpr ip::Address kOther = ip::Address::V4(0x0A010006);
constexpr ip::Address kFar = ip::Address::V4(0xC0000201);
constexpr ip::Address kNode = ip::Address::V4(0x0A000004);
constexpr ip::Address kPod6 = ip::Address::V6(0xFD00'0000'0000'0000, 5);
constexpr absl::Duration kCooldown = absl::Seconds(4);
constexpr absl::Duration kPause = absl::Seconds(1);
constexpr absl::Time kNow = absl::FromUnixSeconds(1'000'000);

TEST(IsOfAny, FindsTheAddressAtEachEndOfEachDirection) {
  const AddressSet released = {kPod, kPod6};
  for (size_t i = 0; i < 4; ++i) {
    std::array<ip::Address, 4> ends = {kFar, kNode, kNode, kFar};
    EXPECT_FALSE(IsOfAny(ends, released));
    ends.at(i) = kPod;
    EXPECT_TRUE(IsOfAny(ends, released)) << i;
    ends.at(i) = kPod6;
    EXPECT_TRUE(IsOfAny(ends, released)) << i;
    ends.at(i) = kOther;
    EXPECT_FALSE(IsOfAny(ends, released)) << i;
  }
  EXPECT_FALSE(IsOfAny(std::array{kPod}, {}));
}

TEST(IsOfAny, AnIpv4AddressIsNotTheIpv6AddressOfTheSameNumber) {
  EXPECT_FALSE(IsOfAny(std::array{ip::Address::V6(0, kPod.low())}, {kPod}));
}

TEST(ConnectionPasses, NothingWaitsNothingIsDue) {
  ConnectionPasses passes(kCooldown);
  EXPECT_EQ(passes.NextPass({}), std::nullopt);
}

TEST(ConnectionPasses, TheFirstIsDueAtOnceAndOneRunsAtATime) {
  ConnectionPasses passes(kCooldown);
  EXPECT_LE(passes.NextPass({kPod}), kNow);
  passes.OnBegun(kNow);
  EXPECT_TRUE(passes.under_way());
  EXPECT_EQ(passes.NextPass({kPod, kOther}), std::nullopt);
  passes.OnEnded(kNow, {});
  EXPECT_FALSE(passes.under_way());
}

TEST(ConnectionPasses, OneASecondHoweverManyAddressesCome) {
  ConnectionPasses passes(kCooldown);
  absl::Time now = kNow;
  int begun = 0;
  // An address is released every 10 ms, for a minute.
  for (uint32_t i = 0; i < 6'000; ++i, now += absl::Milliseconds(10)) {
    const auto next = passes.NextPass({ip::Address::V4(i)});
    if (!next || *next > now) continue;
    passes.OnBegun(now);
    passes.OnEnded(now + absl::Milliseconds(5), {});
    ++begun;
  }
  EXPECT_LE(begun, 60);
  EXPECT_GE(begun, 55);
}

TEST(ConnectionPasses, ALongerCooldownLeavesMoreTimeBetweenThem) {
  const auto pause = [](absl::Duration cooldown) {
    ConnectionPasses passes(cooldown);
    passes.OnBegun(kNow);
    passes.OnEnded(kNow, {});
    return *passes.NextPass({kPod}) - kNow;
  };
  EXPECT_EQ(pause(absl::ZeroDuration()), absl::Seconds(1)) << "never more than one a second";
  EXPECT_EQ(pause(absl::Seconds(30)), absl::Milliseconds(7'500));
  EXPECT_EQ(pause(absl::Hours(1)), absl::Seconds(10));
}

TEST(ConnectionPasses, WhatTookLongRestsAsLong) {
  ConnectionPasses passes(kCooldown);
  passes.OnBegun(kNow);
  passes.OnEnded(kNow + absl::Seconds(7), {});
  EXPECT_EQ(passes.NextPass({kPod}), kNow + absl::Seconds(14));
}

TEST(ConnectionPasses, WhatFailedWaitsLongerAndKeepsNobodyElse) {
  ConnectionPasses passes(kCooldown);
  passes.OnBegun(kNow);
  passes.OnEnded(kNow, {kPod});
  EXPECT_EQ(passes.NextPass({kPod}), kNow + ConnectionPasses::kRetryPause);
  EXPECT_EQ(passes.NextPass({kPod, kOther}), kNow + kPause);
  // The address is done at last: should it be released once more, it is new.
  passes.OnBegun(kNow + absl::Seconds(1));
  passes.OnEnded(kNow + absl::Seconds(1), {});
  EXPECT_EQ(passes.NextPass({kPod}), kNow + absl::Seconds(1) + kPause);
}

}  // namespace
}  // namespace spoke::netagent
