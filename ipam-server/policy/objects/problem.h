// What is wrong with what an operator wants to apply, each with its place; all of it in one status.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace spoke::ipam {

struct Problem {
  std::string file;  // Empty: not from a file, but in what is stored or configured already.
  int line = 0;
  std::string path;  // "spec.cidr"; empty: the file or object as a whole.
  std::string message;
  // The file is right in itself, and clashes with what exists or is used.
  bool conflict = false;
};

// "FILE:LINE: PATH: MESSAGE", without what is not known.
std::string TextOf(const Problem& problem);

inline constexpr size_t kMaxProblems = 50;  // The most problems shown; of the others, the number.

// Returns OK for none; kFailedPrecondition when all are conflicts, kInvalidArgument when not:
// the files have to be mended first. One line each, "FILE:LINE: PATH: MESSAGE", in the order of
// `files` (others last), then by line.
absl::Status ToStatus(std::vector<Problem> problems, const std::vector<std::string>& files);

}  // namespace spoke::ipam
