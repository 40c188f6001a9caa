// The one parser of rates that people write: a number with a unit of bits a second, "100Mbit" or
// "1.5Gbit". Pure, thread-safe. Header-only, and free of every library, since the plugin reads
// annotations with it; programs with absl take ParseBitRate() of text.h, which words the errors.
//
// A unit is always there, since tools differ in what a bare number, an "M" or a "B" is: bit, kbit,
// Mbit, Gbit or Tbit, each a thousand times the one before (SI). Letter case counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/units/quantity.h"

namespace spoke::units {

// The lowest rate. At less a full frame of 1500 bytes would take longer than some 12 ms, and a few
// of them in a queue more than the 100 ms that we let traffic wait.
inline constexpr BitRate kLowestRate{1'000'000};
// The highest rate, more than any node or any link of a cluster has: above it is a slip of the pen.
inline constexpr BitRate kHighestRate{1'000'000'000'000};

struct RateUnit {
  std::string_view name;
  std::string_view alias;
  size_t digits;  // The power of ten of the unit.
};
// The units, the largest first.
inline constexpr std::array kRateUnits = {RateUnit{"Tbit", "Tbps", 12}, RateUnit{"Gbit", "Gbps", 9},
                                          RateUnit{"Mbit", "Mbps", 6}, RateUnit{"kbit", "kbps", 3},
                                          RateUnit{"bit", "bps", 0}};

constexpr uint64_t PowerOfTen(size_t digits) {
  uint64_t power = 1;
  for (; digits > 0; --digits) power *= 10;
  return power;
}

enum class RateMistake : uint8_t {
  kNone,
  kNoNumber,
  kNoUnit,
  kUnknownUnit,
  kOutOfBounds,
  kPartsOfABit
};

// Whether "Mbps" is read as "Mbit", as policy does and annotations do not.
enum class RateAliases : uint8_t { kRefused, kTaken };

struct ReadRate {
  RateMistake mistake = RateMistake::kNone;
  BitRate rate;  // The rate, from kLowestRate to kHighestRate when there is no mistake.
};

constexpr ReadRate ReadBitRate(std::string_view text, RateAliases aliases) {
  const bool negative = !text.empty() && text.front() == '-';
  // Not remove_prefix(): GCC 12 for arm64 then fears that the length has wrapped around.
  if (negative) text = text.substr(1);
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const size_t point = std::min(text.find('.'), end);
  std::string_view whole = text.substr(0, point);
  std::string_view fraction = text.substr(std::min(point + 1, end), end - std::min(point + 1, end));
  if (whole.empty() || (point < end && fraction.empty()) || fraction.find('.') != fraction.npos) {
    return {RateMistake::kNoNumber, {}};
  }
  const std::string_view name = text.substr(end);
  if (name.empty()) return {RateMistake::kNoUnit, {}};
  const auto* unit = kRateUnits.begin();
  while (unit != kRateUnits.end() && unit->name != name &&
         (aliases == RateAliases::kRefused || unit->alias != name)) {
    ++unit;
  }
  if (unit == kRateUnits.end()) return {RateMistake::kUnknownUnit, {}};

  if (negative) return {RateMistake::kOutOfBounds, {}};
  const uint64_t most = kHighestRate.count() / PowerOfTen(unit->digits);
  uint64_t rate = 0;
  for (const char c : whole) {
    rate = rate * 10 + static_cast<uint64_t>(c - '0');
    if (rate > most) return {RateMistake::kOutOfBounds, {}};
  }
  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  if (fraction.size() > unit->digits) return {RateMistake::kPartsOfABit, {}};
  for (size_t i = 0; i < unit->digits; ++i) {
    rate = rate * 10 + (i < fraction.size() ? static_cast<uint64_t>(fraction[i] - '0') : 0);
  }
  const BitRate read(rate);
  if (read < kLowestRate || read > kHighestRate) return {RateMistake::kOutOfBounds, {}};
  return {RateMistake::kNone, read};
}

}  // namespace spoke::units
