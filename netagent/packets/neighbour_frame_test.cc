#include "netagent/packets/neighbour_frame.h"

#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "netagent/packets/frame_bytes.h"

namespace spoke::netagent {
namespace {

constexpr ip::MacAddress kOurs{{2, 0, 0, 0, 0, 4}};
constexpr ip::MacAddress kTheirs{{0, 0x0D, 0x3A, 1, 2, 3}};
constexpr ip::Address kV4 = ip::Address::V4(0x0A010005);  // 10.1.0.5
constexpr ip::Address kOther4 = ip::Address::V4(0x0A010006);
const ip::Address kV6 = ip::Address::Parse("fd00::12ab:cdef").value();

std::vector<uint8_t> FromHex(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

NeighbourClaim Has(const ip::Address& address, const ip::MacAddress& mac) {
  return {.address = address, .mac = mac, .source = mac};
}
NeighbourClaim Asks(const ip::Address& address, const ip::MacAddress& mac) {
  return {.kind = NeighbourClaim::Kind::kAsks, .address = address, .mac = mac, .source = mac};
}

// Returns a neighbour advertisement for kV6, with its checksum.
std::vector<uint8_t> Advertisement(const std::vector<uint8_t>& options) {
  std::vector<uint8_t> out;
  AppendEthernet(out, {{0x33, 0x33, 0, 0, 0, 1}}, kTheirs, kEthertypeIpv6);
  out.insert(out.end(), {0x60, 0, 0, 0});
  Append16(out, static_cast<uint16_t>(24 + options.size()));
  out.insert(out.end(), {58, 255});
  AppendAddress(out, kV6);
  AppendAddress(out, ip::Address::V6(0xFF02ULL << 48U, 1));
  out.insert(out.end(), {136, 0, 0, 0, 0x20, 0, 0, 0});
  AppendAddress(out, kV6);
  out.insert(out.end(), options.begin(), options.end());
  const Bytes packet = Bytes(out).subspan(kEthernetBytes);
  uint32_t sum = static_cast<uint32_t>(58 + 24 + options.size());
  for (size_t at = 8; at < 40; at += 2) sum += Load16(packet, at);
  Store16(out, kEthernetBytes + 42, InternetChecksum(packet.subspan(40), sum));
  return out;
}

TEST(NeighbourFrame, AnArpProbeIsThatOfRfc5227) {
  const std::vector<uint8_t> probe = BuildNeighbourQuestion(kOurs, kV4);
  std::vector<uint8_t> want = FromHex(
      "ffffffffffff0200000000040806"
      "0001080006040001020000000004000000000000000000000a010005");
  want.resize(60);
  EXPECT_EQ(probe, want);
  EXPECT_EQ(ParseNeighbourClaim(probe), Asks(kV4, kOurs));
}

TEST(NeighbourFrame, ASolicitationIsThatOfDuplicateAddressDetection) {
  const std::vector<uint8_t> question = BuildNeighbourQuestion(kOurs, kV6);
  ASSERT_EQ(question.size(), 78U);
  EXPECT_EQ(LoadMac(question, 0), (ip::MacAddress{{0x33, 0x33, 0xFF, 0xAB, 0xCD, 0xEF}}));
  EXPECT_EQ(LoadAddress(question, 22, 16), ip::Address::V6(0, 0));
  EXPECT_EQ(LoadAddress(question, 38, 16), ip::Address::Parse("ff02::1:ffab:cdef").value());
  EXPECT_EQ(ParseNeighbourClaim(question), Asks(kV6, kOurs));
}

TEST(NeighbourFrame, WhoeverSpeaksInArpHasItsSendersAddress) {
  const ArpMessage says{.operation = kArpReply,
                        .from = kTheirs,
                        .sender = kV4,
                        .target_mac = kOurs,
                        .target = kOther4};
  EXPECT_EQ(ParseNeighbourClaim(BuildArp(kOurs, says)), Has(kV4, kTheirs));
  // The first is gratuitous, the second an ordinary question: both say where the sender is.
  EXPECT_EQ(
      ParseNeighbourClaim(BuildArp(kBroadcastMac, {.from = kTheirs, .sender = kV4, .target = kV4})),
      Has(kV4, kTheirs));
  EXPECT_EQ(ParseNeighbourClaim(
                BuildArp(kBroadcastMac, {.from = kTheirs, .sender = kV4, .target = kOther4})),
            Has(kV4, kTheirs));
  EXPECT_EQ(ParseNeighbourClaim(BuildArpAnswer(kTheirs, kV4, kOurs)), Has(kV4, kTheirs));
  // The sender of the frame and the machine it speaks of may differ.
  std::vector<uint8_t> forwarded = BuildArpAnswer(kTheirs, kV4, kOurs);
  forwarded[11] = 0x77;
  const auto claim = ParseNeighbourClaim(forwarded);
  ASSERT_TRUE(claim.has_value());
  EXPECT_EQ(claim->mac, kTheirs);
  EXPECT_NE(claim->source, kTheirs);
}

TEST(NeighbourFrame, AnAdvertisementSaysWhereItsTargetIs) {
  EXPECT_EQ(ParseNeighbourClaim(Advertisement({})), Has(kV6, kTheirs));
  const auto claim = ParseNeighbourClaim(Advertisement({2, 1, 2, 0, 0, 0, 0, 9}));
  ASSERT_TRUE(claim.has_value());
  EXPECT_EQ(claim->mac, (ip::MacAddress{{2, 0, 0, 0, 0, 9}}));
  EXPECT_EQ(claim->source, kTheirs);
  EXPECT_EQ(ParseNeighbourClaim(Advertisement({14, 1, 0, 0, 0, 0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 9})),
            claim)
      << "behind an option that is not known";
  EXPECT_EQ(ParseNeighbourClaim(Advertisement({2, 0, 2, 0, 0, 0, 0, 9})), std::nullopt);
  EXPECT_EQ(ParseNeighbourClaim(Advertisement({2, 2, 2, 0, 0, 0, 0, 9})), std::nullopt);
}

TEST(NeighbourFrame, WhatIsCutShortOrDamagedSaysNothing) {
  for (const std::vector<uint8_t>& whole :
       {BuildNeighbourQuestion(kOurs, kV6), Advertisement({2, 1, 2, 0, 0, 0, 0, 9})}) {
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_EQ(ParseNeighbourClaim(Bytes(whole).first(length)), std::nullopt) << length;
    }
    // From the payload's length on, nothing may be changed but the source's MAC before it.
    for (size_t at = kEthernetBytes + 4; at < whole.size(); ++at) {
      std::vector<uint8_t> changed = whole;
      changed[at] ^= 0x10U;
      EXPECT_EQ(ParseNeighbourClaim(changed), std::nullopt) << at;
    }
  }
  const std::vector<uint8_t> arp = BuildArpAnswer(kTheirs, kV4, kOurs);
  for (size_t length = 0; length < kEthernetBytes + kArpBytes; ++length) {
    EXPECT_EQ(ParseNeighbourClaim(Bytes(arp).first(length)), std::nullopt) << length;
  }
}

TEST(NeighbourFrame, WhatNoSingleMachineHasIsNobodys) {
  const ip::MacAddress none;
  const ip::Address group = ip::Address::V4(0xE0000001);
  const ip::Address nothing = ip::Address::V4(0);
  EXPECT_EQ(ParseNeighbourClaim(BuildArpAnswer(none, kV4, kOurs)), std::nullopt);
  EXPECT_EQ(ParseNeighbourClaim(BuildArpAnswer(kBroadcastMac, kV4, kOurs)), std::nullopt);
  EXPECT_EQ(ParseNeighbourClaim(BuildArpAnswer(kTheirs, group, kOurs)), std::nullopt);
  EXPECT_EQ(ParseNeighbourClaim(BuildArpAnswer(kTheirs, nothing, kOurs)), std::nullopt);
  EXPECT_EQ(ParseNeighbourClaim(BuildNeighbourQuestion(kOurs, nothing)), std::nullopt);
  EXPECT_EQ(ParseNeighbourClaim(BuildNeighbourQuestion(kOurs, group)), std::nullopt);
}

}  // namespace
}  // namespace spoke::netagent
