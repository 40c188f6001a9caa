// The parts of an egress policy that are maps of their own: the gateways and the limits. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ipam-server/policy/fields.h"
#include "lib/config/config_text.h"
#include "lib/ip/address.h"
#include "lib/policy/values.h"
#include "nlohmann/json_fwd.hpp"

namespace spoke::ipam {

// Reads `gateway` of `spec`, defaults filled in, and its addresses with their lines; `limits`. What
// is wrong is recorded.
policy::EgressGateway ReadGateway(const config::ConfigMap& spec,
                                  std::vector<Listed<ip::Address>>& addresses);
policy::EgressLimits ReadLimits(const config::ConfigMap& spec);

// The canonical form, defaults written out; of limits only those that there are.
nlohmann::json ToJson(const policy::EgressGateway& gateway);
nlohmann::json ToJson(const policy::EgressLimits& limits);

// Adds to `namespaces`, which stays sorted, those of Cilium's way to name them: `selectors:
// [{podSelector: {matchLabels: {io.kubernetes.pod.namespace: NAME}}}]`. Anything else that such a
// selector may say is a mistake: nodes know of pods what the runtime tells them, and that has no
// labels.
void ReadSelectors(const config::ConfigMap& spec, std::vector<Listed<std::string>>& namespaces);

}  // namespace spoke::ipam
