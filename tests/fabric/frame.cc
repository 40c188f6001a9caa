#include "tests/fabric/frame.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/fabric/wire_bytes.h"

namespace spoke::fabric {
namespace {

constexpr uint16_t kTag = 0x8100;         // IEEE 802.1Q.
constexpr uint16_t kServiceTag = 0x88A8;  // IEEE 802.1ad.
constexpr size_t kTagBytes = 4;
constexpr size_t kMaxTags = 2;

constexpr size_t kArpBytes = 28;  // The size for Ethernet and IPv4 (RFC 826).
constexpr uint16_t kArpRequest = 1;
constexpr uint16_t kArpReply = 2;

constexpr size_t kIpv4HeaderBytes = 20;  // The size without options.
constexpr size_t kIpv6HeaderBytes = 40;
constexpr uint8_t kFragmentHeader = 44;  // The number of IPv6.
constexpr uint16_t kDontFragment = 0x4000;
constexpr uint16_t kFragmentOffset = 0x1FFF;
constexpr uint8_t kSolicitation = 135;
constexpr uint8_t kAdvertisement = 136;
constexpr uint8_t kRedirect = 137;
constexpr size_t kSolicitationBytes = 24;   // The size without options.
constexpr size_t kAdvertisementBytes = 32;  // The size with the target link-layer address option.

ip::Address LoadAddress(Bytes bytes, size_t at, size_t length) {
  return ip::Address::FromBytes(bytes.subspan(at, length)).value();
}

ip::MacAddress LoadMac(Bytes bytes, size_t at) {
  ip::MacAddress mac;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), mac.octets.size(),
              mac.octets.begin());
  return mac;
}

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("malformed frame: {}", what));
}

absl::StatusOr<ArpMessage> ParseArp(Bytes body) {
  if (body.size() < kArpBytes) return Malformed("ARP message cut short");
  // The hardware type is Ethernet, the protocol type IPv4, the address lengths are 6 and 4.
  if (Load16(body, 0) != 1 || Load16(body, 2) != kIpv4 || body[4] != 6 || body[5] != 4) {
    return Malformed("ARP for something else than IPv4 on Ethernet");
  }
  const uint16_t operation = Load16(body, 6);
  if (operation != kArpRequest && operation != kArpReply) return Malformed("ARP operation");
  return ArpMessage{operation == kArpRequest, LoadMac(body, 8), LoadAddress(body, 14, 4),
                    LoadAddress(body, 24, 4)};
}

// A fragment or a message that is cut short counts as an error: nothing is to be answered.
bool IsIcmpv4Error(uint8_t protocol, Bytes payload) {
  if (protocol != kIcmpv4) return false;
  if (payload.empty()) return true;
  constexpr std::array<uint8_t, 5> kErrors{3, 4, 5, 11, 12};  // RFC 1122, section 3.2.2.
  return std::find(kErrors.begin(), kErrors.end(), payload[0]) != kErrors.end();
}

// Errors are below 128; a redirect is no question either (RFC 4443, section 2.4).
bool IsIcmpv6Error(uint8_t next_header, Bytes payload) {
  if (next_header != kIcmpv6) return false;
  return payload.empty() || payload[0] < 128 || payload[0] == kRedirect;
}

bool IsLaterFragment(uint8_t next_header, Bytes payload) {
  return next_header == kFragmentHeader && (payload.size() < 4 || Load16(payload, 2) >> 3U != 0);
}

absl::StatusOr<IpPacket> ParseIpv4(Bytes body) {
  if (body.size() < kIpv4HeaderBytes) return Malformed("IPv4 header cut short");
  const size_t header_bytes = (body[0] & 0x0FU) * size_t{4};
  if (body[0] >> 4U != 4 || header_bytes < kIpv4HeaderBytes) return Malformed("IPv4 header");
  const size_t total_bytes = Load16(body, 2);
  if (total_bytes < header_bytes || total_bytes > body.size()) return Malformed("IPv4 length");
  const uint16_t fragment = Load16(body, 6);
  IpPacket packet{LoadAddress(body, 12, 4), LoadAddress(body, 16, 4), body[8], total_bytes};
  packet.may_be_fragmented = (fragment & kDontFragment) == 0;
  packet.may_be_answered =
      (fragment & kFragmentOffset) == 0 && !IsIcmpv4Error(body[9], body.subspan(header_bytes));
  return packet;
}

absl::StatusOr<IpPacket> ParseIpv6(Bytes body) {
  if (body.size() < kIpv6HeaderBytes) return Malformed("IPv6 header cut short");
  if (body[0] >> 4U != 6) return Malformed("IPv6 version");
  if (kIpv6HeaderBytes + Load16(body, 4) > body.size()) return Malformed("IPv6 length");
  const Bytes payload = body.subspan(kIpv6HeaderBytes, Load16(body, 4));
  IpPacket packet{LoadAddress(body, 8, 16), LoadAddress(body, 24, 16), body[7],
                  kIpv6HeaderBytes + payload.size()};
  packet.may_be_fragmented = false;
  packet.may_be_answered = !IsIcmpv6Error(body[6], payload) && !IsLaterFragment(body[6], payload);
  return packet;
}

// Returns nullopt when `body`, an IPv6 packet that ParseIpv6() accepted, is no neighbour
// solicitation.
absl::StatusOr<std::optional<NeighbourSolicitation>> ParseSolicitation(Bytes body) {
  const Bytes message = body.subspan(kIpv6HeaderBytes, Load16(body, 4));
  if (body[6] != kIcmpv6 || message.empty() || message[0] != kSolicitation) return std::nullopt;
  // A hop limit below 255 proves that the sender is not on this link (RFC 4861, section 7.1.1).
  if (message.size() < kSolicitationBytes || message[1] != 0 || body[7] != 255) {
    return Malformed("neighbour solicitation");
  }
  return NeighbourSolicitation{LoadAddress(body, 8, 16), LoadAddress(message, 8, 16)};
}

}  // namespace

size_t CountTags(Bytes frame) {
  size_t tags = 0;
  for (size_t at = kEthernetHeaderBytes - 2; tags < kMaxTags && at + 2 <= frame.size();
       at += kTagBytes) {
    const uint16_t ethertype = Load16(frame, at);
    if (ethertype != kTag && ethertype != kServiceTag) break;
    ++tags;
  }
  return tags;
}

absl::StatusOr<Frame> ParseFrame(Bytes bytes) {
  const size_t tags = CountTags(bytes);
  const size_t header_bytes = kEthernetHeaderBytes + tags * kTagBytes;
  if (bytes.size() < header_bytes) return Malformed("Ethernet header cut short");
  const uint16_t ethertype = Load16(bytes, header_bytes - 2);
  Frame frame{LoadMac(bytes, 0), LoadMac(bytes, 6), OtherPayload{ethertype}, tags};
  const Bytes body = bytes.subspan(header_bytes);
  switch (ethertype) {
    case kArp: {
      ASSIGN_OR_RETURN(frame.payload, ParseArp(body));
      return frame;
    }
    case kIpv4: {
      ASSIGN_OR_RETURN(frame.payload, ParseIpv4(body));
      return frame;
    }
    case kIpv6: {
      ASSIGN_OR_RETURN(frame.payload, ParseIpv6(body));
      ASSIGN_OR_RETURN(const auto solicitation, ParseSolicitation(body));
      if (solicitation.has_value()) frame.payload = *solicitation;
      return frame;
    }
    default:
      return frame;
  }
}

std::vector<uint8_t> Readdress(Bytes bytes, const ip::MacAddress& destination,
                               const ip::MacAddress& source) {
  CHECK(bytes.size() >= kEthernetHeaderBytes, "only a parsed frame is readdressed");
  std::vector<uint8_t> out(bytes.begin(), bytes.end());
  std::copy(destination.octets.begin(), destination.octets.end(), out.begin());
  std::copy(source.octets.begin(), source.octets.end(), out.begin() + 6);
  return out;
}

void DecrementHops(std::vector<uint8_t>& frame) {
  constexpr size_t kHopLimitAt = kEthernetHeaderBytes + 7;
  constexpr size_t kTtlAt = kEthernetHeaderBytes + 8;
  constexpr size_t kChecksumAt = kEthernetHeaderBytes + 10;
  if (Load16(frame, kEthernetHeaderBytes - 2) == kIpv6) {
    --frame[kHopLimitAt];
    return;
  }
  --frame[kTtlAt];
  // RFC 1624: one less in the high byte of a word is 0x100 more in the sum's complement. A checksum
  // that was wrong stays so.
  const uint32_t sum = Load16(frame, kChecksumAt) + 0x100U;
  Store16(frame, kChecksumAt, static_cast<uint16_t>((sum & 0xFFFFU) + (sum >> 16U)));
}

std::vector<uint8_t> BuildArpReply(const ArpMessage& request, const ip::MacAddress& mac) {
  std::vector<uint8_t> out;
  AppendMac(out, request.sender_mac);
  AppendMac(out, mac);
  Append16(out, kArp);
  Append16(out, 1);  // The hardware type is Ethernet.
  Append16(out, kIpv4);
  out.push_back(6);
  out.push_back(4);
  Append16(out, kArpReply);
  AppendMac(out, mac);
  AppendAddress(out, request.target);
  AppendMac(out, request.sender_mac);
  AppendAddress(out, request.sender);
  return out;
}

std::vector<uint8_t> BuildAdvertisement(const NeighbourSolicitation& solicitation,
                                        const ip::MacAddress& asker, const ip::MacAddress& mac) {
  std::vector<uint8_t> message{kAdvertisement, 0, 0, 0};
  // The flags say: from a router, solicited, overriding.
  message.insert(message.end(), {0xE0, 0, 0, 0});
  AppendAddress(message, solicitation.target);
  // The option is a target link-layer address, one unit of 8 bytes.
  message.insert(message.end(), {2, 1});
  AppendMac(message, mac);
  CHECK(message.size() == kAdvertisementBytes, "the length written below is right");
  const uint16_t checksum =
      Icmpv6Checksum(solicitation.target, solicitation.source, Bytes(message));
  Store16(message, 2, checksum);

  std::vector<uint8_t> out;
  AppendMac(out, asker);
  AppendMac(out, mac);
  Append16(out, kIpv6);
  out.insert(out.end(), {0x60, 0, 0, 0});
  Append16(out, kAdvertisementBytes);
  out.insert(out.end(), {kIcmpv6, 255});
  AppendAddress(out, solicitation.target);
  AppendAddress(out, solicitation.source);
  out.insert(out.end(), message.begin(), message.end());
  return out;
}

}  // namespace spoke::fabric
