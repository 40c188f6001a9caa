#include "lib/daemon/probe.h"

#include "lib/base/status.h"
#include "lib/rpc/health_client.h"

namespace spoke::daemon {
namespace {

std::string WhyNoAnswer(std::string_view program, const std::string& address,
                        const absl::Status& status) {
  if (absl::IsUnavailable(status)) {
    return fmt::format(
        "nobody listens at {}: {} does not run, or has only begun to, or has another `health` in "
        "its configuration; its log says which\n",
        address, program);
  }
  if (absl::IsDeadlineExceeded(status)) {
    return fmt::format("no answer at {} within {}: {} is stuck or has no processor; see its log\n",
                       address, absl::FormatDuration(kProbePatience), program);
  }
  return fmt::format("{}: {}: is that {}?\n", address, base::MessageOf(status), program);
}

}  // namespace

ProbeAnswer Probe(std::string_view program, const std::string& address,
                  const std::string& service) {
  if (address.empty()) {
    return {.text =
                "health is off in the configuration: give `health` an address, or take the "
                "probe away\n"};
  }
  const auto health = rpc::AskHealth(address, service, kProbePatience);
  if (!health.ok()) return {.text = WhyNoAnswer(program, address, health.status())};
  if (health->serving) return {.well = true, .text = service == "liveness" ? "alive\n" : "ready\n"};
  std::string text;
  for (const std::string& reason : health->reasons) text += reason + "\n";
  if (text.empty()) text = fmt::format("{} says no, and not why; see its log\n", program);
  return {.text = std::move(text)};
}

}  // namespace spoke::daemon
