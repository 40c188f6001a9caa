// Ethernet frames as the fabric reads and writes them. Pure.
//
// Only what a decision needs is read: who sent the frame, for whom it is, and whether it asks for a
// neighbour. Checksums are not verified: a frame from a veth may still await its checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::fabric {

inline constexpr size_t kEthernetHeaderBytes = 14;

struct ArpMessage {
  bool is_request = false;
  ip::MacAddress sender_mac;
  ip::Address sender;
  ip::Address target;

  bool operator==(const ArpMessage&) const = default;
};

// An ICMPv6 neighbour solicitation (RFC 4861, section 4.3).
struct NeighbourSolicitation {
  ip::Address source;
  ip::Address target;

  bool operator==(const NeighbourSolicitation&) const = default;
};

struct IpPacket {
  ip::Address source;
  ip::Address destination;
  uint8_t hops = 0;  // The TTL or hop limit.
  size_t bytes = 0;  // The length with its header.
  bool may_be_fragmented = true;
  // Whether an ICMP error may answer it: it is none, and no later fragment.
  bool may_be_answered = true;

  bool operator==(const IpPacket&) const = default;
};

// An ethertype the fabric does not carry, or an 802.3 length in its place.
struct OtherPayload {
  uint16_t ethertype = 0;

  bool operator==(const OtherPayload&) const = default;
};

struct Frame {
  ip::MacAddress destination;
  ip::MacAddress source;
  std::variant<ArpMessage, NeighbourSolicitation, IpPacket, OtherPayload> payload;
  size_t tags = 0;  // The number of VLAN tags before the payload; two at most are read.

  bool operator==(const Frame&) const = default;
};

// Returns how many VLAN tags `frame` has, of any length and content; two at most are counted.
size_t CountTags(std::span<const uint8_t> frame);

// Parses a frame. Errors: kInvalidArgument (truncated or malformed; the message says what). Bytes
// behind the end of the IP packet are padding and allowed.
absl::StatusOr<Frame> ParseFrame(std::span<const uint8_t> bytes);

// Returns `bytes` with new addresses in its Ethernet header, tags and all else as they are. `bytes`
// must hold a whole header.
std::vector<uint8_t> Readdress(std::span<const uint8_t> bytes, const ip::MacAddress& destination,
                               const ip::MacAddress& source);

// Takes one from the TTL or hop limit, which must not be zero, of the IP packet in `frame`, which
// must parse and have no tag. The checksum of an IPv4 header is adjusted.
void DecrementHops(std::vector<uint8_t>& frame);

// Returns the answer that `request.target` is at `mac`.
std::vector<uint8_t> BuildArpReply(const ArpMessage& request, const ip::MacAddress& mac);

// Returns the answer to `solicitation`, which came from `asker`, that its target is at `mac`.
std::vector<uint8_t> BuildAdvertisement(const NeighbourSolicitation& solicitation,
                                        const ip::MacAddress& asker, const ip::MacAddress& mac);

}  // namespace spoke::fabric
