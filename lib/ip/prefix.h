// A block of addresses in CIDR notation (RFC 4632, RFC 4291). Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::ip {

// Always canonical: no bit is set behind the prefix length.
class Prefix {
 public:
  // Makes 0.0.0.0/0.
  constexpr Prefix() = default;

  // Reads "10.1.0.0/16" or "fd00::/64". Errors: kInvalidArgument for anything else, host bits
  // included: 10.1.0.5/16 is more often a slip than intended, and the message says what was likely
  // meant.
  static absl::StatusOr<Prefix> Parse(std::string_view text);

  // Returns the block of `length` bits that holds `address`. Errors: kInvalidArgument (length too
  // large).
  static absl::StatusOr<Prefix> Of(const Address& address, int length);

  // The block that holds `address` alone: /32 or /128.
  static Prefix Host(const Address& address);

  const Address& base() const { return base_; }
  int length() const { return length_; }
  Family family() const { return base_.family(); }

  bool Contains(const Address& address) const;
  bool Contains(const Prefix& other) const;
  bool Overlaps(const Prefix& other) const { return Contains(other) || other.Contains(*this); }

  // Returns how many addresses the block holds; 2^64 - 1 stands for "that many or more".
  uint64_t size() const;
  Address last() const;

  std::string ToString() const;
  auto operator<=>(const Prefix&) const = default;

 private:
  constexpr Prefix(const Address& base, int length) : base_(base), length_(length) {}

  Address base_;
  int length_ = 0;
};

}  // namespace spoke::ip
