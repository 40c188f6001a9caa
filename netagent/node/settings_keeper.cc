#include "netagent/node/settings_keeper.h"

namespace spoke::netagent {

NodeSetupReport SettingsKeeper::Mend(const node_checks::Report& report) {
  NodeSetupReport made;
  for (const node_checks::Finding& finding : report.findings) {
    for (const node_checks::KernelSetting& setting : finding.settings) {
      if (refused_.contains(setting.name)) continue;
      NodeSetupReport one = MakeSettings({setting}, sysctl_root_);
      if (!one.failed.empty()) refused_.insert(setting.name);
      for (ChangedSetting& changed : one.changed) made.changed.push_back(std::move(changed));
      for (absl::Status& failed : one.failed) made.failed.push_back(std::move(failed));
    }
  }
  return made;
}

}  // namespace spoke::netagent
