// The kind DestinationGroup: destinations on the Internet that are counted by a name of their own,
// and that egress policies may name. All nodes get it.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipam-server/core/policy/object.h"
#include "ipam-server/core/policy/party.h"
#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/platform_blocks.h"
#include "nlohmann/json.hpp"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;

class DestinationGroupObject : public Spec {
 public:
  DestinationGroupObject(std::string name, std::vector<Listed<ip::Prefix>> cidrs)
      : name_(std::move(name)), cidrs_(std::move(cidrs)) {}

  std::string ToJson() const override {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& cidr : cidrs_) list.push_back(cidr.value.ToString());
    return nlohmann::json{{"cidrs", std::move(list)}}.dump();
  }

  // A byte is counted in one group.
  std::vector<Claim> Claims() const override {
    std::vector<Claim> claims;
    for (const auto& cidr : cidrs_) {
      claims.push_back({.space = "destination groups",
                        .share = name_,
                        .what = cidr.value,
                        .role = "a block",
                        .path = "spec.cidrs",
                        .line = cidr.line});
    }
    return claims;
  }

  std::vector<Avoidance> Avoidances() const override {
    std::vector<Avoidance> avoidances;
    for (const auto& cidr : cidrs_) {
      avoidances.push_back({.block = cidr.value,
                            .space = std::string(kNetworkSpace),
                            .shares = {},
                            .why = "groups are for the Internet, so nothing would be counted "
                                   "there; take it out",
                            .path = "spec.cidrs",
                            .line = cidr.line});
    }
    return avoidances;
  }

  std::optional<NodeEntry> ForNodes(const ObjectKey& key) const override {
    v1::PolicyEntry entry;
    entry.set_key(key.kind + "/" + key.name);
    for (const auto& cidr : cidrs_) {
      entry.mutable_destination_group()->add_cidrs(cidr.value.ToString());
    }
    return NodeEntry{.value = entry.SerializeAsString(), .wanted = {}};
  }

 private:
  std::string name_;
  std::vector<Listed<ip::Prefix>> cidrs_;
};

}  // namespace

std::shared_ptr<const Spec> ReadDestinationGroup(const ConfigMap& spec, const std::string& name) {
  std::vector<Listed<ip::Prefix>> cidrs = ReadBlocks(spec, "cidrs", CheckOutsidePlatform);
  if (!spec.Has("cidrs") || spec.IsEmptyList("cidrs")) {
    spec.Error("cidrs", "needs at least one block; delete the group if it has none");
  }
  return std::make_shared<const DestinationGroupObject>(name, std::move(cidrs));
}

}  // namespace spoke::ipam
