#include "ipam-server/policy/kinds/team.h"

#include <memory>
#include <utility>
#include <vector>

#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/objects/object.h"
#include "lib/policy/wire.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;

// All nodes get it.
class TeamObject : public Spec {
 public:
  TeamObject(std::string name, std::vector<Listed<std::string>> namespaces)
      : name_(std::move(name)), namespaces_(std::move(namespaces)) {}

  std::string ToJson() const override {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& item : namespaces_) list.push_back(item.value);
    return nlohmann::json{{"namespaces", std::move(list)}}.dump();
  }

  // A namespace belongs to one team.
  std::vector<Claim> Claims() const override {
    std::vector<Claim> claims;
    for (const auto& item : namespaces_) {
      claims.push_back({.space = "namespaces of teams",
                        .share = name_,
                        .what = item.value,
                        .role = "a namespace",
                        .path = "spec.namespaces",
                        .line = item.line});
    }
    return claims;
  }

  std::optional<NodeEntry> ForNodes(const ObjectKey& key) const override {
    return NodeEntry{
        .value = policy::ToWire(key.kind + "/" + key.name, policy::Team{Values(namespaces_)}),
        .wanted = {}};
  }

  const std::vector<Listed<std::string>>& namespaces() const { return namespaces_; }

 private:
  std::string name_;
  std::vector<Listed<std::string>> namespaces_;
};

}  // namespace

std::map<std::string, std::string> TeamsByNamespace(const ObjectSet& set) {
  std::map<std::string, std::string> teams;
  for (const auto& [key, object] : set.objects()) {
    const auto* team = SpecOf<TeamObject>(*object);
    if (team == nullptr) continue;
    for (const auto& item : team->namespaces()) teams.emplace(item.value, key.name);
  }
  return teams;
}

std::shared_ptr<const Spec> ReadTeam(const ConfigMap& spec, const std::string& name) {
  auto namespaces = ReadNamespaces(spec, "namespaces", Need::kRequired);
  if (spec.IsEmptyList("namespaces")) {
    spec.Error("namespaces", "needs at least one namespace; delete the team if it has none");
  }
  return std::make_shared<const TeamObject>(name, std::move(namespaces));
}

}  // namespace spoke::ipam
