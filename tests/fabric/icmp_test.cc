#include "tests/fabric/icmp.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/fabric/frames_for_test.h"

namespace spoke::fabric {
namespace {

constexpr std::string_view kHost = "02:00:00:00:00:01";
constexpr std::string_view kFabric = "12:34:56:78:9a:bc";

FrameBytes V4() { return Ethernet(kFabric, kHost, "0800") + Ipv4("10.0.0.4", "192.0.2.1"); }
FrameBytes V6() { return Ethernet(kFabric, kHost, "86dd") + Ipv6("fd00::4", "fd00::9"); }

FrameBytes ErrorOf(IcmpError error, const FrameBytes& frame, std::string_view gateway) {
  return BuildIcmpError(error, frame, Ip(gateway), Mac(kFabric), 1400);
}

FrameBytes From(const FrameBytes& bytes, size_t at, size_t count) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(at),
          bytes.begin() + static_cast<std::ptrdiff_t>(at + count)};
}

TEST(BuildIcmpError, QuotesThePacketToItsSender) {
  // The checksums by hand. Header: 4500 0038 4001 0a00 0001 0a00 0004 add up to 993e. Message:
  // 0b00, and the quote 4500 001c 0001 4011 0a00 0004 c000 0201 0035 0035 0008, add up to 1628b:
  // 628c.
  EXPECT_EQ(ErrorOf(IcmpError::kHopLimit, V4(), "10.0.0.1"),
            Ethernet(kHost, kFabric, "0800") + Hex("45 00 0038 0000 0000 40 01 66c1") +
                Wire(Ip("10.0.0.1")) + Wire(Ip("10.0.0.4")) + Hex("0b 00 a359 00000000") +
                Ipv4("10.0.0.4", "192.0.2.1"));
}

TEST(BuildIcmpError, QuotesAnIpv6Packet) {
  const FrameBytes error = ErrorOf(IcmpError::kNoRoute, V6(), "fd00::1");
  EXPECT_EQ(From(error, 0, 56), Ethernet(kHost, kFabric, "86dd") + Hex("60000000 0038 3a 40") +
                                    Wire(Ip("fd00::1")) + Wire(Ip("fd00::4")) + Hex("01 00"));
  EXPECT_EQ(From(error, 58, error.size() - 58), Hex("00000000") + Ipv6("fd00::4", "fd00::9"));
}

struct KindCase {
  std::string name;
  IcmpError error;
  FrameBytes v4;  // The first bytes are type and code.
  FrameBytes v6;
  uint16_t mtu;
};

class Kinds : public testing::TestWithParam<KindCase> {};

TEST_P(Kinds, HaveTheirTypeCodeAndMtu) {
  const KindCase& c = GetParam();
  const FrameBytes v4 = ErrorOf(c.error, V4(), "10.0.0.1");
  const FrameBytes v6 = ErrorOf(c.error, V6(), "fd00::1");
  EXPECT_EQ(From(v4, 34, 2), c.v4);
  EXPECT_EQ(From(v6, 54, 2), c.v6);
  const FrameBytes mtu = Hex("0000") + FrameBytes{static_cast<uint8_t>(c.mtu >> 8U),
                                                  static_cast<uint8_t>(c.mtu & 0xFFU)};
  EXPECT_EQ(From(v4, 38, 4), mtu);
  EXPECT_EQ(From(v6, 58, 4), mtu);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Kinds,
    testing::Values(KindCase{"NoRoute", IcmpError::kNoRoute, Hex("0300"), Hex("0100"), 0},
                    KindCase{"NoHost", IcmpError::kNoHost, Hex("0301"), Hex("0103"), 0},
                    KindCase{"HopLimit", IcmpError::kHopLimit, Hex("0b00"), Hex("0300"), 0},
                    KindCase{"TooBig", IcmpError::kTooBig, Hex("0304"), Hex("0200"), 1400}),
    [](const auto& test) { return test.param.name; });

TEST(BuildIcmpError, IsNeverLongerThanEveryHostTakes) {
  FrameBytes v4 = V4() + FrameBytes(2000, 0x55);
  v4[14 + 2] = 0x07;  // The total length is 0x071c.
  FrameBytes v6 = V6() + FrameBytes(2000, 0x55);
  v6[14 + 4] = 0x07;
  EXPECT_EQ(ErrorOf(IcmpError::kTooBig, v4, "10.0.0.1").size(), 14U + 576U);
  EXPECT_EQ(ErrorOf(IcmpError::kTooBig, v6, "fd00::1").size(), 14U + 1280U);
}

TEST(BuildIcmpError, DoesNotQuotePadding) {
  EXPECT_EQ(ErrorOf(IcmpError::kNoHost, V4() + Hex("000000"), "10.0.0.1"),
            ErrorOf(IcmpError::kNoHost, V4(), "10.0.0.1"));
}

}  // namespace
}  // namespace spoke::fabric
