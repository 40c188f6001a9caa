#include "netagent/packets/udp_packet.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using Bytes = std::vector<uint8_t>;

// Returns a packet from 10.0.0.53, port 53, "hi"; two bytes of padding are behind.
Bytes V4() {
  return {0x45, 0, 0, 30, 0, 0,  0x40, 0,    64, 17, 0, 0, 10,  0,   0, 53,
          10,   0, 0, 7,  0, 53, 0x9C, 0x40, 0,  10, 0, 0, 'h', 'i', 0, 0};
}

// Returns a packet from fd00::53.
Bytes V6() {
  Bytes packet = {0x60, 0, 0, 0, 0, 10, 17, 64, 0xFD, 0, 0, 0,
                  0,    0, 0, 0, 0, 0,  0,  0,  0,    0, 0, 0x53};
  packet.resize(40);
  const Bytes datagram = {0, 53, 0x9C, 0x40, 0, 10, 0, 0, 'h', 'i'};
  packet.insert(packet.end(), datagram.begin(), datagram.end());
  return packet;
}

std::string Text(const UdpPacket& packet) { return {packet.payload.begin(), packet.payload.end()}; }

TEST(ParseUdpPacket, BothFamilies) {
  const Bytes v4 = V4();
  auto packet = ParseUdpPacket(v4);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->source, ip::Address::V4(0x0A000035));
  EXPECT_EQ(packet->source_port, 53);
  EXPECT_EQ(Text(*packet), "hi");
  const Bytes v6 = V6();
  packet = ParseUdpPacket(v6);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->source, ip::Address::V6(0xFD00ULL << 48U, 0x53));
  EXPECT_EQ(packet->source_port, 53);
  EXPECT_EQ(Text(*packet), "hi");
}

TEST(ParseUdpPacket, OptionsOfIpv4ArePassedOver) {
  Bytes packet = V4();
  packet.insert(packet.begin() + 20, {1, 1, 1, 1});
  packet[0] = 0x46;
  packet[3] = 34;
  ASSERT_TRUE(ParseUdpPacket(packet));
  EXPECT_EQ(Text(*ParseUdpPacket(packet)), "hi");
}

TEST(ParseUdpPacket, NothingButAWholeDatagram) {
  for (const Bytes& whole : {V4(), V6()}) {
    const size_t needed = whole[0] == 0x45 ? 30 : whole.size();
    for (size_t size = 0; size < needed; ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_FALSE(ParseUdpPacket(cut)) << size;
    }
  }
  struct Change {
    size_t at;
    uint8_t byte;
  };
  // These are the version, header's length, total length, fragments, protocol and UDP's length.
  for (const auto& [at, byte] :
       {Change{0, 0x55}, Change{0, 0x44}, Change{0, 0x4F}, Change{3, 19}, Change{3, 33},
        Change{6, 0x20}, Change{7, 1}, Change{9, 6}, Change{25, 7}, Change{25, 11}}) {
    Bytes packet = V4();
    packet[at] = byte;
    EXPECT_FALSE(ParseUdpPacket(packet)) << at;
  }
  for (const auto& [at, byte] : {Change{5, 11}, Change{5, 7}, Change{6, 44}, Change{45, 11}}) {
    Bytes packet = V6();
    packet[at] = byte;
    EXPECT_FALSE(ParseUdpPacket(packet)) << at;
  }
}

}  // namespace
}  // namespace spoke::netagent
