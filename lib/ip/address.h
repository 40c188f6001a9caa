// IP and MAC addresses as values. Pure.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::ip {

enum class Family : uint8_t { kV4, kV6 };

// One IPv4 or IPv6 address. Ordered by family, then numerically.
class Address {
 public:
  // Makes 0.0.0.0.
  constexpr Address() = default;

  // Reads the textual form as inet_pton(3) takes it: dotted quad or RFC 4291 section 2.2; no zone,
  // no prefix length. Errors: kInvalidArgument, with the text.
  static absl::StatusOr<Address> Parse(std::string_view text);

  // Reads 4 or 16 bytes in network order. Errors: kInvalidArgument (any other length).
  static absl::StatusOr<Address> FromBytes(std::span<const uint8_t> bytes);
  static absl::StatusOr<Address> FromBytes(std::string_view bytes);

  // Makes an address of a number in host order: V4(0x0A000001) is 10.0.0.1.
  static constexpr Address V4(uint32_t host_order) {
    Address address;
    address.low_ = host_order;
    return address;
  }
  static constexpr Address V6(uint64_t high, uint64_t low) {
    Address address;
    address.family_ = Family::kV6;
    address.high_ = high;
    address.low_ = low;
    return address;
  }

  constexpr Family family() const { return family_; }
  constexpr bool is_v4() const { return family_ == Family::kV4; }
  // Returns 32 or 128.
  constexpr int bits() const { return is_v4() ? 32 : 128; }
  constexpr uint64_t high() const { return high_; }
  constexpr uint64_t low() const { return low_; }

  // Returns 4 or 16 bytes in network order, as kernel and wire want them.
  std::string ToBytes() const;
  // Returns the canonical text (RFC 5952 for IPv6).
  std::string ToString() const;

  auto operator<=>(const Address&) const = default;

 private:
  Family family_ = Family::kV4;
  uint64_t high_ = 0;  // The upper half; zero for IPv4.
  uint64_t low_ = 0;
};

// The address `steps` after `base`; wraps inside its family.
Address Advance(const Address& base, uint64_t steps);

// Returns how far `address` lies after `base`, both of one family and less than 2^64 apart.
uint64_t Distance(const Address& base, const Address& address);

// A 48-bit Ethernet address.
struct MacAddress {
  std::array<uint8_t, 6> octets{};

  // Reads "aa:bb:cc:dd:ee:ff", either case. Errors: kInvalidArgument, with the text.
  static absl::StatusOr<MacAddress> Parse(std::string_view text);
  std::string ToString() const;
  bool is_multicast() const { return (octets[0] & 1U) != 0; }

  auto operator<=>(const MacAddress&) const = default;
};

struct AddressHash {
  size_t operator()(const Address& address) const noexcept {
    const uint64_t mixed = (address.high() * 0x9E3779B97F4A7C15ULL) ^ address.low();
    return static_cast<size_t>((mixed ^ (mixed >> 29U)) * 0xBF58476D1CE4E5B9ULL);
  }
};

}  // namespace spoke::ip
