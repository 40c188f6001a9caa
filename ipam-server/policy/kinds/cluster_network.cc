// The kind ClusterNetwork: which CIDR blocks are of which class of traffic. All nodes get it.
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/selector.h"
#include "ipam-server/policy/platform_blocks.h"
#include "lib/policy/wire.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;

struct TrafficClass {
  std::string_view key;
  std::string_view share;  // Blocks of one share may overlap.
  std::vector<ip::Prefix> policy::ClusterNetwork::*blocks;
};

constexpr std::string_view kServices = "services";
constexpr std::string_view kPlatform = "platform";
// Services are of the class cluster: their block may lie in one of it, or beside it.
constexpr std::array kClasses = {
    TrafficClass{"cluster", "cluster", &policy::ClusterNetwork::cluster},
    TrafficClass{"hub", "hub", &policy::ClusterNetwork::hub},
    TrafficClass{"peerSpoke", "peerSpoke", &policy::ClusterNetwork::peer_spoke},
    TrafficClass{"platform", "platform", &policy::ClusterNetwork::platform},
    TrafficClass{"storage", "storage", &policy::ClusterNetwork::storage},
    TrafficClass{kServices, "cluster", &policy::ClusterNetwork::services},
};

using Blocks = std::vector<Listed<ip::Prefix>>;

class ClusterNetworkObject : public Spec {
 public:
  ClusterNetworkObject(std::string name, std::array<Blocks, kClasses.size()> blocks,
                       policy::Established established)
      : name_(std::move(name)), blocks_(std::move(blocks)), established_(established) {}

  std::string ToJson() const override {
    nlohmann::json json = nlohmann::json::object();
    for (size_t i = 0; i < kClasses.size(); ++i) {
      for (const auto& block : blocks_[i]) {
        json[std::string(kClasses[i].key)].push_back(block.value.ToString());
      }
    }
    // Where nobody has said it, a server of an earlier version reads the object as well.
    if (established_ != policy::Established::kUnspecified)
      json["established"] = NameOf(established_);
    return json.dump();
  }

  std::vector<Claim> Claims() const override {
    std::vector<Claim> claims;
    for (size_t i = 0; i < kClasses.size(); ++i) {
      const std::string_view key = kClasses[i].key;
      for (const auto& block : blocks_[i]) {
        Claim claim{.space = std::string(kNetworkSpace),
                    .share = std::string(kClasses[i].share),
                    .what = block.value,
                    .role = fmt::format("a block of {}", key),
                    .path = fmt::format("spec.{}", key),
                    .line = block.line};
        claims.push_back(claim);
        if (key == kDroppedShare) {
          // Two spokes that share addresses could not both be told from the hub.
          claim.space = "spokes";
          claim.share = name_;
          claims.push_back(std::move(claim));
        } else if (key == kServices) {
          // No pod may have the address of a Service.
          claim.space = "pools";
          claim.share = kServices;
          claims.push_back(std::move(claim));
        }
      }
    }
    return claims;
  }

  std::optional<NodeEntry> ForNodes(const ObjectKey& key) const override {
    policy::ClusterNetwork network{.established = established_};
    for (size_t i = 0; i < kClasses.size(); ++i) network.*kClasses[i].blocks = Values(blocks_[i]);
    return NodeEntry{.value = policy::ToWire(key.kind + "/" + key.name, network), .wanted = {}};
  }

 private:
  std::string name_;
  std::array<Blocks, kClasses.size()> blocks_;
  policy::Established established_;  // The rule for connections with peer spokes.
};

}  // namespace

std::shared_ptr<const Spec> ReadClusterNetwork(const ConfigMap& spec, const std::string& name) {
  std::array<Blocks, kClasses.size()> blocks;
  bool given = false;
  for (size_t i = 0; i < kClasses.size(); ++i) {
    const bool is_platform = kClasses[i].key == kPlatform;
    blocks[i] = ReadBlocks(spec, kClasses[i].key, is_platform ? nullptr : CheckOutsidePlatform);
    // What stands there and could not be read is a mistake by itself.
    given = given || (spec.Has(kClasses[i].key) && !spec.IsEmptyList(kClasses[i].key));
  }
  if (!given) {
    spec.Error("",
               "says nothing: list the blocks of cluster, hub, peerSpoke, platform, storage or "
               "services");
  }
  const policy::Established established = ReadEstablished(spec);
  if (spec.Has("established") && !spec.Has(kDroppedShare)) {
    spec.Error("established",
               "means nothing without peerSpoke, with which alone nothing may be connected: remove "
               "it, or list peerSpoke");
  }
  return std::make_shared<const ClusterNetworkObject>(name, std::move(blocks), established);
}

}  // namespace spoke::ipam
