// Runs another program to its end. Thread-safe (no state).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::os {

struct ProgramResult {
  // The exit code; 128 and the signal's number when a signal ended it, as shells have it.
  int exit_code = 0;
  std::string output;  // The text of its standard output.
  std::string errors;  // The first bytes of its standard error.
};

struct ProgramOptions {
  absl::Duration time = absl::Seconds(5);
  size_t output_bytes = size_t{64} << 20U;
  // The variables, "NAME=value", before the caller's: the program has no others of these names.
  std::vector<std::string> variables = {};
};

// Runs `command` ([0] is its path, looked up nowhere) with nothing to read, no signal blocked, and
// the caller's environment (besides `variables`) and namespaces. It is killed when it takes too
// long or says too much. Errors: kNotFound (no such program); kDeadlineExceeded; kResourceExhausted
// (too much output, or no process can be had); as errno says.
absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& command,
                                         const ProgramOptions& options = {});

}  // namespace spoke::os
