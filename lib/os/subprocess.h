// Runs another program to its end. Thread-safe (no state).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::os {

struct ProgramResult {
  int exit_code = 0;   // 128 and the signal's number when a signal ended it, as shells have it.
  std::string output;  // Of its standard output.
  std::string errors;  // Of its standard error, the first bytes of it.
};

struct ProgramOptions {
  absl::Duration time = absl::Seconds(5);
  size_t output_bytes = size_t{64} << 20U;
  // "NAME=value", before the caller's variables: it has no others of these names.
  std::vector<std::string> variables = {};
};

// Runs `command` ([0] is its path, looked up nowhere) with nothing to read, no signal blocked, and
// the caller's environment (besides `variables`) and namespaces. Killed when it takes too long or
// says too much. Errors: kNotFound (no such program); kDeadlineExceeded; kResourceExhausted (too
// much output, or no process can be had); as errno says.
absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& command,
                                         const ProgramOptions& options = {});

}  // namespace spoke::os
