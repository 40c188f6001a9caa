// Numbers, addresses and checksums as they stand in frames. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::fabric {

using Bytes = std::span<const uint8_t>;

inline constexpr uint16_t kIpv4 = 0x0800;
inline constexpr uint16_t kArp = 0x0806;
inline constexpr uint16_t kIpv6 = 0x86DD;
inline constexpr uint8_t kIcmpv4 = 1;  // The number as the protocol of an IPv4 packet.
inline constexpr uint8_t kIcmpv6 = 58;

inline uint16_t Load16(Bytes bytes, size_t at) {
  return static_cast<uint16_t>((bytes[at] << 8U) | bytes[at + 1]);
}

inline void Append16(std::vector<uint8_t>& out, uint16_t value) {
  out.push_back(static_cast<uint8_t>(value >> 8U));
  out.push_back(static_cast<uint8_t>(value & 0xFFU));
}

// `out` must hold both bytes.
inline void Store16(std::vector<uint8_t>& out, size_t at, uint16_t value) {
  out[at] = static_cast<uint8_t>(value >> 8U);
  out[at + 1] = static_cast<uint8_t>(value & 0xFFU);
}

inline void AppendMac(std::vector<uint8_t>& out, const ip::MacAddress& mac) {
  out.insert(out.end(), mac.octets.begin(), mac.octets.end());
}

inline void AppendAddress(std::vector<uint8_t>& out, const ip::Address& address) {
  const std::string bytes = address.ToBytes();
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Returns the Internet checksum (RFC 1071) of `covered`, in which the checksum's own field is zero.
uint16_t InternetChecksum(Bytes covered);

// Returns the checksum of RFC 4443, section 2.3, over `message`, whose checksum field is zero.
uint16_t Icmpv6Checksum(const ip::Address& source, const ip::Address& destination, Bytes message);

}  // namespace spoke::fabric
