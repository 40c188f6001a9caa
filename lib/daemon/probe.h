// `--probe readiness` and `--probe liveness` ask the program that serves with the same
// configuration how it is, for kubelets' exec probes and for people.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "lib/daemon/daemon_main.h"

namespace spoke::daemon {

// The time that a probe waits for an answer. A kubelet's own time limit has to be longer.
inline constexpr absl::Duration kProbePatience = absl::Seconds(3);

struct ProbeAnswer {
  bool well = false;
  std::string text;  // The text "ready\n" or "alive\n", else a line for each reason why not.
};

// Asks at `address` (HealthService has what it may be; empty: it is not served) for `service`,
// "readiness" or "liveness". That nobody answers is a reason as well, with what to do about it.
ProbeAnswer Probe(std::string_view program, const std::string& address, const std::string& service);

// Runs a probe. `parse` is as for Main(), and returns a configuration with a std::string `health`.
// Exit code: 0 ready or alive, 1 not.
template <typename Parse>
Command ProbeCommand(std::string program, Parse parse) {
  const auto ask = [program = std::move(program)](const auto& config,
                                                  const CommandRequest& request) {
    const ProbeAnswer answer = Probe(program, config.health, request.word);
    std::fputs(answer.text.c_str(), stdout);
    return answer.well && std::fflush(stdout) == 0 ? 0 : kExitFailure;
  };
  return {
      .option = "--probe",
      .help =
          "Ask the running program whether it is ready or alive, and why not; exit status 0 or 1",
      .words = {"readiness", "liveness"},
      .run = WithConfig(std::move(parse), ask)};
}

}  // namespace spoke::daemon
