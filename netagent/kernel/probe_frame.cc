#include "netagent/kernel/probe_frame.h"

#include <algorithm>
#include <string>

#include "lib/base/check.h"

namespace spoke::netagent {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint16_t kIpv4 = 0x0800;
constexpr uint16_t kArp = 0x0806;
constexpr size_t kMacBytes = 6;
constexpr size_t kEthernetBytes = 14;
constexpr size_t kMinFrameBytes = 60;  // Without the checksum, which the device adds.

constexpr size_t kArpBytes = 28;
constexpr uint16_t kArpHardwareEthernet = 1;
constexpr uint16_t kArpRequest = 1;
constexpr uint16_t kArpReply = 2;

constexpr size_t kIpv4Bytes = 20;  // Without options.
constexpr uint8_t kTimeToLive = 64;
constexpr uint16_t kDontFragment = 0x4000;
constexpr uint16_t kFragmentBits = 0x3FFF;  // More fragments, and the offset.
constexpr uint8_t kIcmp = 1;

constexpr size_t kIcmpBytes = 8;
constexpr uint8_t kEchoReply = 0;
constexpr uint8_t kEchoRequest = 8;
constexpr size_t kNonceBytes = 8;
constexpr size_t kPayloadBytes = 32;  // The nonce first; makes the frame long enough.

constexpr ip::MacAddress kBroadcast{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};

void Append16(std::vector<uint8_t>& out, uint16_t value) {
  out.push_back(static_cast<uint8_t>(value >> 8U));
  out.push_back(static_cast<uint8_t>(value & 0xFFU));
}

void AppendMac(std::vector<uint8_t>& out, const ip::MacAddress& mac) {
  out.insert(out.end(), mac.octets.begin(), mac.octets.end());
}

void AppendAddress(std::vector<uint8_t>& out, const ip::Address& address) {
  CHECK(address.is_v4(), "probes are IPv4");
  const std::string bytes = address.ToBytes();
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void AppendEthernet(std::vector<uint8_t>& out, const ip::MacAddress& to, const ip::MacAddress& from,
                    uint16_t ethertype) {
  AppendMac(out, to);
  AppendMac(out, from);
  Append16(out, ethertype);
}

uint16_t Load16(Bytes bytes, size_t at) {
  return static_cast<uint16_t>((bytes[at] << 8U) | bytes[at + 1]);
}

ip::Address LoadAddress(Bytes bytes, size_t at) {
  return ip::Address::FromBytes(bytes.subspan(at, 4)).value();
}

ip::MacAddress LoadMac(Bytes bytes, size_t at) {
  ip::MacAddress mac;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), kMacBytes, mac.octets.begin());
  return mac;
}

// RFC 1071; over bytes that hold their checksum it is zero.
uint16_t InternetChecksum(Bytes bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += Load16(bytes, i);
  if (bytes.size() % 2 == 1) sum += static_cast<uint32_t>(bytes.back()) << 8U;
  while (sum > 0xFFFF) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<uint16_t>(~sum & 0xFFFFU);
}

void Store16(std::vector<uint8_t>& out, size_t at, uint16_t value) {
  out.at(at) = static_cast<uint8_t>(value >> 8U);
  out.at(at + 1) = static_cast<uint8_t>(value & 0xFFU);
}

void AppendIpv4(std::vector<uint8_t>& out, const EchoRequest& request) {
  const size_t begin = out.size();
  out.push_back(0x45);  // Version 4, five words.
  out.push_back(0);
  Append16(out, static_cast<uint16_t>(kIpv4Bytes + kIcmpBytes + kPayloadBytes));
  Append16(out, request.sequence);
  Append16(out, kDontFragment);
  out.push_back(kTimeToLive);
  out.push_back(kIcmp);
  Append16(out, 0);
  AppendAddress(out, request.from);
  AppendAddress(out, request.to);
  Store16(out, begin + 10, InternetChecksum(Bytes(out).subspan(begin)));
}

}  // namespace

std::vector<uint8_t> BuildEchoRequest(const EchoRequest& request) {
  std::vector<uint8_t> out;
  AppendEthernet(out, request.next_hop_mac, request.nic_mac, kIpv4);
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
  if (frame.size() < kEthernetBytes + kIpv4Bytes || Load16(frame, 2 * kMacBytes) != kIpv4) {
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
                  .from = LoadAddress(packet, 12),
                  .to = LoadAddress(packet, 16),
                  .identifier = Load16(icmp, 4)};
  for (size_t i = 0; i < kNonceBytes; ++i) {
    reply.nonce = (reply.nonce << 8U) | icmp[kIcmpBytes + i];
  }
  return reply;
}

std::vector<uint8_t> BuildArpRequest(const ip::MacAddress& nic_mac, const ip::Address& address,
                                     const ip::Address& target) {
  std::vector<uint8_t> out;
  AppendEthernet(out, kBroadcast, nic_mac, kArp);
  Append16(out, kArpHardwareEthernet);
  Append16(out, kIpv4);
  out.push_back(kMacBytes);
  out.push_back(4);
  Append16(out, kArpRequest);
  AppendMac(out, nic_mac);
  AppendAddress(out, address);
  AppendMac(out, {});
  AppendAddress(out, target);
  out.resize(kMinFrameBytes);
  return out;
}

std::optional<ArpReply> ParseArpReply(Bytes frame) {
  if (frame.size() < kEthernetBytes + kArpBytes || Load16(frame, 2 * kMacBytes) != kArp) {
    return std::nullopt;
  }
  const Bytes arp = frame.subspan(kEthernetBytes);
  if (Load16(arp, 0) != kArpHardwareEthernet || Load16(arp, 2) != kIpv4 || arp[4] != kMacBytes ||
      arp[5] != 4 || Load16(arp, 6) != kArpReply) {
    return std::nullopt;
  }
  return ArpReply{.address = LoadAddress(arp, 14), .mac = LoadMac(arp, 8)};
}

}  // namespace spoke::netagent
