#include "netagent/fault_switch.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "absl/strings/numbers.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {

absl::StatusOr<Fault> ParseFault(std::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      fmt::format("SPOKE_FAULT \"{}\": write fail:PREFIX:N or kill:PREFIX:N, N from 1", text));
  const size_t first = text.find(':');
  const size_t last = text.rfind(':');
  if (first == std::string_view::npos || first == last) return wrong;
  const std::string_view how = text.substr(0, first);
  Fault fault{.prefix = std::string(text.substr(first + 1, last - first - 1))};
  if (how != "fail" && how != "kill") return wrong;
  fault.how = how == "kill" ? Fault::How::kKill : Fault::How::kFail;
  const std::string number(text.substr(last + 1));
  if (!absl::SimpleAtoi(number, &fault.nth) || fault.nth < 1) return wrong;
  return fault;
}

std::function<absl::Status(std::string_view step)> MakeFaultPoint(const Fault& fault) {
  auto left = std::make_shared<std::atomic<int>>(fault.nth);
  return [fault, left](std::string_view step) -> absl::Status {
    if (!step.starts_with(fault.prefix) || left->fetch_sub(1) != 1) return absl::OkStatus();
    const std::string line = fmt::format("fault step={}\n", step);
    // Past the log, which may still hold back what it was given when the process dies.
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return absl::OkStatus();
    if (fault.how == Fault::How::kKill) ::kill(::getpid(), SIGKILL);
    return absl::UnavailableError(fmt::format("injected at {}", step));
  };
}

absl::StatusOr<std::function<absl::Status(std::string_view step)>> FaultPointFromEnvironment() {
#ifdef SPOKE_FAULT_SWITCH
  if (const char* text = std::getenv("SPOKE_FAULT"); text != nullptr) {
    ASSIGN_OR_RETURN(const Fault fault, ParseFault(text));
    return MakeFaultPoint(fault);
  }
#endif
  return std::function<absl::Status(std::string_view)>();
}

}  // namespace spoke::netagent
