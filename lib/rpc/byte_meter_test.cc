#include "lib/rpc/byte_meter.h"

#include <vector>

#include "gtest/gtest.h"

namespace spoke::rpc {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr uint64_t kMiB = 1 << 20;
constexpr ListenerLimits kLimits{.peers = {.connections_per_address = 32},
                                 .burst_bytes = 8 * kMiB,
                                 .bytes_per_second = kMiB,
                                 .unfinished_bytes = 2 * kMiB,
                                 .unfinished_bytes_per_second = 1024};

const ip::Address kPeer = ip::Address::V4(0x0A000001);

TEST(ByteMeter, AllBytesCount) {
  ByteMeter meter(kLimits);
  auto connection = meter.Begin(kPeer, kStart);
  EXPECT_TRUE(meter.Look(connection, {.bytes = 8 * kMiB, .whole = 8 * kMiB}, kStart));
  const absl::Time later = kStart + absl::Seconds(3);
  EXPECT_TRUE(meter.Look(connection, {.bytes = 11 * kMiB, .whole = 11 * kMiB}, later));
  EXPECT_FALSE(meter.Look(connection, {.bytes = 11 * kMiB + 1, .whole = 11 * kMiB}, later));
}

TEST(ByteMeter, WhatBecomesNoMessageCountsMore) {
  ByteMeter meter(kLimits);
  auto connection = meter.Begin(kPeer, kStart);
  EXPECT_TRUE(meter.Look(connection, {.bytes = 2 * kMiB, .whole = 0}, kStart));
  // It was the beginning of a message, which is whole now.
  EXPECT_TRUE(meter.Look(connection, {.bytes = 4 * kMiB, .whole = 2 * kMiB}, kStart));
  EXPECT_FALSE(meter.Look(connection, {.bytes = 4 * kMiB + 1, .whole = 2 * kMiB}, kStart));
}

TEST(ByteMeter, APieceNowAndThenIsForgotten) {
  ByteMeter meter(kLimits);
  auto connection = meter.Begin(kPeer, kStart);
  uint64_t bytes = 0;
  for (int second = 1; second <= 10'000; ++second) {
    bytes += 1000;
    ASSERT_TRUE(meter.Look(connection, {.bytes = bytes}, kStart + absl::Seconds(second)));
  }
  EXPECT_EQ(connection.unfinished, 0);
}

TEST(ByteMeter, WhatIsCountedAroundMessagesGivesNothingForLater) {
  ByteMeter meter(kLimits);
  auto connection = meter.Begin(kPeer, kStart);
  EXPECT_TRUE(meter.Look(connection, {.bytes = 100, .whole = kMiB}, kStart));
  EXPECT_FALSE(meter.Look(connection, {.bytes = 101 + 2 * kMiB, .whole = kMiB}, kStart));
}

TEST(ByteMeter, ConnectionsOfOneAddressHaveLittleMoreTogether) {
  ByteMeter meter(kLimits);
  auto first = meter.Begin(kPeer, kStart);
  EXPECT_TRUE(meter.Look(first, {.bytes = 2 * kMiB}, kStart));
  std::vector<ByteMeter::Connection> others;
  // Those that have as little as an honest agent of a fleet behind one address are no matter.
  for (int i = 0; i < 100; ++i) {
    auto& other = others.emplace_back(meter.Begin(kPeer, kStart));
    EXPECT_TRUE(meter.Look(other, {.bytes = ByteMeter::kAnyway}, kStart));
  }
  EXPECT_FALSE(meter.Look(others[0], {.bytes = ByteMeter::kAnyway + 1}, kStart));
  auto elsewhere = meter.Begin(ip::Address::V4(0x0A000002), kStart);
  EXPECT_TRUE(meter.Look(elsewhere, {.bytes = 2 * kMiB}, kStart));
  for (auto& other : others) meter.End(other);
  auto next = meter.Begin(kPeer, kStart);
  EXPECT_TRUE(meter.Look(next, {.bytes = kMiB}, kStart));
  EXPECT_FALSE(meter.Look(next, {.bytes = kMiB + 1}, kStart));
}

TEST(ByteMeter, WithoutALimitOfUnfinishedBytesAllAreAlike) {
  ListenerLimits limits = kLimits;
  limits.unfinished_bytes = 0;
  ByteMeter meter(limits);
  auto connection = meter.Begin(kPeer, kStart);
  EXPECT_TRUE(meter.Look(connection, {.bytes = 8 * kMiB}, kStart));
}

}  // namespace
}  // namespace spoke::rpc
