// Network configurations in a runtime's directory (CNI specification, section 1), read as libcni
// reads them, so that what it will choose is known before. Pure, safe on any input.
#pragma once

#include <string>
#include <string_view>

namespace spoke::node_checks {

// Whether runtimes load a file of that name at all: .conf, .conflist and .json (libcni's
// ConfFiles).
bool IsNetworkConfigName(std::string_view name);

struct NetworkConfig {
  bool usable = false;  // A runtime takes it.
  std::string problem;  // Why not.
  std::string network;  // Its "name".
  std::string plugin;   // The type of its first plugin: "bridge".
};

// `name`, the file's, decides: a .conflist has a list "plugins", the others are one plugin.
NetworkConfig ReadNetworkConfig(std::string_view name, std::string_view text);

}  // namespace spoke::node_checks
