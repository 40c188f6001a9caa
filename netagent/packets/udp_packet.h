// A UDP datagram (RFC 768) in an IP packet, as a packet socket hands it over. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lib/ip/address.h"

namespace spoke::netagent {

struct UdpPacket {
  ip::Address source;
  uint16_t source_port = 0;
  std::span<const uint8_t> payload;  // The payload, borrowed from the packet.
};

// Reads a packet; `packet` begins with the IP header and may have padding at its end. Returns
// nullopt for anything but one whole datagram in one packet, in IPv6 right behind the header.
// Checksums are not looked at: in a packet of this node they are not there yet.
std::optional<UdpPacket> ParseUdpPacket(std::span<const uint8_t> packet);

}  // namespace spoke::netagent
