#include "netagent/packets/probe_frame.h"

#include "lib/base/check.h"
#include "netagent/packets/frame_bytes.h"

namespace spoke::netagent {
namespace {

constexpr size_t kIpv4Bytes = 20;  // The header without options.
constexpr uint8_t kTimeToLive = 64;
constexpr uint16_t kDontFragment = 0x4000;
constexpr uint16_t kFragmentBits = 0x3FFF;  // The bit "more fragments", and the offset.
constexpr uint8_t kIcmp = 1;

constexpr size_t kIcmpBytes = 8;
constexpr uint8_t kEchoReply = 0;
constexpr uint8_t kEchoRequest = 8;
constexpr size_t kNonceBytes = 8;
// The nonce comes first; the rest makes the frame long enough.
constexpr size_t kPayloadBytes = 32;

void AppendIpv4(std::vector<uint8_t>& out, const EchoRequest& request) {
  const size_t begin = out.size();
  out.push_back(0x45);  // These are version 4 and five words.
  out.push_back(0);
  Append16(out, static_cast<uint16_t>(kIpv4Bytes + kIcmpBytes + kPayloadBytes));
  Append16(out, request.sequence);
  Append16(out, kDontFragment);
  out.push_back(kTimeToLive);
  out.push_back(kIcmp);
  Append16(out, 0);
  CHECK(request.from.is_v4() && request.to.is_v4(), "probes are IPv4");
  AppendAddress(out, request.from);
  AppendAddress(out, request.to);
  Store16(out, begin + 10, InternetChecksum(Bytes(out).subspan(begin)));
}

}  // namespace

std::vector<uint8_t> BuildEchoRequest(const EchoRequest& request) {
  std::vector<uint8_t> out;
  AppendEthernet(out, request.next_hop_mac, request.nic_mac, kEthertypeIpv4);
  AppendIpv4(out, request);
  const size_t begin = out.size();
  out.push_back(kEchoRequest);
  out.push_back(0);
  Append16(out, 0);
  Append16(out, request.identifier);
  Append16(out, request.sequence);
  for (size_t i = 0; i < kNonceBytes; ++i) {
    out.push_back(static_cast<uint8_t>(request.nonce >> (8 * (kNonceBytes - 1 - i))));
  }
  out.resize(begin + kIcmpBytes + kPayloadBytes);
  Store16(out, begin + 2, InternetChecksum(Bytes(out).subspan(begin)));
  return out;
}

std::optional<EchoReply> ParseEchoReply(Bytes frame) {
  if (frame.size() < kEthernetBytes + kIpv4Bytes ||
      Load16(frame, 2 * kMacBytes) != kEthertypeIpv4) {
    return std::nullopt;
  }
  const Bytes packet = frame.subspan(kEthernetBytes);
  const size_t header = static_cast<size_t>(packet[0] & 0xFU) * 4;
  const size_t total = Load16(packet, 2);
  if (packet[0] >> 4U != 4 || header < kIpv4Bytes || total > packet.size() ||
      total < header + kIcmpBytes + kNonceBytes || packet[9] != kIcmp ||
      (Load16(packet, 6) & kFragmentBits) != 0 || InternetChecksum(packet.first(header)) != 0) {
    return std::nullopt;
  }
  const Bytes icmp = packet.subspan(header, total - header);
  if (icmp[0] != kEchoReply || icmp[1] != 0 || InternetChecksum(icmp) != 0) return std::nullopt;
  EchoReply reply{.nic_mac = LoadMac(frame, 0),
                  .from = LoadAddress(packet, 12, 4),
                  .to = LoadAddress(packet, 16, 4),
                  .identifier = Load16(icmp, 4)};
  for (size_t i = 0; i < kNonceBytes; ++i) {
    reply.nonce = (reply.nonce << 8U) | icmp[kIcmpBytes + i];
  }
  return reply;
}

std::vector<uint8_t> BuildArpRequest(const ip::MacAddress& nic_mac, const ip::Address& address,
                                     const ip::Address& target) {
  CHECK(address.is_v4() && target.is_v4(), "ARP is for IPv4");
  return BuildArp(kBroadcastMac, {.from = nic_mac, .sender = address, .target = target});
}

std::optional<ArpReply> ParseArpReply(Bytes frame) {
  if (!IsArp(frame)) return std::nullopt;
  const Bytes arp = frame.subspan(kEthernetBytes);
  if (Load16(arp, 6) != kArpReply) return std::nullopt;
  return ArpReply{.address = LoadAddress(arp, 14, 4), .mac = LoadMac(arp, 8)};
}

}  // namespace spoke::netagent
