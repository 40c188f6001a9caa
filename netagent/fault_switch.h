// For tests of crash safety: a debug build lets a step of its work fail, or dies at it, when its
// environment says so. A build without SPOKE_FAULT_SWITCH, which is what users run, has none of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::netagent {

// Which step, and what becomes of it.
struct Fault {
  enum class How { kFail, kKill };
  How how = How::kFail;
  std::string prefix;  // Only steps whose names begin so are counted.
  int nth = 1;         // 1 is the first.

  bool operator==(const Fault&) const = default;
};

// "fail:PREFIX:N" or "kill:PREFIX:N", PREFIX may be empty. Errors: kInvalidArgument. Pure.
absl::StatusOr<Fault> ParseFault(std::string_view text);

// Counts steps, and says once that one fails or, with kKill, ends the process by SIGKILL. What it
// does is said on stderr first: "fault step=NAME". Thread-safe.
std::function<absl::Status(std::string_view step)> MakeFaultPoint(const Fault& fault);

// As SPOKE_FAULT says; empty without it, or in a build without the switch.
// Errors: kInvalidArgument.
absl::StatusOr<std::function<absl::Status(std::string_view step)>> FaultPointFromEnvironment();

}  // namespace spoke::netagent
