#include "lib/node_checks/facts/agent_settings.h"

#include <utility>

#include "lib/config/config_text.h"

namespace spoke::node_checks {
namespace {

using config::ConfigMap;
using config::Need;

// Passes over the rest: what is not read here is the agent's to judge.
void PassOver(const ConfigMap& map) {
  if (!map.present()) return;
  for (const std::string& key : map.Keys()) (void)map.Has(key);
}

// Returns whether there is a text in which every variable is known: the agent may have others.
bool IsKnown(const ConfigMap& map, const char* key) {
  bool known = false;
  map.Custom(key, Need::kOptional, [&known](std::string_view text) {
    known = text.find("${") == std::string_view::npos;
    return absl::OkStatus();
  });
  return known;
}

void Take(const ConfigMap& map, const char* key, std::string& out) {
  if (IsKnown(map, key)) map.String(key, &out, Need::kOptional);
}

}  // namespace

absl::Status TakeAgentSettings(std::string_view text, const std::string& file,
                               const config::VariableLookup& variables, NodeSettings& settings) {
  const auto known_or_itself = [&variables](const std::string& name) {
    return variables(name).value_or("${" + name + "}");
  };
  config::ConfigText document = config::ConfigText::Parse(text, file, known_or_itself);
  const ConfigMap root = document.Root();
  PassOver(root);
  Take(root, "nic", settings.nic);
  Take(root, "server", settings.server);
  Take(root, "cni_socket", settings.cni_socket);
  Take(root, "state_dir", settings.state_dir);
  if (IsKnown(root, "mtu")) root.Uint32("mtu", &settings.mtu, Need::kOptional);
  if (root.Has("cni")) {
    const ConfigMap cni = root.Map("cni", Need::kOptional);
    PassOver(cni);
    Take(cni, "conf_dir", settings.conf_dir);
    Take(cni, "conf_file", settings.conf_file);
    Take(cni, "bin_dir", settings.bin_dir);
    Take(cni, "plugin", settings.plugin);
  }
  if (root.Has("traffic")) {
    const ConfigMap traffic = root.Map("traffic", Need::kOptional);
    PassOver(traffic);
    if (IsKnown(traffic, "enabled")) traffic.Bool("enabled", &settings.counts, Need::kOptional);
    std::string fast_path = "auto";
    Take(traffic, "fast_path", fast_path);
    settings.fast_path = fast_path == "auto";
  }
  settings.azure = root.Has("azure");
  return document.Finish();
}

}  // namespace spoke::node_checks
