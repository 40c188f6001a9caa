#include "lib/node_checks/facts/cloud_init.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "yaml-cpp/yaml.h"

namespace spoke::node_checks {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFileBytes = 1UL << 20;
constexpr size_t kMaxFiles = 256;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Returns cloud.cfg, and then what overrides it.
std::vector<std::string> ConfigFiles(const std::string& root) {
  std::vector<std::string> parts;
  std::error_code error;
  // cloud-init reads no other names.
  for (fs::directory_iterator it(root + "/etc/cloud/cloud.cfg.d", error), end;
       !error && it != end && parts.size() < kMaxFiles; it.increment(error)) {
    if (it->path().extension() == ".cfg") parts.push_back(it->path().string());
  }
  std::sort(parts.begin(), parts.end());
  if (Exists(root + "/etc/cloud/cloud.cfg")) {
    parts.insert(parts.begin(), root + "/etc/cloud/cloud.cfg");
  }
  return parts;
}

// The words that YAML 1.1, which cloud-init reads, has for false.
bool IsNo(std::string_view text) {
  const std::string lower = absl::AsciiStrToLower({text.data(), text.size()});
  return lower == "false" || lower == "no" || lower == "off";
}

// Returns a boolean. Throws what yaml-cpp throws, as the next function does.
std::optional<bool> ReadSwitch(const YAML::Node& map, const char* key) {
  const YAML::Node value = map[key];
  if (!value.IsDefined() || !value.IsScalar()) return std::nullopt;
  return !IsNo(value.Scalar());
}

// The switches that one file sets; cloud-init merges the files key by key.
struct Switches {
  std::optional<bool> secondary_ips;
  // The switch for the metadata service; off: its addresses are not used.
  std::optional<bool> metadata_network;
  std::optional<bool> network;  // The switch for the network; off: cloud-init leaves it alone.
};

Switches SwitchesOf(const YAML::Node& root) {
  Switches switches;
  if (!root.IsMap()) return switches;  // It is a file of comments.
  if (const YAML::Node sources = root["datasource"]; sources.IsDefined() && sources.IsMap()) {
    if (const YAML::Node azure = sources["Azure"]; azure.IsDefined() && azure.IsMap()) {
      switches.secondary_ips = ReadSwitch(azure, "apply_network_config_for_secondary_ips");
      switches.metadata_network = ReadSwitch(azure, "apply_network_config");
    }
  }
  if (const YAML::Node network = root["network"]; network.IsDefined() && network.IsMap()) {
    const YAML::Node config = network["config"];
    if (config.IsDefined() && config.IsScalar()) switches.network = config.Scalar() != "disabled";
  }
  return switches;
}

// Returns whether a file can be about any of the switches at all.
bool Mentions(const std::string& text) {
  return text.find("apply_network_config") != std::string::npos ||
         text.find("disabled") != std::string::npos;
}

// Reads a file with the YAML library itself, and not lib/config, whose subset has no anchors: these
// are files of another program, and some of them have.
absl::StatusOr<Switches> ReadSwitches(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, os::ReadFile(file, kMaxFileBytes));
  try {
    return SwitchesOf(YAML::Load(text));
  } catch (const YAML::Exception& problem) {
    // yaml-cpp cannot read an anchored block in a list, which cloud-init's own 05_logging.cfg has.
    if (!Mentions(text)) return Switches{};
    return absl::InvalidArgumentError(fmt::format("{}: {}", file, problem.what()));
  }
}

}  // namespace

CloudInitReading ReadCloudInit(const std::string& root) {
  CloudInitReading reading;
  // A container may not see the node's programs; then the configuration tells of them.
  const bool installed = Exists(root + "/usr/bin") ? Exists(root + "/usr/bin/cloud-init")
                                                   : Exists(root + "/etc/cloud/cloud.cfg");
  if (!installed || Exists(root + "/etc/cloud/cloud-init.disabled")) {
    return reading;
  }
  Switches merged;
  const auto take = [&](std::optional<bool>& into, const std::optional<bool>& from,
                        const std::string& file) {
    if (!from) return;
    into = from;
    reading.decided_by = file;
  };
  for (const std::string& file : ConfigFiles(root)) {
    const auto switches = ReadSwitches(file);
    if (!switches.ok()) {
      reading.unreadable.push_back(switches.status());
      continue;
    }
    take(merged.secondary_ips, switches->secondary_ips, file);
    take(merged.metadata_network, switches->metadata_network, file);
    take(merged.network, switches->network, file);
  }
  const bool on = merged.secondary_ips.value_or(true) && merged.metadata_network.value_or(true) &&
                  merged.network.value_or(true);
  reading.secondary_ips = on ? SecondaryIps::kOn : SecondaryIps::kOff;
  return reading;
}

}  // namespace spoke::node_checks
