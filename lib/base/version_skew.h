// The rule which versions of our programs work together: those of the same major version whose
// minor versions differ by at most one (ADR 20). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::base {

// A version as semver.org 2.0.0 has it: "0.1.0", "1.4.2-rc.1".
struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;
  std::string suffix = {};  // The text from the hyphen or plus on; it decides nothing.

  std::string ToString() const;
  bool operator==(const Version&) const = default;
};

// Errors: kInvalidArgument (not MAJOR.MINOR.PATCH[-x]; a number with a leading zero or above
// 999,999; more than 64 bytes).
absl::StatusOr<Version> ParseVersion(std::string_view text);

enum class Skew : uint8_t { kWorks, kFirstIsTooOld, kSecondIsTooOld };

// Returns whether programs of these versions work together, and if not, which of them is behind.
constexpr Skew SkewBetween(const Version& first, const Version& second) {
  if (first.major != second.major) {
    return first.major < second.major ? Skew::kFirstIsTooOld : Skew::kSecondIsTooOld;
  }
  if (first.minor + 1 < second.minor) return Skew::kFirstIsTooOld;
  if (second.minor + 1 < first.minor) return Skew::kSecondIsTooOld;
  return Skew::kWorks;
}

// A program and the version that it says it has.
struct ProgramVersion {
  std::string_view program;  // The program's name, such as "spoke-netagent".
  std::string_view version;
};

// Returns OK when the two work together, and when one of them does not say a version that can be
// read: such a program is older than this rule, or none of ours, and its messages are judged by
// themselves. Errors: kFailedPrecondition; the message names both, and which is to be upgraded
// first and to what.
absl::Status CheckSkew(const ProgramVersion& first, const ProgramVersion& second);

}  // namespace spoke::base
