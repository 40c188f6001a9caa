#include "netagent/packets/neighbour_frame.h"

#include <cstddef>

#include "lib/base/check.h"
#include "netagent/packets/frame_bytes.h"

namespace spoke::netagent {
namespace {

// The bytes of the header without extension headers, which Neighbour Discovery has not.
constexpr size_t kIpv6Bytes = 40;
constexpr uint8_t kIcmpv6 = 58;
// The hop limit; with less, it came through a router (RFC 4861 section 7.1).
constexpr uint8_t kHopLimit = 255;

// The bytes of a solicitation or advertisement, without options.
constexpr size_t kNeighbourBytes = 24;
constexpr uint8_t kSolicitation = 135;
constexpr uint8_t kAdvertisement = 136;
constexpr uint8_t kTargetMac = 2;  // The type of the option with the target's link-layer address.
constexpr size_t kOptionUnit = 8;  // The bytes of the unit in which an option's length is said.

constexpr ip::Address kNoIpv4 = ip::Address::V4(0);
constexpr ip::Address kNoIpv6 = ip::Address::V6(0, 0);

bool IsOneMachine(const ip::MacAddress& mac) {
  return !mac.is_multicast() && mac != ip::MacAddress();
}

bool IsMulticast(const ip::Address& address) {
  return address.is_v4() ? address.low() >> 28U == 0xEU : address.high() >> 56U == 0xFFU;
}

std::optional<NeighbourClaim> ParseArp(Bytes frame) {
  const Bytes arp = frame.subspan(kEthernetBytes);
  const uint16_t operation = Load16(arp, 6);
  if (operation != kArpRequest && operation != kArpReply) return std::nullopt;
  NeighbourClaim claim{
      .address = LoadAddress(arp, 14, 4), .mac = LoadMac(arp, 8), .source = LoadMac(frame, 6)};
  if (claim.address != kNoIpv4) return claim;
  if (operation != kArpRequest) return std::nullopt;
  claim.kind = NeighbourClaim::Kind::kAsks;
  claim.address = LoadAddress(arp, 24, 4);
  return claim;
}

// Returns where the options say that the target is; nullopt: they are damaged, and no MAC: none of
// them says it.
std::optional<ip::MacAddress> TargetMacOf(Bytes options) {
  while (!options.empty()) {
    const size_t length = options.size() < 2 ? 0 : options[1] * kOptionUnit;
    if (length == 0 || length > options.size()) return std::nullopt;
    if (options[0] == kTargetMac) return LoadMac(options, 2);
    options = options.subspan(length);
  }
  return ip::MacAddress();
}

// Returns the sum of what the checksum covers beside the message (RFC 8200 section 8.1).
uint32_t PseudoHeaderSum(Bytes packet, size_t length) {
  uint32_t sum = kIcmpv6 + static_cast<uint32_t>(length);
  for (size_t at = 8; at < kIpv6Bytes; at += 2) sum += Load16(packet, at);
  return sum;
}

std::optional<NeighbourClaim> ParseNeighbourDiscovery(Bytes frame) {
  const Bytes packet = frame.subspan(kEthernetBytes);
  if (packet.size() < kIpv6Bytes + kNeighbourBytes || packet[0] >> 4U != 6 ||
      packet[6] != kIcmpv6 || packet[7] != kHopLimit) {
    return std::nullopt;
  }
  const size_t length = Load16(packet, 4);
  if (length < kNeighbourBytes || length > packet.size() - kIpv6Bytes) return std::nullopt;
  const Bytes message = packet.subspan(kIpv6Bytes, length);
  if (message[1] != 0 || InternetChecksum(message, PseudoHeaderSum(packet, length)) != 0) {
    return std::nullopt;
  }
  const auto target_mac = TargetMacOf(message.subspan(kNeighbourBytes));
  if (!target_mac) return std::nullopt;
  NeighbourClaim claim{.address = LoadAddress(message, 8, 16),
                       .mac = LoadMac(frame, kMacBytes),
                       .source = LoadMac(frame, kMacBytes)};
  if (message[0] == kSolicitation && LoadAddress(packet, 8, 16) == kNoIpv6) {
    claim.kind = NeighbourClaim::Kind::kAsks;
    return claim;
  }
  if (message[0] != kAdvertisement) return std::nullopt;
  if (*target_mac != ip::MacAddress()) claim.mac = *target_mac;
  return claim;
}

std::vector<uint8_t> BuildSolicitation(const ip::MacAddress& nic_mac, const ip::Address& target) {
  // The address is ff02::1:ffXX:XXXX with the target's last 24 bits (RFC 4291 section 2.7.1), and
  // its MAC address (RFC 2464 section 7).
  const uint64_t last = target.low() & 0xFF'FFFFU;
  const ip::Address group = ip::Address::V6(0xFF02ULL << 48U, 0x1'FF00'0000ULL | last);
  const ip::MacAddress group_mac{{0x33, 0x33, 0xFF, static_cast<uint8_t>(last >> 16U),
                                  static_cast<uint8_t>(last >> 8U & 0xFFU),
                                  static_cast<uint8_t>(last & 0xFFU)}};
  std::vector<uint8_t> out;
  AppendEthernet(out, group_mac, nic_mac, kEthertypeIpv6);
  out.insert(out.end(), {0x60, 0, 0, 0});
  Append16(out, kNeighbourBytes);
  out.push_back(kIcmpv6);
  out.push_back(kHopLimit);
  AppendAddress(out, kNoIpv6);
  AppendAddress(out, group);
  const size_t begin = out.size();
  out.insert(out.end(), {kSolicitation, 0, 0, 0, 0, 0, 0, 0});
  AppendAddress(out, target);
  const Bytes packet = Bytes(out).subspan(kEthernetBytes);
  Store16(out, begin + 2,
          InternetChecksum(packet.subspan(kIpv6Bytes), PseudoHeaderSum(packet, kNeighbourBytes)));
  return out;
}

}  // namespace

std::optional<NeighbourClaim> ParseNeighbourClaim(Bytes frame) {
  if (frame.size() < kEthernetBytes) return std::nullopt;
  std::optional<NeighbourClaim> claim;
  if (IsArp(frame)) {
    claim = ParseArp(frame);
  } else if (Load16(frame, 2 * kMacBytes) == kEthertypeIpv6) {
    claim = ParseNeighbourDiscovery(frame);
  }
  if (!claim || !IsOneMachine(claim->mac) || !IsOneMachine(claim->source) ||
      claim->address == kNoIpv4 || claim->address == kNoIpv6 || IsMulticast(claim->address)) {
    return std::nullopt;
  }
  return claim;
}

std::vector<uint8_t> BuildNeighbourQuestion(const ip::MacAddress& nic_mac,
                                            const ip::Address& address) {
  if (!address.is_v4()) return BuildSolicitation(nic_mac, address);
  return BuildArp(kBroadcastMac, {.from = nic_mac, .sender = kNoIpv4, .target = address});
}

std::vector<uint8_t> BuildArpAnswer(const ip::MacAddress& nic_mac, const ip::Address& address,
                                    const ip::MacAddress& asker) {
  CHECK(address.is_v4(), "ARP is for IPv4");
  return BuildArp(asker, {.operation = kArpReply,
                          .from = nic_mac,
                          .sender = address,
                          .target_mac = asker,
                          .target = kNoIpv4});
}

}  // namespace spoke::netagent
