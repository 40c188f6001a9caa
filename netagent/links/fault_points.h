// The places where a test lets a call into the kernel fail or the program die.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::netagent {

// Called before each step that asks something of the kernel, by the step's name ("attach.pod").
// What it returns fails that step, which then does not happen. It may also end the process: the
// kernel is then as a crash at this point leaves it. If it is empty, nothing is ever injected.
using FaultPoint = std::function<absl::Status(std::string_view step)>;

inline absl::Status Reach(const FaultPoint& fault_point, std::string_view step) {
  return fault_point ? fault_point(step) : absl::OkStatus();
}

// Parses "<fail|kill> <step> <n>": the `n`th time (from 1) that `step` is reached, it fails with
// kInternal, or the process is killed as by SIGKILL; "fault step=NAME" is said on stderr first. A
// step that ends in "*" stands for all that begin so. Nothing is injected from "". Errors:
// kInvalidArgument.
absl::StatusOr<FaultPoint> ParseFaultPoint(std::string_view text);

}  // namespace spoke::netagent
