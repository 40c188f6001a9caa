// Rates and sizes as types, so that bits are never taken for bytes, nor a rate for a size. Pure.
// Header-only, and free of every library, since the plugin uses it as well.
#pragma once

#include <compare>
#include <cstdint>

namespace spoke::units {

// A whole number of `Unit`. Another unit does not convert to it, and neither does a bare number.
// Sums wrap around as those of uint64_t do.
template <typename Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(uint64_t count) : count_(count) {}

  // The number that wires, stored formats and the kernel have.
  constexpr uint64_t count() const { return count_; }
  constexpr bool is_zero() const { return count_ == 0; }

  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.count_ - b.count_);
  }
  auto operator<=>(const Quantity&) const = default;

 private:
  uint64_t count_ = 0;
};

using BitRate = Quantity<struct BitsPerSecond>;
using ByteRate = Quantity<struct BytesPerSecond>;
using ByteCount = Quantity<struct Bytes>;

}  // namespace spoke::units
