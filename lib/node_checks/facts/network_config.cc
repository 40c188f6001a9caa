#include "lib/node_checks/facts/network_config.h"

#include <utility>

#include "nlohmann/json.hpp"

namespace spoke::node_checks {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kList = ".conflist";

bool EndsIn(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

NetworkConfig Unusable(NetworkConfig config, std::string problem) {
  config.problem = std::move(problem);
  return config;
}

}  // namespace

bool IsNetworkConfigName(std::string_view name) {
  return EndsIn(name, ".conf") || EndsIn(name, kList) || EndsIn(name, ".json");
}

NetworkConfig ReadNetworkConfig(std::string_view name, std::string_view text) {
  NetworkConfig config;
  const Json value = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return Unusable(config, "is not JSON");
  if (!value.is_object()) return Unusable(config, "is not a JSON object");
  config.network = TextOf(value, "name");
  if (!EndsIn(name, kList)) {
    config.plugins = {TextOf(value, "type")};
    if (config.plugin().empty()) return Unusable(config, "names no \"type\"");
    config.usable = true;
    return config;
  }
  const auto plugins = value.find("plugins");
  if (plugins == value.end() || !plugins->is_array() || plugins->empty()) {
    return Unusable(config, "has no \"plugins\"");
  }
  for (const Json& plugin : *plugins) {
    std::string type = plugin.is_object() ? TextOf(plugin, "type") : "";
    if (type.empty()) return Unusable(config, "has a plugin without \"type\"");
    config.plugins.push_back(std::move(type));
  }
  if (config.network.empty()) return Unusable(config, "has no \"name\"");
  config.usable = true;
  return config;
}

}  // namespace spoke::node_checks
