// Network configurations in a runtime's directory (CNI specification, section 1), read as libcni
// reads them, so that what it will choose is known before. Pure, safe on any input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spoke::node_checks {

// Returns whether runtimes load a file of that name at all: .conf, .conflist and .json (libcni's
// ConfFiles).
bool IsNetworkConfigName(std::string_view name);

struct NetworkConfig {
  bool usable = false;  // Whether a runtime takes it.
  std::string problem;  // The reason why not.
  std::string network;  // The network's "name".
  // The types of the plugins, in the order of the chain: "bridge".
  std::vector<std::string> plugins;

  // Returns the first one's, which makes the interface; empty when there is none.
  std::string plugin() const { return plugins.empty() ? "" : plugins.front(); }
};

// Reads a configuration. `name`, the file's, decides: a .conflist has a list "plugins", the others
// are one plugin.
NetworkConfig ReadNetworkConfig(std::string_view name, std::string_view text);

}  // namespace spoke::node_checks
