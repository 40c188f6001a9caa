#include "netagent/links/fault_points.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <sstream>
#include <string>

#include "fmt/core.h"

namespace spoke::netagent {

absl::StatusOr<FaultPoint> ParseFaultPoint(std::string_view text) {
  if (text.empty()) return FaultPoint();
  std::istringstream words{std::string(text)};
  std::string action;
  std::string wanted;
  int nth = 0;
  std::string rest;
  words >> action >> wanted >> nth;
  if (words.fail() || words >> rest || nth < 1 || (action != "fail" && action != "kill")) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no fault: '<fail|kill> <step> <n>' is one", text));
  }
  // The count is shared: the function is copied into each part that asks the kernel for something,
  // and threads of several count together.
  auto count = std::make_shared<std::atomic<int>>(0);
  return FaultPoint([=](std::string_view step) -> absl::Status {
    const bool counts =
        wanted.back() == '*'
            ? step.starts_with(std::string_view(wanted).substr(0, wanted.size() - 1))
            : step == wanted;
    if (!counts || ++*count != nth) return absl::OkStatus();
    // The line does not go by the log, which may still hold back lines when the process dies.
    const std::string line = fmt::format("fault step={}\n", step);
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return absl::OkStatus();
    if (action == "kill") ::kill(::getpid(), SIGKILL);
    return absl::InternalError(fmt::format("fault injected at {}", step));
  });
}

}  // namespace spoke::netagent
