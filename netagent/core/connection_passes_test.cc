#include "netagent/core/connection_passes.h"

#include <array>

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kPod = ip::Address::V4(0x0A010005);
constexpr ip::Address kOther = ip::Address::V4(0x0A010006);
constexpr ip::Address kFar = ip::Address::V4(0xC0000201);
constexpr ip::Address kNode = ip::Address::V4(0x0A000004);
constexpr ip::Address kPod6 = ip::Address::V6(0xFD00'0000'0000'0000, 5);
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
  ConnectionPasses passes;
  EXPECT_EQ(passes.NextPass({}), std::nullopt);
}

TEST(ConnectionPasses, TheFirstIsDueAtOnceAndOneRunsAtATime) {
  ConnectionPasses passes;
  EXPECT_LE(passes.NextPass({kPod}), kNow);
  passes.OnBegun(kNow);
  EXPECT_TRUE(passes.under_way());
  EXPECT_EQ(passes.NextPass({kPod, kOther}), std::nullopt);
  passes.OnEnded(kNow, {});
  EXPECT_FALSE(passes.under_way());
}

TEST(ConnectionPasses, OneASecondHoweverManyAddressesCome) {
  ConnectionPasses passes;
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

TEST(ConnectionPasses, WhatTookLongRestsAsLong) {
  ConnectionPasses passes;
  passes.OnBegun(kNow);
  passes.OnEnded(kNow + absl::Seconds(7), {});
  EXPECT_EQ(passes.NextPass({kPod}), kNow + absl::Seconds(14));
}

TEST(ConnectionPasses, WhatFailedWaitsLongerAndKeepsNobodyElse) {
  ConnectionPasses passes;
  passes.OnBegun(kNow);
  passes.OnEnded(kNow, {kPod});
  EXPECT_EQ(passes.NextPass({kPod}), kNow + ConnectionPasses::kRetryPause);
  EXPECT_EQ(passes.NextPass({kPod, kOther}), kNow + ConnectionPasses::kPause);
  // Done at last: should it be released once more, it is new.
  passes.OnBegun(kNow + absl::Seconds(1));
  passes.OnEnded(kNow + absl::Seconds(1), {});
  EXPECT_EQ(passes.NextPass({kPod}), kNow + absl::Seconds(1) + ConnectionPasses::kPause);
}

}  // namespace
}  // namespace spoke::netagent
