// The parts of an egress policy that are maps of their own: the gateways and the limits. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ipam-server/policy/fields.h"
#include "lib/config/config_text.h"
#include "lib/ip/address.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {

struct EgressGateways {
  std::vector<Listed<ip::Address>> addresses;
  uint32_t health_port = 9467;
  std::vector<Listed<ip::Address>> draining;  // Some of `addresses`.
  v1::EgressPolicy::Gateway::Transport transport = v1::EgressPolicy::Gateway::DIRECT;
  uint32_t tunnel_port = 4789;  // With VXLAN.
};

// Of each pod; 0: none.
struct EgressLimits {
  uint32_t connections = 0;
  uint32_t new_connections_per_second = 0;
  uint32_t connections_per_destination = 0;
  uint32_t new_connections_per_second_per_destination = 0;
};

// `gateway` and `limits` of `spec`. What is wrong is taken down.
EgressGateways ReadGateways(const config::ConfigMap& spec);
EgressLimits ReadLimits(const config::ConfigMap& spec);

// The canonical form, defaults written out; of limits only those that there are.
nlohmann::json ToJson(const EgressGateways& gateways);
nlohmann::json ToJson(const EgressLimits& limits);
void ToPolicy(const EgressGateways& gateways, v1::EgressPolicy::Gateway& out);
void ToPolicy(const EgressLimits& limits, v1::EgressPolicy::Limits& out);

// Adds to `namespaces`, which stays sorted, those of Cilium's way to name them: `selectors:
// [{podSelector: {matchLabels: {io.kubernetes.pod.namespace: NAME}}}]`. Anything else that such a
// selector may say is a mistake: nodes know of pods what the runtime tells them, and that has no
// labels.
void ReadSelectors(const config::ConfigMap& spec, std::vector<Listed<std::string>>& namespaces);

}  // namespace spoke::ipam
