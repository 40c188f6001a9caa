// Whether cloud-init will put the NIC's secondary addresses on the host itself.
//
// Its Azure datasource does so unless `apply_network_config_for_secondary_ips: false` stands under
// `datasource: Azure:` (cloud-init's page "Azure"; canonical/cloud-init issue 4432). Then the host
// answers for addresses that are meant for pods.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace spoke::node_checks {

enum class SecondaryIps {
  kNotInstalled,  // There is no cloud-init here, or it is switched off.
  kOff,           // The option says so.
  kOn,            // Nothing says otherwise, or the option says so.
};

struct CloudInitReading {
  SecondaryIps secondary_ips = SecondaryIps::kNotInstalled;
  std::string decided_by;                // The file that sets the option; empty: the default.
  std::vector<absl::Status> unreadable;  // Files that were passed over and may say more.
};

// Reads etc/cloud/cloud.cfg and then etc/cloud/cloud.cfg.d/*.cfg under `root` in the order of their
// names, where a later one overrides, as cloud-init does. `root` is "/" except in tests.
CloudInitReading ReadCloudInit(const std::string& root = "/");

}  // namespace spoke::node_checks
