#include "netagent/packets/probe_frame.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using Frame = std::vector<uint8_t>;

const ip::MacAddress kNic = ip::MacAddress::Parse("00:0d:3a:31:45:48").value();
const ip::MacAddress kHop = ip::MacAddress::Parse("12:34:56:78:9a:bc").value();
const ip::Address kFrom = ip::Address::V4(0x0A000005);  // 10.0.0.5
const ip::Address kTo = ip::Address::V4(0x0A000009);    // 10.0.0.9

Frame FromHex(std::string_view hex) {
  Frame bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<uint8_t>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

EchoRequest Sample() {
  return {.nic_mac = kNic,
          .next_hop_mac = kHop,
          .from = kFrom,
          .to = kTo,
          .identifier = 0x1234,
          .sequence = 7,
          .nonce = 0x0102030405060708};
}

// Returns what the other end makes of a request: addresses the other way round, type 0.
Frame AnswerTo(Frame frame) {
  std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
  std::swap_ranges(frame.begin() + 26, frame.begin() + 30, frame.begin() + 30);
  frame[34] = 0;
  // By RFC 1624, the type has gone down by 8 in the high byte, so the checksum goes up by as much.
  uint32_t sum = (static_cast<uint32_t>(frame[36]) << 8U) + frame[37] + 0x0800;
  if (sum > 0xFFFF) sum = (sum & 0xFFFFU) + 1;
  frame[36] = static_cast<uint8_t>(sum >> 8U);
  frame[37] = static_cast<uint8_t>(sum & 0xFFU);
  return frame;
}

TEST(ProbeFrame, AnEchoRequestIsWhatTheStandardsSay) {
  // The frame is written down by hand from RFC 791 and 792; so are the checksums.
  EXPECT_EQ(BuildEchoRequest(Sample()),
            FromHex("123456789abc 000d3a314548 0800"
                    "4500 003c 0007 4000 4001 26ad 0a000005 0a000009"
                    "0800 d5b0 1234 0007 0102030405060708"
                    "0000000000000000 0000000000000000 0000000000000000"));
}

TEST(ProbeFrame, TheAnswerIsRead) {
  const auto reply = ParseEchoReply(AnswerTo(BuildEchoRequest(Sample())));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(*reply, (EchoReply{.nic_mac = kNic,
                               .from = kTo,
                               .to = kFrom,
                               .identifier = 0x1234,
                               .nonce = 0x0102030405060708}));
}

TEST(ProbeFrame, AnAnswerWithPaddingBehindItIsRead) {
  Frame frame = AnswerTo(BuildEchoRequest(Sample()));
  frame.resize(frame.size() + 18, 0xEE);
  EXPECT_TRUE(ParseEchoReply(frame).has_value());
}

TEST(ProbeFrame, AnswersThatAreCutShortOrDamagedAreNone) {
  const Frame whole = AnswerTo(BuildEchoRequest(Sample()));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(ParseEchoReply(std::span(whole).first(length)), std::nullopt) << length;
  }
  // Any changed bit behind the MAC addresses breaks the ethertype or one of the checksums.
  for (size_t at = 12; at < whole.size(); ++at) {
    Frame damaged = whole;
    damaged[at] = static_cast<uint8_t>(damaged[at] ^ 0x10U);
    EXPECT_EQ(ParseEchoReply(damaged), std::nullopt) << at;
  }
}

TEST(ProbeFrame, ARequestIsNoAnswer) {
  EXPECT_EQ(ParseEchoReply(BuildEchoRequest(Sample())), std::nullopt);
}

TEST(ProbeFrame, AnArpRequestAsksEverybody) {
  EXPECT_EQ(BuildArpRequest(kNic, kFrom, kTo),
            FromHex("ffffffffffff 000d3a314548 0806"
                    "0001 0800 06 04 0001 000d3a314548 0a000005 000000000000 0a000009"
                    "0000 0000 0000 0000 0000 0000 0000 0000 0000"));
}

TEST(ProbeFrame, AnArpReplySaysWhereAnAddressIs) {
  const Frame reply = FromHex(
      "000d3a314548 123456789abc 0806"
      "0001 0800 06 04 0002 123456789abc 0a000009 000d3a314548 0a000005");
  EXPECT_EQ(ParseArpReply(reply), (ArpReply{.address = kTo, .mac = kHop}));
  for (size_t length = 0; length < reply.size(); ++length) {
    EXPECT_EQ(ParseArpReply(std::span(reply).first(length)), std::nullopt) << length;
  }
  for (const size_t at : {13U, 15U, 17U, 18U, 19U, 21U}) {
    Frame other = reply;
    ++other[at];
    EXPECT_EQ(ParseArpReply(other), std::nullopt) << at;
  }
  EXPECT_EQ(ParseArpReply(BuildArpRequest(kNic, kFrom, kTo)), std::nullopt);
}

}  // namespace
}  // namespace spoke::netagent
