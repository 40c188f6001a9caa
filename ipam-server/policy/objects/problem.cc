#include "ipam-server/policy/objects/problem.h"

#include <algorithm>
#include <tuple>

#include "fmt/core.h"

namespace spoke::ipam {
std::string TextOf(const Problem& problem) {
  std::string text;
  if (!problem.file.empty()) text = fmt::format("{}:{}: ", problem.file, problem.line);
  if (!problem.path.empty()) text += problem.path + ": ";
  return text + problem.message;
}

absl::Status ToStatus(std::vector<Problem> problems, const std::vector<std::string>& files) {
  if (problems.empty()) return absl::OkStatus();
  const auto place = [&](const Problem& problem) {
    return std::tuple(std::find(files.begin(), files.end(), problem.file) - files.begin(),
                      problem.line);
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const Problem& a, const Problem& b) { return place(a) < place(b); });
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), kMaxProblems); ++i) {
    text += (i == 0 ? "" : "\n") + TextOf(problems[i]);
  }
  if (problems.size() > kMaxProblems) {
    text += fmt::format("\nand {} more", problems.size() - kMaxProblems);
  }
  const bool conflicts = std::all_of(problems.begin(), problems.end(),
                                     [](const Problem& problem) { return problem.conflict; });
  return conflicts ? absl::FailedPreconditionError(text) : absl::InvalidArgumentError(text);
}

}  // namespace spoke::ipam
