// One exec of a CNI plugin, as a runtime does it, and how long it took.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::cni_bench {

// The environment that a runtime sets. Empty ones are passed on empty.
struct PluginCall {
  std::string program;
  std::string command;  // The value of CNI_COMMAND.
  std::string container_id;
  std::string netns;
  std::string ifname;
  std::string args;
  std::string path;  // The value of CNI_PATH.
};

struct PluginRun {
  int code = 0;
  std::string output;
  absl::Duration took;  // The time from before the spawn to after the reaping.
};

// Runs it with `input` on its standard input, which is then closed. Thread-safe.
// Errors: kInternal (it cannot be started, or was killed by a signal); kDeadlineExceeded never: a
// plugin that hangs hangs the benchmark, whose caller ends it.
absl::StatusOr<PluginRun> RunPlugin(const PluginCall& call, std::string_view input);

}  // namespace spoke::cni_bench
