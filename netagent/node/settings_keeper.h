// Makes the kernel settings that checks of the node find wanting, where the agent's configuration
// says node_settings: own.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "lib/node_checks/examine.h"
#include "netagent/node/node_setup.h"

namespace spoke::netagent {

// Not thread-safe; the thread that looks owns it.
class SettingsKeeper {
 public:
  // `sysctl_root` is what SysctlRoot() says.
  explicit SettingsKeeper(std::string sysctl_root) : sysctl_root_(std::move(sysctl_root)) {}

  // Makes the settings that the findings of `report` name. What could not be made is reported once,
  // and not tried again: a container may not set what is of the whole machine.
  NodeSetupReport Mend(const node_checks::Report& report);

 private:
  const std::string sysctl_root_;
  std::set<std::string> refused_;  // By name.
};

}  // namespace spoke::netagent
