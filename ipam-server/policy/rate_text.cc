#include "ipam-server/policy/rate_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr size_t kShown = 64;  // Of a text, in messages.

struct Unit {
  std::string_view name;
  std::string_view other;
  size_t digits;  // A power of ten.
};
// The largest first.
constexpr std::array kUnits = {Unit{"Tbit", "Tbps", 12}, Unit{"Gbit", "Gbps", 9},
                               Unit{"Mbit", "Mbps", 6}, Unit{"kbit", "kbps", 3},
                               Unit{"bit", "bps", 0}};

uint64_t PowerOfTen(size_t digits) {
  uint64_t power = 1;
  for (size_t i = 0; i < digits; ++i) power *= 10;
  return power;
}

absl::Status Refuse(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("\"{}\" {}", text.substr(0, kShown), what));
}

absl::Status OutOfBounds(std::string_view text) {
  return absl::InvalidArgumentError(fmt::format("must be from {} to {}, not \"{}\"",
                                                RateText(kLowestRate), RateText(kHighestRate),
                                                text.substr(0, kShown)));
}

// "1.5" as its two parts.
struct Number {
  std::string_view whole;     // Without zeros in front; may be empty.
  std::string_view fraction;  // Without zeros at the end; may be empty.
};

// Whether `text` is digits, or digits, a point and digits.
bool Split(std::string_view text, Number& out) {
  const size_t point = std::min(text.find('.'), text.size());
  out.whole = text.substr(0, point);
  out.fraction = text.substr(std::min(point + 1, text.size()));
  if (out.whole.empty() || (point < text.size() && out.fraction.empty())) return false;
  if (out.fraction.find('.') != std::string_view::npos) return false;
  out.whole.remove_prefix(std::min(out.whole.find_first_not_of('0'), out.whole.size()));
  const size_t last = out.fraction.find_last_not_of('0');
  out.fraction = out.fraction.substr(0, last == std::string_view::npos ? 0 : last + 1);
  return true;
}

// Of at most 13 digits; 0 for none.
uint64_t ToNumber(std::string_view digits) {
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

}  // namespace

absl::StatusOr<uint64_t> ParseRate(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view rest = text.substr(negative ? 1 : 0);
  const size_t end = std::min(rest.find_first_not_of("0123456789."), rest.size());
  Number number;
  if (!Split(rest.substr(0, end), number)) {
    return Refuse(text, "is no rate: write a number and a unit, such as 100Mbit or 1.5Gbit");
  }
  const std::string_view name = rest.substr(end);
  if (name.empty()) return Refuse(text, "has no unit: write bits a second, such as 100Mbit");
  const auto* unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& known) {
    return known.name == name || known.other == name;
  });
  if (unit == kUnits.end()) {
    return Refuse(text,
                  "has a unit that is none of bit, kbit, Mbit, Gbit and Tbit: write bits a "
                  "second, such as 100Mbit");
  }
  if (negative) return OutOfBounds(text);
  const uint64_t factor = PowerOfTen(unit->digits);
  constexpr size_t kMostDigits = 13;  // Of kHighestRate in bits.
  if (number.whole.size() > kMostDigits || ToNumber(number.whole) > kHighestRate / factor) {
    return OutOfBounds(text);
  }
  if (number.fraction.size() > unit->digits) {
    return Refuse(text, "has parts of a bit: write fewer digits, or a smaller unit");
  }
  const uint64_t rate =
      ToNumber(number.whole) * factor +
      ToNumber(number.fraction) * PowerOfTen(unit->digits - number.fraction.size());
  if (rate < kLowestRate || rate > kHighestRate) return OutOfBounds(text);
  return rate;
}

std::string RateText(uint64_t bits_per_second) {
  for (const Unit& unit : kUnits) {
    const uint64_t factor = PowerOfTen(unit.digits);
    if (bits_per_second >= factor && bits_per_second % factor == 0) {
      return fmt::format("{}{}", bits_per_second / factor, unit.name);
    }
  }
  return "0bit";
}

}  // namespace spoke::ipam
