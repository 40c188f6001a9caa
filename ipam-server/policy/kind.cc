#include "ipam-server/policy/kind.h"

#include <algorithm>
#include <array>

namespace spoke::ipam {

// Each is defined in kinds/.
std::shared_ptr<const Spec> ReadBandwidthBudget(const config::ConfigMap& spec,
                                                const std::string& name);
std::shared_ptr<const Spec> ReadBandwidthLimit(const config::ConfigMap& spec,
                                               const std::string& name);
std::shared_ptr<const Spec> ReadClusterNetwork(const config::ConfigMap& spec,
                                               const std::string& name);
std::shared_ptr<const Spec> ReadDestinationGroup(const config::ConfigMap& spec,
                                                 const std::string& name);
std::shared_ptr<const Spec> ReadEgressPolicy(const config::ConfigMap& spec,
                                             const std::string& name);
std::shared_ptr<const Spec> ReadNodeRemedy(const config::ConfigMap& spec, const std::string& name);
std::shared_ptr<const Spec> ReadPool(const config::ConfigMap& spec, const std::string& name);
std::shared_ptr<const Spec> ReadTeam(const config::ConfigMap& spec, const std::string& name);

namespace {

constexpr std::array kKinds = {
    Kind{"BandwidthBudget", ReadBandwidthBudget},
    Kind{"BandwidthLimit", ReadBandwidthLimit},
    Kind{"ClusterNetwork", ReadClusterNetwork},
    Kind{"DestinationGroup", ReadDestinationGroup},
    Kind{"EgressPolicy", ReadEgressPolicy},
    Kind{"NodeRemedy", ReadNodeRemedy},
    Kind{"Pool", ReadPool},
    Kind{"Team", ReadTeam},
};

}  // namespace

std::span<const Kind> Kinds() { return kKinds; }

const Kind* FindKind(std::string_view name) {
  const auto* found = std::find_if(kKinds.begin(), kKinds.end(),
                                   [&](const Kind& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : found;
}

std::string KnownKinds() {
  std::string names;
  for (const Kind& kind : kKinds) {
    if (!names.empty()) names += ", ";
    names += kind.name;
  }
  return names;
}

}  // namespace spoke::ipam
