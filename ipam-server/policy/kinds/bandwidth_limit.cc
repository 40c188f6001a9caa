// The kind BandwidthLimit: how fast pods may exchange payload with the Internet, or with one
// destination group. All nodes get it.
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
#include "lib/policy/wire.h"
#include "lib/units/text.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;
using units::BitRate;
using units::ToText;
using Names = std::vector<Listed<std::string>>;

struct LimitSpec {
  policy::BandwidthLimit limit;
  Names teams;  // The names and lines, as in the group.
  Listed<std::string> group;
};

class BandwidthLimitObject : public Spec {
 public:
  explicit BandwidthLimitObject(LimitSpec spec) : spec_(std::move(spec)) {}

  std::string ToJson() const override {
    const policy::BandwidthLimit& limit = spec_.limit;
    nlohmann::json json = {{"mode", ModeText(limit.shadow)}};
    if (!limit.namespaces.empty()) json["namespaces"] = limit.namespaces;
    if (!limit.teams.empty()) json["teams"] = limit.teams;
    if (!limit.destination_group.empty()) json["destinationGroup"] = limit.destination_group;
    const auto set = [&](const char* key, const char* direction, BitRate rate) {
      if (!rate.is_zero()) json[key][direction] = ToText(rate);
    };
    set("perPod", "ingress", limit.pod_ingress);
    set("perPod", "egress", limit.pod_egress);
    set("perNode", "ingress", limit.node_ingress);
    set("perNode", "egress", limit.node_egress);
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
    return NodeEntry{.value = policy::ToWire(key.kind + "/" + key.name, spec_.limit), .wanted = {}};
  }

 private:
  LimitSpec spec_;
};

void ReadRates(const ConfigMap& spec, std::string_view key, BitRate& ingress, BitRate& egress) {
  if (!spec.Has(key)) return;
  const ConfigMap map = spec.Map(key, Need::kOptional);
  ReadRate(map, "ingress", Need::kOptional, ingress);
  ReadRate(map, "egress", Need::kOptional, egress);
  if (map.present() && map.Keys().empty()) {
    map.Error("", "says no rate: write ingress (towards the pod) or egress, or remove it");
  }
}

// One pod never has more than all of them together: whoever wrote so meant something else.
void CheckPart(const ConfigMap& spec, std::string_view direction, BitRate pod, BitRate node) {
  if (pod.is_zero() || node.is_zero() || pod <= node) return;
  spec.Map("perPod", Need::kOptional)
      .Error(direction,
             fmt::format("{} for each pod is more than {} for all of them on a node: lower it, or "
                         "raise perNode.{}",
                         ToText(pod), ToText(node), direction));
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
  policy::BandwidthLimit& limit = read.limit;
  limit.namespaces = Values(ReadNamespaces(spec, "namespaces", Need::kOptional));
  read.teams = ReadNames(spec, "teams", "a team");
  limit.teams = Values(read.teams);
  read.group = ReadScope(spec);
  limit.destination_group = read.group.value;
  ReadRates(spec, "perPod", limit.pod_ingress, limit.pod_egress);
  ReadRates(spec, "perNode", limit.node_ingress, limit.node_egress);
  limit.shadow = ReadShadow(spec);
  CheckSelection(spec);
  CheckPart(spec, "ingress", limit.pod_ingress, limit.node_ingress);
  CheckPart(spec, "egress", limit.pod_egress, limit.node_egress);
  return std::make_shared<const BandwidthLimitObject>(std::move(read));
}

}  // namespace spoke::ipam
