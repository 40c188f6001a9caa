#include "netagent/packets/udp_packet.h"

#include <netinet/in.h>

#include <cstddef>

namespace spoke::netagent {
namespace {

constexpr size_t kV4Header = 20;
constexpr size_t kV6Header = 40;
constexpr size_t kUdpHeader = 8;
constexpr unsigned kFragmentBits = 0x3FFF;  // The bit "more fragments", and the offset.

unsigned ShortAt(std::span<const uint8_t> bytes, size_t at) {
  return static_cast<unsigned>(bytes[at]) << 8U | bytes[at + 1];
}

struct Inside {
  std::span<const uint8_t> datagram;
  ip::Address source;
};

std::optional<Inside> InV4(std::span<const uint8_t> packet) {
  if (packet.size() < kV4Header) return std::nullopt;
  const size_t header = size_t{packet[0] & 0x0FU} * 4;
  const size_t total = ShortAt(packet, 2);
  if (header < kV4Header || total < header || total > packet.size()) return std::nullopt;
  if (packet[9] != IPPROTO_UDP || (ShortAt(packet, 6) & kFragmentBits) != 0) return std::nullopt;
  return Inside{packet.subspan(header, total - header),
                ip::Address::FromBytes(packet.subspan(12, 4)).value()};
}

std::optional<Inside> InV6(std::span<const uint8_t> packet) {
  if (packet.size() < kV6Header || packet[6] != IPPROTO_UDP) return std::nullopt;
  const size_t length = ShortAt(packet, 4);
  if (length > packet.size() - kV6Header) return std::nullopt;
  return Inside{packet.subspan(kV6Header, length),
                ip::Address::FromBytes(packet.subspan(8, 16)).value()};
}

}  // namespace

std::optional<UdpPacket> ParseUdpPacket(std::span<const uint8_t> packet) {
  if (packet.empty()) return std::nullopt;
  const unsigned version = packet[0] >> 4U;
  if (version != 4 && version != 6) return std::nullopt;
  const std::optional<Inside> inside = version == 4 ? InV4(packet) : InV6(packet);
  if (!inside || inside->datagram.size() < kUdpHeader) return std::nullopt;
  const size_t length = ShortAt(inside->datagram, 4);
  if (length < kUdpHeader || length > inside->datagram.size()) return std::nullopt;
  return UdpPacket{.source = inside->source,
                   .source_port = static_cast<uint16_t>(ShortAt(inside->datagram, 0)),
                   .payload = inside->datagram.subspan(kUdpHeader, length - kUdpHeader)};
}

}  // namespace spoke::netagent
