#include "lib/ip/prefix.h"

#include <charconv>
#include <limits>

#include "fmt/core.h"

namespace spoke::ip {
namespace {

// The upper `count` bits of a 64-bit word; `count` is clamped to 0..64.
uint64_t UpperMask(int count) {
  if (count <= 0) return 0;
  if (count >= 64) return ~uint64_t{0};
  return ~uint64_t{0} << (64 - count);
}

Address Mask(const Address& address, int length) {
  if (address.is_v4()) {
    const uint64_t mask = UpperMask(length) >> 32U;
    return Address::V4(static_cast<uint32_t>(address.low() & mask));
  }
  return Address::V6(address.high() & UpperMask(length), address.low() & UpperMask(length - 64));
}

}  // namespace

absl::StatusOr<Prefix> Prefix::Parse(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is not a CIDR block: {}", text, why));
  };
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return bad("write it as address/length");
  const auto address = Address::Parse(text.substr(0, slash));
  if (!address.ok()) return bad("the part before the slash is not an IP address");
  const std::string_view digits = text.substr(slash + 1);
  int length = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty() ||
      length < 0 || length > address->bits()) {
    return bad(fmt::format("the length must be a number from 0 to {}", address->bits()));
  }
  const Address base = Mask(*address, length);
  if (base != *address) {
    return bad(fmt::format("bits are set behind the length; did you mean {}/{}?", base.ToString(),
                           length));
  }
  return Prefix(base, length);
}

absl::StatusOr<Prefix> Prefix::Of(const Address& address, int length) {
  if (length < 0 || length > address.bits()) {
    return absl::InvalidArgumentError(fmt::format("prefix length {} is not between 0 and {} for {}",
                                                  length, address.bits(), address.ToString()));
  }
  return Prefix(Mask(address, length), length);
}

Prefix Prefix::Host(const Address& address) { return {address, address.bits()}; }

bool Prefix::Contains(const Address& address) const {
  return address.family() == family() && Mask(address, length_) == base_;
}

bool Prefix::Contains(const Prefix& other) const {
  return other.length_ >= length_ && Contains(other.base_);
}

uint64_t Prefix::size() const {
  const int host_bits = base_.bits() - length_;
  if (host_bits >= 64) return std::numeric_limits<uint64_t>::max();
  return uint64_t{1} << host_bits;
}

Address Prefix::last() const {
  if (base_.is_v4()) {
    const uint64_t mask = UpperMask(length_) >> 32U;
    return Address::V4(static_cast<uint32_t>(base_.low() | (~mask & 0xFFFFFFFFU)));
  }
  return Address::V6(base_.high() | ~UpperMask(length_), base_.low() | ~UpperMask(length_ - 64));
}

std::string Prefix::ToString() const { return fmt::format("{}/{}", base_.ToString(), length_); }

}  // namespace spoke::ip
