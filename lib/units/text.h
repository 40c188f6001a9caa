// Rates and sizes as text: what config and policy have, and what people are shown. Pure,
// thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/units/bit_rate_reader.h"
#include "lib/units/quantity.h"

namespace spoke::units {

// Reads a rate as bit_rate_reader.h describes it, "100Mbps" included, from kLowestRate to
// kHighestRate. Errors: kInvalidArgument (no number, no unit or an unknown one, parts of a bit, out
// of these bounds, however far), with what to write.
absl::StatusOr<BitRate> ParseBitRate(std::string_view text);

// Returns the exact text in the largest unit in which `rate` is a whole number: "1500Mbit",
// "2Gbit". Takes any rate; ParseBitRate() reads it back when it is within the bounds.
std::string ToText(BitRate rate);

// Returns a rounded text for people: "640 bit/s", "1.25 Gbit/s" with three digits that say
// something, in steps of 1000; "640 B", "1.5 KiB" and "200 MiB/s" in steps of 1024.
std::string Rounded(BitRate rate);
std::string Rounded(ByteCount size);
std::string Rounded(ByteRate rate);

}  // namespace spoke::units
