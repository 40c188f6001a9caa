#include "lib/units/text.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "fmt/core.h"

namespace spoke::units {
namespace {

constexpr size_t kShown = 64;  // The part of a text that messages show.

absl::Status Refuse(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("\"{}\" {}", text.substr(0, kShown), what));
}

}  // namespace

absl::StatusOr<BitRate> ParseBitRate(std::string_view text) {
  const ReadRate read = ReadBitRate(text, RateAliases::kTaken);
  switch (read.mistake) {
    case RateMistake::kNone:
      return read.rate;
    case RateMistake::kNoNumber:
      return Refuse(text, "is no rate: write a number and a unit, such as 100Mbit or 1.5Gbit");
    case RateMistake::kNoUnit:
      return Refuse(text, "has no unit: write bits a second, such as 100Mbit");
    case RateMistake::kUnknownUnit:
      return Refuse(text,
                    "has a unit that is none of bit, kbit, Mbit, Gbit and Tbit: write bits a "
                    "second, such as 100Mbit");
    case RateMistake::kPartsOfABit:
      return Refuse(text, "has parts of a bit: write fewer digits, or a smaller unit");
    case RateMistake::kOutOfBounds:
      break;
  }
  return absl::InvalidArgumentError(fmt::format("must be from {} to {}, not \"{}\"",
                                                ToText(kLowestRate), ToText(kHighestRate),
                                                text.substr(0, kShown)));
}

std::string ToText(BitRate rate) {
  for (const RateUnit& unit : kRateUnits) {
    const uint64_t factor = PowerOfTen(unit.digits);
    if (rate.count() >= factor && rate.count() % factor == 0) {
      return fmt::format("{}{}", rate.count() / factor, unit.name);
    }
  }
  return "0bit";
}

std::string Rounded(BitRate rate) {
  constexpr std::array kUnits = {"kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  if (rate.count() < 1000) return fmt::format("{} bit/s", rate.count());
  double value = static_cast<double>(rate.count()) / 1000;
  size_t unit = 0;
  // From 999.5 on three digits would say 1000.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  int digits = 0;
  if (value < 99.95) digits = 1;
  if (value < 9.995) digits = 2;
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (digits > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return fmt::format("{} {}", text, kUnits.at(unit));
}

std::string Rounded(ByteCount size) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (size.count() < 1024) return fmt::format("{} B", size.count());
  double value = static_cast<double>(size.count()) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, kUnits.at(unit));
}

std::string Rounded(ByteRate rate) { return Rounded(ByteCount(rate.count())) + "/s"; }

}  // namespace spoke::units
