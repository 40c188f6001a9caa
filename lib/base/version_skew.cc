#include "lib/base/version_skew.h"

#include <algorithm>
#include <charconv>

#include "fmt/core.h"

namespace spoke::base {
namespace {

constexpr size_t kMaxBytes = 64;
constexpr uint32_t kMaxNumber = 999'999;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsSuffix(std::string_view text) {
  return text.size() > 1 && std::all_of(text.begin() + 1, text.end(), [](char c) {
           return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
                  c == '-' || c == '+';
         });
}

// Takes a number off the front of `text`.
bool TakeNumber(std::string_view& text, uint32_t& number) {
  const auto size =
      static_cast<size_t>(std::find_if_not(text.begin(), text.end(), &IsDigit) - text.begin());
  if (size == 0 || (size > 1 && text.front() == '0')) return false;
  const auto parsed = std::from_chars(text.data(), text.data() + size, number);
  if (parsed.ec != std::errc() || number > kMaxNumber) return false;
  text.remove_prefix(size);
  return true;
}

bool TakeDot(std::string_view& text) {
  if (text.empty() || text.front() != '.') return false;
  text.remove_prefix(1);
  return true;
}

// The oldest and the newest minor version that work with `newer` and are not newer.
std::string Wanted(const Version& newer) {
  if (newer.minor == 0) return fmt::format("{}.0", newer.major);
  return fmt::format("{0}.{1} or {0}.{2}", newer.major, newer.minor - 1, newer.minor);
}

}  // namespace

std::string Version::ToString() const {
  return fmt::format("{}.{}.{}{}", major, minor, patch, suffix);
}

absl::StatusOr<Version> ParseVersion(std::string_view text) {
  Version version;
  std::string_view rest = text;
  const bool good = text.size() <= kMaxBytes && TakeNumber(rest, version.major) && TakeDot(rest) &&
                    TakeNumber(rest, version.minor) && TakeDot(rest) &&
                    TakeNumber(rest, version.patch);
  const bool has_suffix = good && !rest.empty() && (rest.front() == '-' || rest.front() == '+');
  if (!good || (!rest.empty() && !(has_suffix && IsSuffix(rest)))) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no version: must be MAJOR.MINOR.PATCH, such as 0.1.0 or 0.1.0-rc.1",
                    text.substr(0, kMaxBytes)));
  }
  version.suffix = std::string(rest);
  return version;
}

absl::Status CheckSkew(const ProgramVersion& first, const ProgramVersion& second) {
  const auto of_first = ParseVersion(first.version);
  const auto of_second = ParseVersion(second.version);
  if (!of_first.ok() || !of_second.ok()) return absl::OkStatus();
  const Skew skew = SkewBetween(*of_first, *of_second);
  if (skew == Skew::kWorks) return absl::OkStatus();
  const bool first_is_old = skew == Skew::kFirstIsTooOld;
  return absl::FailedPreconditionError(fmt::format(
      "{} {} and {} {} do not work together, since they are {}: upgrade {} first, to {}",
      first.program, of_first->ToString(), second.program, of_second->ToString(),
      of_first->major == of_second->major ? "more than one minor version apart"
                                          : "of different major versions",
      first_is_old ? first.program : second.program,
      Wanted(first_is_old ? *of_second : *of_first)));
}

}  // namespace spoke::base
