// The kind DestinationGroup: destinations on the Internet, as blocks and as names of hosts, that
// are counted by a name of their own, and that egress policies, limits and budgets may name. All
// nodes get it.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/host_name.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/selector.h"
#include "ipam-server/policy/platform_blocks.h"
#include "lib/policy/wire.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;

// Each node follows what its resolvers say of every one.
constexpr size_t kMaxNames = 64;
constexpr std::string_view kWhy =
    "groups are for the Internet, so nothing would be counted there; take it out";

class DestinationGroupObject : public Spec {
 public:
  DestinationGroupObject(std::string name, std::vector<Listed<ip::Prefix>> cidrs,
                         std::vector<Listed<std::string>> hosts)
      : name_(std::move(name)), cidrs_(std::move(cidrs)), hosts_(std::move(hosts)) {}

  std::string ToJson() const override {
    nlohmann::json json = nlohmann::json::object();
    for (const auto& cidr : cidrs_) json["cidrs"].push_back(cidr.value.ToString());
    for (const auto& host : hosts_) json["names"].push_back(host.value);
    return json.dump();
  }

  // A byte is counted in one group. A name may lie below another group's "*.": the longer one
  // counts.
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
    for (const auto& host : hosts_) {
      claims.push_back({.space = "names of destination groups",
                        .share = name_,
                        .what = host.value,
                        .role = "a name",
                        .path = "spec.names",
                        .line = host.line});
    }
    return claims;
  }

  std::vector<Avoidance> Avoidances() const override {
    std::vector<Avoidance> avoidances;
    for (const auto& cidr : cidrs_) {
      avoidances.push_back({.block = cidr.value,
                            .space = std::string(kNetworkSpace),
                            .shares = {},
                            .why = std::string(kWhy),
                            .path = "spec.cidrs",
                            .line = cidr.line});
    }
    return avoidances;
  }

  std::vector<HostName> HostNames() const override {
    std::vector<HostName> names;
    for (const auto& host : hosts_) {
      if (IsWildcard(host.value)) continue;
      names.push_back({.name = host.value,
                       .space = std::string(kNetworkSpace),
                       .why = std::string(kWhy),
                       .path = "spec.names",
                       .line = host.line});
    }
    return names;
  }

  std::optional<NodeEntry> ForNodes(const ObjectKey& key) const override {
    const policy::DestinationGroup group{.cidrs = Values(cidrs_), .names = Values(hosts_)};
    return NodeEntry{.value = policy::ToWire(key.kind + "/" + key.name, group), .wanted = {}};
  }

 private:
  std::string name_;
  std::vector<Listed<ip::Prefix>> cidrs_;
  std::vector<Listed<std::string>> hosts_;
};

}  // namespace

std::shared_ptr<const Spec> ReadDestinationGroup(const ConfigMap& spec, const std::string& name) {
  std::vector<Listed<ip::Prefix>> cidrs = ReadBlocks(spec, "cidrs", CheckOutsidePlatform);
  std::vector<Listed<std::string>> hosts = ReadHostNames(spec, "names");
  if (hosts.size() > kMaxNames) {
    spec.Error("names", fmt::format("has {} names, more than the {} allowed: name what they have "
                                    "in common (*.example.org), or list blocks in cidrs",
                                    hosts.size(), kMaxNames));
  }
  // What stands there and could not be read is a mistake by itself.
  const auto given = [&](std::string_view key) { return spec.Has(key) && !spec.IsEmptyList(key); };
  if (!given("cidrs") && !given("names")) {
    spec.Error("",
               "needs at least one block (cidrs) or host (names); delete the group if it has "
               "none");
  }
  return std::make_shared<const DestinationGroupObject>(name, std::move(cidrs), std::move(hosts));
}

}  // namespace spoke::ipam
