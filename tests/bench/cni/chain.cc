#include "tests/bench/cni/chain.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "nlohmann/json.hpp"
#include "tests/bench/cni/plugin_run.h"

namespace spoke::cni_bench {
namespace {

using nlohmann::json;

std::string FindProgram(const std::string& dirs, const std::string& type) {
  size_t begin = 0;
  while (begin <= dirs.size()) {
    const size_t end = std::min(dirs.find(':', begin), dirs.size());
    std::string program = dirs.substr(begin, end - begin) + "/" + type;
    if (::access(program.c_str(), X_OK) == 0) return program;
    begin = end + 1;
  }
  return "";
}

// Returns the configuration with prevResult put in, as libcni does before each exec.
std::string WithPrevious(const std::string& config, const std::string& previous) {
  if (previous.empty()) return config;
  return config.substr(0, config.size() - 1) + ",\"prevResult\":" + previous + "}";
}

}  // namespace

absl::StatusOr<Chain> Chain::Parse(Settings settings) {
  std::vector<Plugin> plugins;
  for (const std::string& text : settings.plugins) {
    json config = json::parse(text, nullptr, false);
    if (!config.is_object() || !config.value("type", json()).is_string()) {
      return absl::InvalidArgumentError("no plugin configuration: " + text);
    }
    config["name"] = settings.network;
    config["cniVersion"] = settings.version;
    const std::string type = config["type"].get<std::string>();
    Plugin plugin{FindProgram(settings.plugin_dirs, type), config.dump()};
    if (plugin.program.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("no plugin {} in {}", type, settings.plugin_dirs));
    }
    plugins.push_back(std::move(plugin));
  }
  return Chain(std::move(settings), std::move(plugins));
}

absl::StatusOr<Chain::Added> Chain::Run(const Plugin& plugin, const std::string& command,
                                        const Pod& pod, const std::string& previous) const {
  const PluginCall call{.program = plugin.program,
                        .command = command,
                        .container_id = pod.container_id,
                        .netns = pod.netns,
                        .ifname = "eth0",
                        .args = settings_.args,
                        .path = settings_.plugin_dirs};
  ASSIGN_OR_RETURN(PluginRun run, RunPlugin(call, WithPrevious(plugin.config, previous)));
  if (run.code != 0) {
    return absl::InternalError(fmt::format("{} {} of {}: exit code {}: {}", plugin.program, command,
                                           pod.container_id, run.code, run.output));
  }
  return Added{run.took, std::move(run.output)};
}

absl::StatusOr<Chain::Added> Chain::Add(const Pod& pod) const {
  Added added;
  for (const Plugin& plugin : plugins_) {
    ASSIGN_OR_RETURN(Added one, Run(plugin, "ADD", pod, added.result));
    added.took += one.took;
    added.result = std::move(one.result);
  }
  return added;
}

absl::StatusOr<absl::Duration> Chain::Del(const Pod& pod, const std::string& result) const {
  absl::Duration took;
  for (auto plugin = plugins_.rbegin(); plugin != plugins_.rend(); ++plugin) {
    ASSIGN_OR_RETURN(const Added one, Run(*plugin, "DEL", pod, result));
    took += one.took;
  }
  return took;
}

}  // namespace spoke::cni_bench
