// The sections "kubernetes" and "reachability" of the server's configuration. Pure.
#pragma once

#include "ipam-server/config.h"
#include "lib/config/config_text.h"

namespace spoke::ipam {

// Reads what `map`, the value of "kubernetes", holds; mistakes go on the document's record.
KubernetesConfig ReadKubernetes(const config::ConfigMap& map);
// The same for "reachability".
void ReadReachability(const config::ConfigMap& map, ReachabilitySettings& out);

}  // namespace spoke::ipam
