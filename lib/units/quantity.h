// Rates and sizes as types, so that bits are never taken for bytes, nor a rate for a size. Pure.
// Header-only, and free of every library, since the plugin uses it as well.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace spoke::units {

// A number of `Unit`, a whole one unless said otherwise. Another unit does not convert to it, and
// neither does a bare number. Sums wrap around as those of uint64_t do.
template <typename Unit, typename Number = uint64_t>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Number count) : count_(count) {}

  // The number that wires, stored formats and the kernel have.
  constexpr Number count() const { return count_; }
  constexpr bool is_zero() const { return count_ == 0; }

  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  // A multiple and a part (of a whole number: rounded down) are of the same unit. How often `b` is
  // in `a` is a bare number.
  friend constexpr Quantity operator*(Number times, Quantity a) {
    return Quantity(times * a.count_);
  }
  friend constexpr Quantity operator/(Quantity a, Number parts) {
    return Quantity(a.count_ / parts);
  }
  friend constexpr Number operator/(Quantity a, Quantity b) { return a.count_ / b.count_; }
  auto operator<=>(const Quantity&) const = default;

 private:
  Number count_ = 0;
};

using BitRate = Quantity<struct BitsPerSecond>;
// Rates while they are being shared out, before they are rounded.
using FractionalBitRate = Quantity<struct BitsPerSecond, double>;
using BitCount = Quantity<struct Bits>;
using ByteRate = Quantity<struct BytesPerSecond>;
using ByteCount = Quantity<struct Bytes>;

inline constexpr uint64_t kBitsAByte = 8;

// Converts between bits and bytes. Parts of a byte are dropped; more bits than there are numbers
// become the greatest number.
constexpr ByteRate ToBytes(BitRate rate) { return ByteRate(rate.count() / kBitsAByte); }
constexpr ByteCount ToBytes(BitCount size) { return ByteCount(size.count() / kBitsAByte); }
constexpr BitRate ToBits(ByteRate rate) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  return BitRate(rate.count() > kMost / kBitsAByte ? kMost : rate.count() * kBitsAByte);
}

}  // namespace spoke::units
