#include "lib/rpc/peer_gate.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::rpc {
namespace {

constexpr PeerLimits kLimits{
    .connections = 8, .connections_per_address = 4, .burst = 6, .per_second = 2};
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

ip::Address At(const std::string& text) { return ip::Address::Parse(text).value(); }

// Returns how many of `count` get in.
size_t Enter(PeerGate& gate, const std::string& peer, size_t count, absl::Time now = kStart) {
  size_t entered = 0;
  for (size_t i = 0; i < count; ++i) entered += gate.Enter(At(peer), now).refused ? 0 : 1;
  return entered;
}

TEST(PeerGate, OneAddressHasSoManyConnections) {
  PeerGate gate(kLimits);
  EXPECT_EQ(Enter(gate, "10.0.0.1", 5), 4U);
  EXPECT_EQ(gate.Enter(At("10.0.0.1"), kStart).refused, Refusal::kPeerConnections);
  EXPECT_EQ(Enter(gate, "10.0.0.2", 1), 1U);
  gate.Leave(At("10.0.0.1"));
  EXPECT_EQ(Enter(gate, "10.0.0.1", 2), 1U);
}

TEST(PeerGate, OneAddressConnectsSoOften) {
  PeerGate gate(kLimits);
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(Enter(gate, "10.0.0.1", 1), 1U);
    gate.Leave(At("10.0.0.1"));
  }
  EXPECT_EQ(gate.Enter(At("10.0.0.1"), kStart).refused, Refusal::kPeerRate);
  EXPECT_EQ(Enter(gate, "10.0.0.1", 2, kStart + absl::Milliseconds(600)), 1U);
  // A peer that is refused pays nothing, so that it gets in as soon as it may.
  EXPECT_EQ(Enter(gate, "10.0.0.1", 1, kStart + absl::Milliseconds(1100)), 1U);
}

TEST(PeerGate, WhenAllPlacesAreTakenTheGreatestMakesRoom) {
  PeerGate gate(kLimits);
  EXPECT_EQ(Enter(gate, "10.0.0.1", 4), 4U);
  EXPECT_EQ(Enter(gate, "10.0.0.2", 4), 4U);
  const PeerGate::Verdict verdict = gate.Enter(At("10.0.0.3"), kStart);
  EXPECT_FALSE(verdict.refused);
  ASSERT_TRUE(verdict.evict);
  gate.Leave(*verdict.evict);
  EXPECT_EQ(gate.connections(), 8U);
}

TEST(PeerGate, NobodyMakesRoomForItsEqual) {
  PeerGate gate(kLimits);
  for (int i = 1; i <= 8; ++i) Enter(gate, "10.0.0." + std::to_string(i), 1);
  EXPECT_EQ(gate.Enter(At("10.0.0.9"), kStart).refused, Refusal::kFull);
}

TEST(PeerGate, ANetworkOfIpv6HasLimitsOfItsOwn) {
  PeerGate gate({.connections = 10'000, .connections_per_address = 4, .burst = 6, .per_second = 2});
  size_t entered = 0;
  for (int i = 1; i <= 1000; ++i) entered += Enter(gate, "fd00::" + std::to_string(i), 1);
  EXPECT_EQ(entered, 4 * kNetworkShare);
  EXPECT_EQ(Enter(gate, "fd00:0:0:1::1", 1), 1U);
}

TEST(PeerGate, WhoBreaksALimitStaysOutForATime) {
  PeerGate gate(kLimits);
  EXPECT_EQ(Enter(gate, "10.0.0.1", 1), 1U);
  gate.Leave(At("10.0.0.1"));
  gate.Punish(At("10.0.0.1"), kStart);
  EXPECT_EQ(Enter(gate, "10.0.0.1", 1, kStart + absl::Seconds(3)), 0U);
  EXPECT_EQ(Enter(gate, "10.0.0.2", 1, kStart + absl::Seconds(3)), 1U);
  EXPECT_EQ(Enter(gate, "10.0.0.1", 1, kStart + absl::Seconds(4)), 1U);
}

TEST(PeerGate, TheTimeThatItStaysOutMayBeLonger) {
  PeerLimits limits = kLimits;
  limits.penalty = absl::Minutes(5);
  PeerGate gate(limits);
  gate.Punish(At("10.0.0.1"), kStart);
  EXPECT_EQ(Enter(gate, "10.0.0.1", 1, kStart + absl::Seconds(299)), 0U);
  EXPECT_EQ(Enter(gate, "10.0.0.2", 1, kStart + absl::Seconds(299)), 1U);
  EXPECT_EQ(Enter(gate, "10.0.0.1", 1, kStart + absl::Seconds(301)), 1U);
}

TEST(PeerGate, ThisMachineMayBeFree) {
  PeerGate gate({.connections = 100,
                 .connections_per_address = 4,
                 .burst = 6,
                 .per_second = 2,
                 .loopback_is_free = true});
  EXPECT_EQ(Enter(gate, "127.0.0.1", 50), 50U);
  EXPECT_EQ(Enter(gate, "::1", 60), 50U);
  EXPECT_EQ(gate.Enter(At("10.0.0.1"), kStart).refused, Refusal::kFull);
  gate.Leave(At("127.0.0.1"));
  EXPECT_EQ(Enter(gate, "10.0.0.1", 2), 1U);
}

TEST(PeerGate, ThousandsOfAddressesDoNotFillItsMemory) {
  PeerGate gate({.connections = 64, .connections_per_address = 4, .burst = 6, .per_second = 2});
  absl::Time now = kStart;
  for (uint32_t i = 0; i < 20'000; ++i) {
    const ip::Address peer = ip::Address::V4(0x0A000000 + i);
    now += absl::Milliseconds(1);
    if (!gate.Enter(peer, now).refused) gate.Leave(peer);
  }
  EXPECT_LT(gate.remembered(), 4096U);
}

}  // namespace
}  // namespace spoke::rpc
