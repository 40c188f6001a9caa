// Rates as operators write them: a number with a unit of bits a second, "100Mbit" or "1.5Gbit".
// Pure, thread-safe.
//
// A unit is always there, since tools differ in what a bare number, an "M" or a "B" is: bit, kbit,
// Mbit, Gbit or Tbit, each a thousand times the one before (SI), with "bps" for "bit" if one likes
// ("100Mbps"). Letter case counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::ipam {

// At less a full frame of 1500 bytes would take longer than some 12 ms, and a few of them in a
// queue more than the 100 ms that we let traffic wait.
inline constexpr uint64_t kLowestRate = 1'000'000;
// More than any node or any link of a cluster has: a slip of the pen.
inline constexpr uint64_t kHighestRate = 1'000'000'000'000;

// Bits a second, from kLowestRate to kHighestRate. Errors: kInvalidArgument (no number, no unit or
// an unknown one, parts of a bit, out of these bounds, however far), with what to write.
absl::StatusOr<uint64_t> ParseRate(std::string_view text);

// In the largest unit in which it is a whole number: "1500Mbit", "2Gbit". Any rate; ParseRate()
// reads it back when it is within the bounds.
std::string RateText(uint64_t bits_per_second);

}  // namespace spoke::ipam
