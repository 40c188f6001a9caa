// The bytes of Ethernet frames, and what ARP and the Internet protocols have in common there. Pure.
//
// Loads want as many bytes as they read: the caller has looked at the length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::netagent {

using Bytes = std::span<const uint8_t>;

// The Ethertypes.
inline constexpr uint16_t kEthertypeIpv4 = 0x0800;
inline constexpr uint16_t kEthertypeArp = 0x0806;
inline constexpr uint16_t kEthertypeIpv6 = 0x86DD;

inline constexpr size_t kMacBytes = 6;
inline constexpr size_t kEthernetBytes = 14;  // The bytes of an untagged header.
// The least frame without the checksum, which the device adds.
inline constexpr size_t kMinFrameBytes = 60;
inline constexpr ip::MacAddress kBroadcastMac{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};

// The bytes of ARP for IPv4 on Ethernet (RFC 826).
inline constexpr size_t kArpBytes = 28;
inline constexpr uint16_t kArpHardwareEthernet = 1;
inline constexpr uint16_t kArpRequest = 1;
inline constexpr uint16_t kArpReply = 2;

inline void Append16(std::vector<uint8_t>& out, uint16_t value) {
  out.push_back(static_cast<uint8_t>(value >> 8U));
  out.push_back(static_cast<uint8_t>(value & 0xFFU));
}

inline void AppendMac(std::vector<uint8_t>& out, const ip::MacAddress& mac) {
  out.insert(out.end(), mac.octets.begin(), mac.octets.end());
}

// Appends 4 or 16 bytes.
inline void AppendAddress(std::vector<uint8_t>& out, const ip::Address& address) {
  const std::string bytes = address.ToBytes();
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline void AppendEthernet(std::vector<uint8_t>& out, const ip::MacAddress& to,
                           const ip::MacAddress& from, uint16_t ethertype) {
  AppendMac(out, to);
  AppendMac(out, from);
  Append16(out, ethertype);
}

inline uint16_t Load16(Bytes bytes, size_t at) {
  return static_cast<uint16_t>((bytes[at] << 8U) | bytes[at + 1]);
}

// Loads an address; `length` is 4 or 16.
inline ip::Address LoadAddress(Bytes bytes, size_t at, size_t length) {
  return ip::Address::FromBytes(bytes.subspan(at, length)).value();
}

inline ip::MacAddress LoadMac(Bytes bytes, size_t at) {
  ip::MacAddress mac;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), kMacBytes, mac.octets.begin());
  return mac;
}

inline void Store16(std::vector<uint8_t>& out, size_t at, uint16_t value) {
  out.at(at) = static_cast<uint8_t>(value >> 8U);
  out.at(at + 1) = static_cast<uint8_t>(value & 0xFFU);
}

// Returns the checksum of RFC 1071 over `bytes` after what `sum` stands for; over bytes that hold
// their checksum it is zero.
inline uint16_t InternetChecksum(Bytes bytes, uint32_t sum = 0) {
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += Load16(bytes, i);
  if (bytes.size() % 2 == 1) sum += static_cast<uint32_t>(bytes.back()) << 8U;
  while (sum > 0xFFFF) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<uint16_t>(~sum & 0xFFFFU);
}

// An ARP request or reply, padded to a whole frame, from the machine at `from`.
struct ArpMessage {
  uint16_t operation = kArpRequest;
  ip::MacAddress from;
  ip::Address sender;           // The one who says so; 0.0.0.0: a probe.
  ip::MacAddress target_mac{};  // The target's MAC; zero in a request.
  ip::Address target;
};
inline std::vector<uint8_t> BuildArp(const ip::MacAddress& to, const ArpMessage& message) {
  std::vector<uint8_t> out;
  AppendEthernet(out, to, message.from, kEthertypeArp);
  Append16(out, kArpHardwareEthernet);
  Append16(out, kEthertypeIpv4);
  out.push_back(kMacBytes);
  out.push_back(4);
  Append16(out, message.operation);
  AppendMac(out, message.from);
  AppendAddress(out, message.sender);
  AppendMac(out, message.target_mac);
  AppendAddress(out, message.target);
  out.resize(kMinFrameBytes);
  return out;
}

// Returns whether `frame` is a whole ARP message for IPv4 on Ethernet, which begins at
// kEthernetBytes.
inline bool IsArp(Bytes frame) {
  if (frame.size() < kEthernetBytes + kArpBytes || Load16(frame, 2 * kMacBytes) != kEthertypeArp) {
    return false;
  }
  const Bytes arp = frame.subspan(kEthernetBytes);
  return Load16(arp, 0) == kArpHardwareEthernet && Load16(arp, 2) == kEthertypeIpv4 &&
         arp[4] == kMacBytes && arp[5] == 4;
}

}  // namespace spoke::netagent
