// The kind ClusterNetwork: which CIDR blocks are of which class of traffic. All nodes get it.
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/core/policy/object.h"
#include "ipam-server/policy/fields.h"
#include "nlohmann/json.hpp"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;

struct TrafficClass {
  std::string_view key;
  void (*add)(v1::ClusterNetworkPolicy& policy, std::string block);
};

using Policy = v1::ClusterNetworkPolicy;
constexpr std::array kClasses = {
    TrafficClass{"cluster",
                 [](Policy& to, std::string block) { to.add_cluster(std::move(block)); }},
    TrafficClass{"hub", [](Policy& to, std::string block) { to.add_hub(std::move(block)); }},
    TrafficClass{"peerSpoke",
                 [](Policy& to, std::string block) { to.add_peer_spoke(std::move(block)); }},
    TrafficClass{"platform",
                 [](Policy& to, std::string block) { to.add_platform(std::move(block)); }},
    TrafficClass{"storage",
                 [](Policy& to, std::string block) { to.add_storage(std::move(block)); }},
};

using Blocks = std::vector<Listed<ip::Prefix>>;

class ClusterNetworkObject : public Spec {
 public:
  explicit ClusterNetworkObject(std::array<Blocks, kClasses.size()> blocks)
      : blocks_(std::move(blocks)) {}

  std::string ToJson() const override {
    nlohmann::json json = nlohmann::json::object();
    for (size_t i = 0; i < kClasses.size(); ++i) {
      for (const auto& block : blocks_[i]) {
        json[std::string(kClasses[i].key)].push_back(block.value.ToString());
      }
    }
    return json.dump();
  }

  std::vector<Claim> Claims() const override {
    std::vector<Claim> claims;
    for (size_t i = 0; i < kClasses.size(); ++i) {
      const std::string_view key = kClasses[i].key;
      for (const auto& block : blocks_[i]) {
        claims.push_back({.space = "networks",
                          .share = std::string(key),
                          .what = block.value,
                          .role = fmt::format("a block of {}", key),
                          .path = fmt::format("spec.{}", key),
                          .line = block.line});
      }
    }
    return claims;
  }

  std::optional<NodeEntry> ForNodes(const ObjectKey& key) const override {
    v1::PolicyEntry entry;
    entry.set_key(key.kind + "/" + key.name);
    Policy& policy = *entry.mutable_cluster_network();
    for (size_t i = 0; i < kClasses.size(); ++i) {
      for (const auto& block : blocks_[i]) kClasses[i].add(policy, block.value.ToString());
    }
    return NodeEntry{.value = entry.SerializeAsString(), .wanted = {}};
  }

 private:
  std::array<Blocks, kClasses.size()> blocks_;
};

}  // namespace

std::shared_ptr<const Spec> ReadClusterNetwork(const ConfigMap& spec, const std::string& /*name*/) {
  std::array<Blocks, kClasses.size()> blocks;
  bool given = false;
  for (size_t i = 0; i < kClasses.size(); ++i) {
    blocks[i] = ReadBlocks(spec, kClasses[i].key);
    // What stands there and could not be read is a mistake by itself.
    given = given || (spec.Has(kClasses[i].key) && !spec.IsEmptyList(kClasses[i].key));
  }
  if (!given) {
    spec.Error("", "says nothing: list the blocks of cluster, hub, peerSpoke, platform or storage");
  }
  return std::make_shared<const ClusterNetworkObject>(std::move(blocks));
}

}  // namespace spoke::ipam
