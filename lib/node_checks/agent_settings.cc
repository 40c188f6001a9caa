#include "lib/node_checks/agent_settings.h"

#include <optional>

#include "lib/config/config_text.h"

namespace spoke::node_checks {
namespace {

using config::ConfigMap;
using config::Need;
using Variable = std::function<std::string(const std::string&)>;

// Nothing: it names a variable that is not set.
std::optional<std::string> Expanded(std::string_view text, const Variable& variable) {
  std::string out;
  while (true) {
    const size_t begin = text.find("${");
    const size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
    if (end == std::string_view::npos) return out.append(text);
    const std::string value = variable(std::string(text.substr(begin + 2, end - begin - 2)));
    if (value.empty()) return std::nullopt;
    out.append(text.substr(0, begin)).append(value);
    text.remove_prefix(end + 1);
  }
}

// What is not read here is the agent's to judge.
void PassOver(const ConfigMap& map) {
  if (!map.present()) return;
  for (const std::string& key : map.Keys()) (void)map.Has(key);
}

void Take(const ConfigMap& map, const char* key, const Variable& variable, std::string& out) {
  std::string text;
  map.String(key, &text, Need::kOptional);
  if (text.empty()) return;
  if (auto expanded = Expanded(text, variable)) out = *std::move(expanded);
}

}  // namespace

absl::Status TakeAgentSettings(std::string_view text, const std::string& file,
                               const Variable& variable, NodeSettings& settings) {
  config::ConfigText document = config::ConfigText::Parse(text, file);
  const ConfigMap root = document.Root();
  PassOver(root);
  Take(root, "nic", variable, settings.nic);
  Take(root, "server", variable, settings.server);
  Take(root, "cni_socket", variable, settings.cni_socket);
  Take(root, "state_dir", variable, settings.state_dir);
  root.Uint32("mtu", &settings.mtu, Need::kOptional);
  if (root.Has("cni")) {
    const ConfigMap cni = root.Map("cni", Need::kOptional);
    PassOver(cni);
    Take(cni, "conf_dir", variable, settings.conf_dir);
    Take(cni, "conf_file", variable, settings.conf_file);
    Take(cni, "bin_dir", variable, settings.bin_dir);
    Take(cni, "plugin", variable, settings.plugin);
  }
  for (const auto& [key, enabled] :
       {std::pair("traffic", &settings.counts), std::pair("shaping", &settings.shapes)}) {
    if (!root.Has(key)) continue;
    const ConfigMap map = root.Map(key, Need::kOptional);
    PassOver(map);
    map.Bool("enabled", enabled, Need::kOptional);
  }
  settings.azure = root.Has("azure");
  return document.Finish();
}

}  // namespace spoke::node_checks
