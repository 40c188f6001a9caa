// A network configuration list, run as libcni runs it: plugin by plugin, each with the result of
// the one before.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::cni_bench {

struct Pod {
  std::string container_id;
  std::string netns;  // The path.
};

// A chain. Thread-safe (never changes).
class Chain {
 public:
  struct Settings {
    std::string network;
    std::string version = "1.0.0";
    std::string args;         // The value of CNI_ARGS.
    std::string plugin_dirs;  // The value of CNI_PATH: where the binaries are; the first counts.
    std::vector<std::string> plugins;  // The configuration of each plugin, as JSON.
  };
  struct Added {
    absl::Duration took;  // The time of all execs of the chain.
    std::string result;   // The result of the last one, for DEL.
  };
  // Errors: kInvalidArgument (a configuration is no JSON object with a type).
  static absl::StatusOr<Chain> Parse(Settings settings);

  // Errors: kInternal, with what the plugin said.
  absl::StatusOr<Added> Add(const Pod& pod) const;
  // Runs the plugins in the opposite order, as libcni does. `result` is what Add() returned.
  absl::StatusOr<absl::Duration> Del(const Pod& pod, const std::string& result) const;

 private:
  struct Plugin {
    std::string program;
    std::string config;  // The configuration with name and cniVersion, without prevResult.
  };
  Chain(Settings settings, std::vector<Plugin> plugins)
      : settings_(std::move(settings)), plugins_(std::move(plugins)) {}

  absl::StatusOr<Added> Run(const Plugin& plugin, const std::string& command, const Pod& pod,
                            const std::string& previous) const;

  Settings settings_;
  std::vector<Plugin> plugins_;
};

}  // namespace spoke::cni_bench
