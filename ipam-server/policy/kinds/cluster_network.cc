// The kind ClusterNetwork: which CIDR blocks are of which class of traffic. All nodes get it.
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "fmt/core.h"
#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/selector.h"
#include "ipam-server/policy/platform_blocks.h"
#include "lib/ip/endpoint.h"
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
constexpr size_t kHubClass = 1;
constexpr size_t kPeerSpokeClass = 2;
static_assert(kClasses[kHubClass].key == "hub" && kClasses[kPeerSpokeClass].key == kDroppedShare);

using Blocks = std::vector<Listed<ip::Prefix>>;

// What nodes try to connect to, by the class that it is of.
struct Probes {
  std::vector<ip::Endpoint> hub;
  std::vector<ip::Endpoint> peer_spoke;
};

// Reads the targets behind `key`, which have to lie in blocks of the class of that name.
std::vector<ip::Endpoint> ReadTargets(const ConfigMap& probes, std::string_view key,
                                      const Blocks& blocks) {
  const auto targets = ReadEndpoints(probes, key, [&](const ip::Endpoint& target) -> absl::Status {
    for (const auto& block : blocks) {
      if (block.value.Contains(target.address)) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        fmt::format("{} is in no block of {}: list its block there, or name another target",
                    target.ToString(), key));
  });
  if (targets.size() > policy::kMaxProbes) {
    probes.Error(key, fmt::format("lists {} targets, more than the {} that nodes try: remove some",
                                  targets.size(), policy::kMaxProbes));
  }
  return Values(targets);
}

Probes ReadProbes(const ConfigMap& spec, const Blocks& hub, const Blocks& peer_spoke) {
  const ConfigMap probes = spec.Map("probes", config::Need::kOptional);
  return {.hub = ReadTargets(probes, "hub", hub),
          .peer_spoke = ReadTargets(probes, "peerSpoke", peer_spoke)};
}

class ClusterNetworkObject : public Spec {
 public:
  ClusterNetworkObject(std::string name, std::array<Blocks, kClasses.size()> blocks,
                       policy::Established established, Probes probes)
      : name_(std::move(name)),
        blocks_(std::move(blocks)),
        established_(established),
        probes_(std::move(probes)) {}

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
    if (!probes_.hub.empty()) json["probes"]["hub"] = Texts(probes_.hub);
    if (!probes_.peer_spoke.empty()) {
      json["probes"][std::string(kDroppedShare)] = Texts(probes_.peer_spoke);
    }
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
    policy::ClusterNetwork network{.established = established_,
                                   .hub_probes = probes_.hub,
                                   .peer_spoke_probes = probes_.peer_spoke};
    for (size_t i = 0; i < kClasses.size(); ++i) network.*kClasses[i].blocks = Values(blocks_[i]);
    return NodeEntry{.value = policy::ToWire(key.kind + "/" + key.name, network), .wanted = {}};
  }

 private:
  std::string name_;
  std::array<Blocks, kClasses.size()> blocks_;
  policy::Established established_;  // The rule for connections with peer spokes.
  Probes probes_;
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
  Probes probes = ReadProbes(spec, blocks[kHubClass], blocks[kPeerSpokeClass]);
  return std::make_shared<const ClusterNetworkObject>(name, std::move(blocks), established,
                                                      std::move(probes));
}

}  // namespace spoke::ipam
