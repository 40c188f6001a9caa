// The way in which the kernel counts the time that bytes take at a rate, in queues that keep their
// bursts so. Pure.
#pragma once

#include <cstdint>
#include <limits>

namespace spoke::netlink {

inline constexpr uint64_t kTickNanoseconds = 64;  // PSCHED_SHIFT in the kernel's net/pkt_sched.h.
inline constexpr uint32_t kMaxTicks = std::numeric_limits<uint32_t>::max();

// Returns the ticks, rounded; kMaxTicks stands for more. Rates are in bytes a second, and not 0.
inline uint32_t TicksOf(uint64_t bytes, uint64_t rate) {
  const double ticks =
      static_cast<double>(bytes) * 1e9 / static_cast<double>(rate) / double{kTickNanoseconds} + 0.5;
  return ticks >= double{kMaxTicks} ? kMaxTicks : static_cast<uint32_t>(ticks);
}

// Returns the bytes, rounded; the largest number of 32 bits stands for more.
inline uint32_t BytesOf(uint32_t ticks, uint64_t rate) {
  const double bytes =
      static_cast<double>(ticks) * double{kTickNanoseconds} * static_cast<double>(rate) / 1e9 + 0.5;
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  return bytes >= double{kMax} ? kMax : static_cast<uint32_t>(bytes);
}

}  // namespace spoke::netlink
