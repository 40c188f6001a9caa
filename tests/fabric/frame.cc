#include "tests/fabric/frame.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::fabric {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint16_t kIpv4 = 0x0800;
constexpr uint16_t kArp = 0x0806;
constexpr uint16_t kIpv6 = 0x86DD;

constexpr size_t kArpBytes = 28;  // For Ethernet and IPv4 (RFC 826).
constexpr uint16_t kArpRequest = 1;
constexpr uint16_t kArpReply = 2;

constexpr size_t kIpv4HeaderBytes = 20;  // Without options.
constexpr size_t kIpv6HeaderBytes = 40;
constexpr uint8_t kIcmpv6 = 58;
constexpr uint8_t kSolicitation = 135;
constexpr uint8_t kAdvertisement = 136;
constexpr size_t kSolicitationBytes = 24;   // Without options.
constexpr size_t kAdvertisementBytes = 32;  // With the target link-layer address option.

uint16_t Load16(Bytes bytes, size_t at) {
  return static_cast<uint16_t>((bytes[at] << 8U) | bytes[at + 1]);
}

ip::Address LoadAddress(Bytes bytes, size_t at, size_t length) {
  return ip::Address::FromBytes(bytes.subspan(at, length)).value();
}

ip::MacAddress LoadMac(Bytes bytes, size_t at) {
  ip::MacAddress mac;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), mac.octets.size(),
              mac.octets.begin());
  return mac;
}

void Append16(std::vector<uint8_t>& out, uint16_t value) {
  out.push_back(static_cast<uint8_t>(value >> 8U));
  out.push_back(static_cast<uint8_t>(value & 0xFFU));
}

void AppendMac(std::vector<uint8_t>& out, const ip::MacAddress& mac) {
  out.insert(out.end(), mac.octets.begin(), mac.octets.end());
}

void AppendAddress(std::vector<uint8_t>& out, const ip::Address& address) {
  const std::string bytes = address.ToBytes();
  out.insert(out.end(), bytes.begin(), bytes.end());
}

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("malformed frame: {}", what));
}

absl::StatusOr<ArpMessage> ParseArp(Bytes body) {
  if (body.size() < kArpBytes) return Malformed("ARP message cut short");
  // Hardware type Ethernet, protocol type IPv4, address lengths 6 and 4.
  if (Load16(body, 0) != 1 || Load16(body, 2) != kIpv4 || body[4] != 6 || body[5] != 4) {
    return Malformed("ARP for something else than IPv4 on Ethernet");
  }
  const uint16_t operation = Load16(body, 6);
  if (operation != kArpRequest && operation != kArpReply) return Malformed("ARP operation");
  return ArpMessage{operation == kArpRequest, LoadMac(body, 8), LoadAddress(body, 14, 4),
                    LoadAddress(body, 24, 4)};
}

absl::StatusOr<IpPacket> ParseIpv4(Bytes body) {
  if (body.size() < kIpv4HeaderBytes) return Malformed("IPv4 header cut short");
  const size_t header_bytes = (body[0] & 0x0FU) * size_t{4};
  if (body[0] >> 4U != 4 || header_bytes < kIpv4HeaderBytes) return Malformed("IPv4 header");
  const size_t total_bytes = Load16(body, 2);
  if (total_bytes < header_bytes || total_bytes > body.size()) return Malformed("IPv4 length");
  return IpPacket{LoadAddress(body, 12, 4), LoadAddress(body, 16, 4)};
}

absl::StatusOr<IpPacket> ParseIpv6(Bytes body) {
  if (body.size() < kIpv6HeaderBytes) return Malformed("IPv6 header cut short");
  if (body[0] >> 4U != 6) return Malformed("IPv6 version");
  if (kIpv6HeaderBytes + Load16(body, 4) > body.size()) return Malformed("IPv6 length");
  return IpPacket{LoadAddress(body, 8, 16), LoadAddress(body, 24, 16)};
}

// Nothing when `body`, an IPv6 packet that ParseIpv6() accepted, is no neighbour solicitation.
absl::StatusOr<std::optional<NeighbourSolicitation>> ParseSolicitation(Bytes body) {
  const Bytes message = body.subspan(kIpv6HeaderBytes, Load16(body, 4));
  if (body[6] != kIcmpv6 || message.empty() || message[0] != kSolicitation) return std::nullopt;
  // A hop limit below 255 proves that the sender is not on this link (RFC 4861, section 7.1.1).
  if (message.size() < kSolicitationBytes || message[1] != 0 || body[7] != 255) {
    return Malformed("neighbour solicitation");
  }
  return NeighbourSolicitation{LoadAddress(body, 8, 16), LoadAddress(message, 8, 16)};
}

// The checksum of RFC 4443, section 2.3, over `message`, whose checksum field is zero.
uint16_t Icmpv6Checksum(const ip::Address& source, const ip::Address& destination, Bytes message) {
  std::vector<uint8_t> covered;
  AppendAddress(covered, source);
  AppendAddress(covered, destination);
  Append16(covered, 0);
  Append16(covered, static_cast<uint16_t>(message.size()));
  Append16(covered, 0);
  Append16(covered, kIcmpv6);
  covered.insert(covered.end(), message.begin(), message.end());
  uint32_t sum = 0;
  for (size_t at = 0; at + 1 < covered.size(); at += 2) sum += Load16(covered, at);
  while (sum > 0xFFFFU) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<uint16_t>(~sum & 0xFFFFU);
}

}  // namespace

absl::StatusOr<Frame> ParseFrame(Bytes bytes) {
  if (bytes.size() < kEthernetHeaderBytes) return Malformed("Ethernet header cut short");
  Frame frame{LoadMac(bytes, 0), LoadMac(bytes, 6), OtherPayload{Load16(bytes, 12)}};
  const Bytes body = bytes.subspan(kEthernetHeaderBytes);
  switch (Load16(bytes, 12)) {
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

std::vector<uint8_t> BuildArpReply(const ArpMessage& request, const ip::MacAddress& mac) {
  std::vector<uint8_t> out;
  AppendMac(out, request.sender_mac);
  AppendMac(out, mac);
  Append16(out, kArp);
  Append16(out, 1);  // Ethernet.
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
  message.insert(message.end(), {0xE0, 0, 0, 0});  // From a router, solicited, overriding.
  AppendAddress(message, solicitation.target);
  message.insert(message.end(), {2, 1});  // Target link-layer address, one unit of 8 bytes.
  AppendMac(message, mac);
  CHECK(message.size() == kAdvertisementBytes, "the length written below is right");
  const uint16_t checksum =
      Icmpv6Checksum(solicitation.target, solicitation.source, Bytes(message));
  message[2] = static_cast<uint8_t>(checksum >> 8U);
  message[3] = static_cast<uint8_t>(checksum & 0xFFU);

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
