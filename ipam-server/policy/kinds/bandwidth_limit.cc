// The kind BandwidthLimit: how fast pods may exchange payload with the Internet, or with one
// destination group. All nodes get it.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/kinds/shaping_fields.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/rate_text.h"
#include "nlohmann/json.hpp"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;
using Names = std::vector<Listed<std::string>>;

// Bits of payload a second; 0: none.
struct Rates {
  uint64_t ingress = 0;
  uint64_t egress = 0;
};

struct LimitSpec {
  Names namespaces;
  Names teams;
  Listed<std::string> group;  // Empty: the Internet.
  Rates per_pod;
  Rates per_node;
  bool shadow = false;
};

nlohmann::json ToJson(const Rates& rates) {
  nlohmann::json json = nlohmann::json::object();
  if (rates.ingress != 0) json["ingress"] = RateText(rates.ingress);
  if (rates.egress != 0) json["egress"] = RateText(rates.egress);
  return json;
}

class BandwidthLimitObject : public Spec {
 public:
  explicit BandwidthLimitObject(LimitSpec spec) : spec_(std::move(spec)) {}

  std::string ToJson() const override {
    nlohmann::json json = {{"mode", ModeText(spec_.shadow)}};
    for (const auto& name : spec_.namespaces) json["namespaces"].push_back(name.value);
    for (const auto& name : spec_.teams) json["teams"].push_back(name.value);
    if (!spec_.group.value.empty()) json["destinationGroup"] = spec_.group.value;
    const auto set = [&](const char* key, const Rates& rates) {
      nlohmann::json map = ipam::ToJson(rates);
      if (!map.empty()) json[key] = std::move(map);
    };
    set("perPod", spec_.per_pod);
    set("perNode", spec_.per_node);
    return json.dump();
  }

  std::vector<Reference> References() const override {
    std::vector<Reference> references;
    for (const auto& team : spec_.teams) {
      references.push_back({{"Team", team.value}, "spec.teams", team.line});
    }
    if (!spec_.group.value.empty()) references.push_back(ReferenceTo(spec_.group));
    return references;
  }

  std::optional<NodeEntry> ForNodes(const ObjectKey& key) const override {
    v1::PolicyEntry entry;
    entry.set_key(key.kind + "/" + key.name);
    v1::BandwidthLimitPolicy& limit = *entry.mutable_bandwidth_limit();
    for (const auto& name : spec_.namespaces) limit.add_namespaces(name.value);
    for (const auto& name : spec_.teams) limit.add_teams(name.value);
    limit.set_destination_group(spec_.group.value);
    limit.set_pod_ingress(spec_.per_pod.ingress);
    limit.set_pod_egress(spec_.per_pod.egress);
    limit.set_node_ingress(spec_.per_node.ingress);
    limit.set_node_egress(spec_.per_node.egress);
    limit.set_shadow(spec_.shadow);
    return NodeEntry{.value = entry.SerializeAsString(), .wanted = {}};
  }

 private:
  LimitSpec spec_;
};

Rates ReadRates(const ConfigMap& spec, std::string_view key) {
  Rates rates;
  if (!spec.Has(key)) return rates;
  const ConfigMap map = spec.Map(key, Need::kOptional);
  ReadRate(map, "ingress", Need::kOptional, rates.ingress);
  ReadRate(map, "egress", Need::kOptional, rates.egress);
  if (map.present() && map.Keys().empty()) {
    map.Error("", "says no rate: write ingress (towards the pod) or egress, or remove it");
  }
  return rates;
}

// One pod never has more than all of them together: whoever wrote so meant something else.
void CheckPart(const ConfigMap& spec, std::string_view direction, uint64_t pod, uint64_t node) {
  if (pod == 0 || node == 0 || pod <= node) return;
  spec.Map("perPod", Need::kOptional)
      .Error(direction,
             fmt::format("{} for each pod is more than {} for all of them on a node: lower it, or "
                         "raise perNode.{}",
                         RateText(pod), RateText(node), direction));
}

void CheckSelection(const ConfigMap& spec) {
  for (const std::string_view key : {"namespaces", "teams"}) {
    if (spec.IsEmptyList(key)) {
      spec.Error(key, "an empty list selects nothing: remove it to select all pods");
    }
  }
  if (!spec.Has("perPod") && !spec.Has("perNode")) {
    spec.Error("", "limits nothing: write perPod or perNode, with ingress or egress");
  }
  if (spec.Has("perNode") && spec.Has("namespaces")) {
    spec.Error("perNode",
               "cannot be with namespaces: a node shares a total among all its pods, or among "
               "those of a team, and a pod is of one team only; make a Team of these namespaces, "
               "and name it in teams");
  }
}

}  // namespace

std::shared_ptr<const Spec> ReadBandwidthLimit(const ConfigMap& spec, const std::string& /*name*/) {
  LimitSpec read;
  read.namespaces = ReadNamespaces(spec, "namespaces", Need::kOptional);
  read.teams = ReadNames(spec, "teams", "a team");
  read.group = ReadScope(spec);
  read.per_pod = ReadRates(spec, "perPod");
  read.per_node = ReadRates(spec, "perNode");
  read.shadow = ReadShadow(spec);
  CheckSelection(spec);
  CheckPart(spec, "ingress", read.per_pod.ingress, read.per_node.ingress);
  CheckPart(spec, "egress", read.per_pod.egress, read.per_node.egress);
  return std::make_shared<const BandwidthLimitObject>(std::move(read));
}

}  // namespace spoke::ipam
