#include "tests/fabric/frame.h"

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fabric/frames_for_test.h"

namespace spoke::fabric {
namespace {

constexpr std::string_view kOne = "02:00:00:00:00:01";
constexpr std::string_view kTwo = "02:00:00:00:00:02";
constexpr std::string_view kAll = "ff:ff:ff:ff:ff:ff";

struct GoodCase {
  std::string name;
  FrameBytes bytes;
  Frame want;
};

class ParsesFrame : public testing::TestWithParam<GoodCase> {};

TEST_P(ParsesFrame, AsSent) {
  const auto frame = ParseFrame(GetParam().bytes);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(*frame, GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ParsesFrame,
    testing::Values(
        GoodCase{
            "ArpRequest",
            Ethernet(kAll, kOne, "0806") + Arp("0001", kOne, "10.0.0.1", "10.0.0.2"),
            {Mac(kAll), Mac(kOne), ArpMessage{true, Mac(kOne), Ip("10.0.0.1"), Ip("10.0.0.2")}}},
        GoodCase{
            "ArpReply",
            Ethernet(kTwo, kOne, "0806") + Arp("0002", kOne, "10.0.0.1", "10.0.0.2"),
            {Mac(kTwo), Mac(kOne), ArpMessage{false, Mac(kOne), Ip("10.0.0.1"), Ip("10.0.0.2")}}},
        GoodCase{"Ipv4",
                 Ethernet(kTwo, kOne, "0800") + Ipv4("10.0.0.1", "10.0.0.2"),
                 {Mac(kTwo), Mac(kOne), IpPacket{Ip("10.0.0.1"), Ip("10.0.0.2"), 64, 28}}},
        GoodCase{"Ipv4Padded",
                 Ethernet(kTwo, kOne, "0800") + Ipv4("10.0.0.1", "10.0.0.2") + Hex("00000000"),
                 {Mac(kTwo), Mac(kOne), IpPacket{Ip("10.0.0.1"), Ip("10.0.0.2"), 64, 28}}},
        GoodCase{"Ipv6",
                 Ethernet(kTwo, kOne, "86dd") + Ipv6("fd00::1", "fd00::2"),
                 {Mac(kTwo), Mac(kOne), IpPacket{Ip("fd00::1"), Ip("fd00::2"), 64, 48, false}}},
        GoodCase{
            "NeighbourSolicitation",
            Ethernet("33:33:ff:00:00:01", kOne, "86dd") + Solicitation("fd00::1", "fd00::2", "ff"),
            {Mac("33:33:ff:00:00:01"), Mac(kOne),
             NeighbourSolicitation{Ip("fd00::1"), Ip("fd00::2")}}},
        GoodCase{"Tagged",
                 Ethernet(kTwo, kOne, "8100") + Hex("0064 0800") + Ipv4("10.0.0.1", "10.0.0.2"),
                 {Mac(kTwo), Mac(kOne), IpPacket{Ip("10.0.0.1"), Ip("10.0.0.2"), 64, 28}, 1}},
        GoodCase{"TaggedTwice",
                 Ethernet(kTwo, kOne, "88a8") + Hex("0064 8100 0001 0800") +
                     Ipv4("10.0.0.1", "10.0.0.2"),
                 {Mac(kTwo), Mac(kOne), IpPacket{Ip("10.0.0.1"), Ip("10.0.0.2"), 64, 28}, 2}},
        GoodCase{"TaggedThreeTimes",
                 Ethernet(kTwo, kOne, "8100") + Hex("0001 8100 0002 8100 0003 0800"),
                 {Mac(kTwo), Mac(kOne), OtherPayload{0x8100}, 2}},
        GoodCase{
            "Lldp", Ethernet(kAll, kOne, "88cc"), {Mac(kAll), Mac(kOne), OtherPayload{0x88CC}}},
        GoodCase{"Length", Ethernet(kAll, kOne, "0026"), {Mac(kAll), Mac(kOne), OtherPayload{38}}}),
    [](const auto& test) { return test.param.name; });

struct BadCase {
  std::string name;
  FrameBytes bytes;
  std::string message;
};

class RefusesFrame : public testing::TestWithParam<BadCase> {};

TEST_P(RefusesFrame, SayingWhy) {
  const auto frame = ParseFrame(GetParam().bytes);
  ASSERT_TRUE(absl::IsInvalidArgument(frame.status())) << frame.status();
  EXPECT_THAT(std::string(frame.status().message()), testing::HasSubstr(GetParam().message));
}

// Returns the frame with the byte at `at`, counted behind the Ethernet header, set to `value`.
FrameBytes With(FrameBytes bytes, size_t at, uint8_t value) {
  bytes[kEthernetHeaderBytes + at] = value;
  return bytes;
}

FrameBytes Cut(FrameBytes bytes, size_t by) {
  bytes.resize(bytes.size() - by);
  return bytes;
}

const FrameBytes kArp = Ethernet(kAll, kOne, "0806") + Arp("0001", kOne, "10.0.0.1", "10.0.0.2");
const FrameBytes kV4 = Ethernet(kTwo, kOne, "0800") + Ipv4("10.0.0.1", "10.0.0.2");
const FrameBytes kV6 = Ethernet(kTwo, kOne, "86dd") + Ipv6("fd00::1", "fd00::2");

INSTANTIATE_TEST_SUITE_P(
    Cases, RefusesFrame,
    testing::Values(
        BadCase{"Empty", {}, "Ethernet header"},
        BadCase{"HalfHeader", Cut(Ethernet(kTwo, kOne, "0800"), 1), "Ethernet header"},
        BadCase{"HalfTag", Ethernet(kTwo, kOne, "8100") + Hex("000108"), "Ethernet header"},
        BadCase{"ArpCut", Cut(kArp, 1), "ARP message cut short"},
        BadCase{"ArpForTokenRing", With(kArp, 1, 6), "something else"},
        BadCase{"ArpForIpv6", With(kArp, 4, 16), "something else"},
        BadCase{"ArpOperation", With(kArp, 7, 9), "ARP operation"},
        BadCase{"Ipv4NoHeader", Ethernet(kTwo, kOne, "0800") + Hex("45"), "IPv4 header cut short"},
        BadCase{"Ipv4Version", With(kV4, 0, 0x65), "IPv4 header"},
        BadCase{"Ipv4ShortHeader", With(kV4, 0, 0x44), "IPv4 header"},
        BadCase{"Ipv4Truncated", Cut(kV4, 1), "IPv4 length"},
        BadCase{"Ipv4LengthInHeader", With(kV4, 3, 19), "IPv4 length"},
        BadCase{"Ipv6NoHeader", Ethernet(kTwo, kOne, "86dd") + Hex("60"), "IPv6 header cut short"},
        BadCase{"Ipv6Version", With(kV6, 0, 0x45), "IPv6 version"},
        BadCase{"Ipv6Truncated", Cut(kV6, 1), "IPv6 length"},
        BadCase{"SolicitationFromAfar",
                Ethernet(kAll, kOne, "86dd") + Solicitation("fd00::1", "fd00::2", "40"),
                "neighbour solicitation"}),
    [](const auto& test) { return test.param.name; });

TEST(Readdress, ChangesTheTwoMacsAndNothingElse) {
  EXPECT_EQ(
      Readdress(kV4, Mac("aa:00:00:00:00:01"), Mac("aa:00:00:00:00:02")),
      Ethernet("aa:00:00:00:00:01", "aa:00:00:00:00:02", "0800") + Ipv4("10.0.0.1", "10.0.0.2"));
}

struct AnswerCase {
  std::string name;
  FrameBytes bytes;
  bool want;
};

class MayBeAnswered : public testing::TestWithParam<AnswerCase> {};

TEST_P(MayBeAnswered, UnlessItIsAnErrorOrALaterFragment) {
  const auto frame = ParseFrame(GetParam().bytes);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(std::get<IpPacket>(frame->payload).may_be_answered, GetParam().want);
}

// The packet carries ICMP of `type` in place of UDP.
FrameBytes Icmpv4(uint8_t type) { return With(With(kV4, 9, 1), 20, type); }
FrameBytes Icmpv6(uint8_t type) { return With(With(kV6, 6, 58), 40, type); }

INSTANTIATE_TEST_SUITE_P(
    Cases, MayBeAnswered,
    testing::Values(AnswerCase{"Udp", kV4, true}, AnswerCase{"Ping", Icmpv4(8), true},
                    AnswerCase{"Unreachable", Icmpv4(3), false},
                    AnswerCase{"Redirect", Icmpv4(5), false},
                    AnswerCase{"Exceeded", Icmpv4(11), false},
                    AnswerCase{"FirstFragment", With(kV4, 6, 0x20), true},
                    AnswerCase{"LaterFragment", With(kV4, 7, 1), false},
                    AnswerCase{"V6Udp", kV6, true}, AnswerCase{"V6Ping", Icmpv6(128), true},
                    AnswerCase{"V6TooBig", Icmpv6(2), false},
                    AnswerCase{"V6Redirect", Icmpv6(137), false},
                    AnswerCase{"V6FirstFragment", With(With(kV6, 6, 44), 43, 0x01), true},
                    AnswerCase{"V6LaterFragment", With(With(kV6, 6, 44), 43, 0x08), false}),
    [](const auto& test) { return test.param.name; });

TEST(ParseFrame, KnowsWhichPacketsMustNotBeFragmented) {
  const auto may = [](const FrameBytes& bytes) {
    return std::get<IpPacket>(ParseFrame(bytes)->payload).may_be_fragmented;
  };
  EXPECT_TRUE(may(kV4));
  EXPECT_FALSE(may(With(kV4, 6, 0x40)));
  EXPECT_FALSE(may(kV6));
}

TEST(DecrementHops, KeepsAValidChecksumValidAndAWrongOneWrong) {
  // Checksums by hand: 4500 001c 0001 0000 4011 0a00 0001 0a00 0002 add up to 9931.
  FrameBytes frame = With(With(kV4, 10, 0x66), 11, 0xCE);
  DecrementHops(frame);
  EXPECT_EQ(frame, With(With(With(kV4, 8, 63), 10, 0x67), 11, 0xCE));

  FrameBytes carries = With(With(kV4, 10, 0xFF), 11, 0xFE);
  DecrementHops(carries);
  EXPECT_EQ(carries, With(With(With(kV4, 8, 63), 10, 0x00), 11, 0xFF));

  FrameBytes v6 = kV6;
  DecrementHops(v6);
  EXPECT_EQ(v6, With(kV6, 7, 63));
}

TEST(BuildArpReply, AnswersTheAsker) {
  const FrameBytes reply =
      BuildArpReply({true, Mac(kOne), Ip("10.0.0.1"), Ip("10.0.0.2")}, Mac("12:34:56:78:9a:bc"));
  EXPECT_EQ(reply, Hex("020000000001 123456789abc 0806 0001 0800 06 04 0002"
                       "123456789abc 0a000002 020000000001 0a000001"));
}

TEST(BuildAdvertisement, AnswersTheAskerWithAValidChecksum) {
  const FrameBytes reply =
      BuildAdvertisement({Ip("fd00::1"), Ip("fd00::2")}, Mac(kOne), Mac("12:34:56:78:9a:bc"));
  // The checksum by hand, in words: source fd00+2, destination fd00+1, length 0020, next header
  // 003a, message 8800 e000 fd00 0002 0201 1234 5678 9abc: 0x564c8 carries to 64cd; inverted, 9b32.
  EXPECT_EQ(reply, Hex("020000000001 123456789abc 86dd 60000000 0020 3a ff") + Wire(Ip("fd00::2")) +
                       Wire(Ip("fd00::1")) + Hex("88 00 9b32 e0000000") + Wire(Ip("fd00::2")) +
                       Hex("02 01 123456789abc"));
}

// Whatever comes in, nothing is read beyond its end (the sanitizers watch).
TEST(ParseFrame, SurvivesDamage) {
  constexpr unsigned kSeed = 20;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const std::vector<FrameBytes> good{
      kArp, kV4, kV6, Ethernet(kAll, kOne, "86dd") + Solicitation("fd00::1", "fd00::2", "ff")};
  for (int round = 0; round < 20000; ++round) {
    FrameBytes bytes = good[random() % good.size()];
    for (unsigned changes = random() % 4; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    bytes.resize(random() % (bytes.size() + 1));
    bytes.shrink_to_fit();
    (void)ParseFrame(bytes);
  }
}

}  // namespace
}  // namespace spoke::fabric
