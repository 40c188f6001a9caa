#include "ipam-server/policy/kinds/pool.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/objects/pool_range.h"
#include "lib/base/status.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;

constexpr std::string_view kKind = "Pool";
constexpr uint32_t kMaxAddressesPerNode = 4096;
constexpr size_t kMaxVnet = 512;  // A resource id of Azure has some 200.

class PoolObject : public Spec {
 public:
  PoolObject(PoolSpec pool, int cidr_line) : pool_(std::move(pool)), cidr_line_(cidr_line) {}

  const PoolSpec& pool() const { return pool_; }

  std::string ToJson() const override {
    nlohmann::json json = {{"cidr", pool_.cidr.ToString()},
                           {"reserveFirst", pool_.reserve_first},
                           {"reserveLast", pool_.reserve_last}};
    if (pool_.block_length != 0) json["blockPrefixLength"] = pool_.block_length;
    if (!pool_.vnet.empty()) json["vnet"] = pool_.vnet;
    if (!pool_.node_labels.empty()) json["nodeLabels"] = pool_.node_labels;
    if (!pool_.namespaces.empty()) json["namespaces"] = pool_.namespaces;
    if (const auto& target = pool_.target) {
      json["nodeAddresses"] = {{"min", target->min},
                               {"batch", target->batch},
                               {"spare", target->spare},
                               {"max", target->max}};
    }
    return json.dump();
  }

  // Pools are apart from each other. They lie in the cluster, so no other class of traffic may have
  // their addresses.
  std::vector<Claim> Claims() const override {
    Claim claim{.space = "pools",
                .share = pool_.name,
                .what = pool_.cidr,
                .role = "the cidr",
                .path = "spec.cidr",
                .line = cidr_line_};
    Claim network = claim;
    network.space = "networks";
    network.share = "cluster";
    return {std::move(claim), std::move(network)};
  }

  absl::Status CheckChange(const Spec* next, const ObjectUse& use) const override {
    if (use.held == 0) return absl::OkStatus();
    const auto refuse = [&](std::string_view what) {
      return absl::FailedPreconditionError(
          fmt::format("{} addresses of pool \"{}\" are in use, so {}; drain the nodes that have "
                      "them first",
                      use.held, pool_.name, what));
    };
    const auto* pool = dynamic_cast<const PoolObject*>(next);
    if (pool == nullptr) return refuse("it cannot be deleted");
    const PoolSpec& after = pool->pool_;
    if (after.block_length != pool_.block_length) {
      return refuse("the length of its blocks cannot change");
    }
    if (after.vnet != pool_.vnet) return refuse("it cannot move to another vnet");
    const auto range = UsableRange(after);
    for (const ip::Address& address : {use.lowest, use.highest}) {
      if (!range || !range->Contains(address)) {
        return refuse(fmt::format("it cannot shrink to {}, where {} would no longer be usable",
                                  after.cidr.ToString(), address.ToString()));
      }
    }
    return absl::OkStatus();
  }

 private:
  PoolSpec pool_;
  int cidr_line_;
};

void ReadTarget(const ConfigMap& spec, PoolSpec& pool) {
  if (!spec.Has("nodeAddresses")) return;
  const ConfigMap map = spec.Map("nodeAddresses", Need::kOptional);
  TargetPolicy target;
  map.Uint32("min", &target.min, Need::kOptional, {0, kMaxAddressesPerNode});
  map.Uint32("batch", &target.batch, Need::kOptional, {1, kMaxAddressesPerNode});
  map.Double("spare", &target.spare, Need::kOptional, {0.0, 100.0});
  map.Uint32("max", &target.max, Need::kOptional, {1, kMaxAddressesPerNode});
  if (target.min > target.max) {
    map.Error("min", fmt::format("{} is more than max, {}: lower it, or raise max", target.min,
                                 target.max));
  }
  pool.target = target;
}

void ReadVnet(const ConfigMap& spec, PoolSpec& pool) {
  spec.Custom("vnet", Need::kOptional, [&](std::string_view text) {
    if (text.size() > kMaxVnet ||
        !std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; })) {
      return absl::InvalidArgumentError(fmt::format(
          "must be the name or the id of a virtual network: up to {} letters, digits and signs of "
          "ASCII, without spaces",
          kMaxVnet));
    }
    pool.vnet = text;
    return absl::OkStatus();
  });
}

// What only all fields together tell.
void CheckRoom(const ConfigMap& spec, const PoolSpec& pool) {
  const std::string cidr = pool.cidr.ToString();
  const auto bits = static_cast<uint32_t>(pool.cidr.base().bits());
  const auto length = static_cast<uint32_t>(pool.cidr.length());
  if (spec.Has("blockPrefixLength") && (pool.block_length <= length || pool.block_length > bits)) {
    if (length == bits) {
      return spec.Error("blockPrefixLength", cidr + " is one address and has no blocks: remove it");
    }
    return spec.Error("blockPrefixLength",
                      fmt::format("must be from {} to {} in a pool of {}, not {}", length + 1, bits,
                                  cidr, pool.block_length));
  }
  if (UsableRange(pool)) return;
  const std::string what = pool.block_length == 0
                               ? std::string("address")
                               : fmt::format("whole block of /{}", pool.block_length);
  spec.Error("cidr", fmt::format("{} has no {} left without the {} reserved first (reserveFirst) "
                                 "and {} last (reserveLast): take a larger one or reserve fewer",
                                 cidr, what, pool.reserve_first, pool.reserve_last));
}

}  // namespace

std::shared_ptr<const Spec> ReadPool(const ConfigMap& spec, const std::string& name) {
  PoolSpec pool;
  pool.name = name;
  bool has_cidr = false;
  spec.Custom("cidr", Need::kRequired, [&](std::string_view text) {
    ASSIGN_OR_RETURN(pool.cidr, ip::Prefix::Parse(text));
    has_cidr = true;
    return absl::OkStatus();
  });
  spec.Uint32("reserveFirst", &pool.reserve_first, Need::kOptional);
  spec.Uint32("reserveLast", &pool.reserve_last, Need::kOptional);
  spec.Uint32("blockPrefixLength", &pool.block_length, Need::kOptional, {1, 128});
  ReadVnet(spec, pool);
  pool.node_labels = ReadNodeLabels(spec, "nodeLabels");
  for (const auto& item : ReadNamespaces(spec, "namespaces", Need::kOptional)) {
    pool.namespaces.push_back(item.value);
  }
  ReadTarget(spec, pool);
  if (has_cidr) CheckRoom(spec, pool);
  return std::make_shared<const PoolObject>(std::move(pool), spec.LineOf("cidr"));
}

const PoolSpec* PoolOf(const PolicyObject& object) {
  const auto* spec = SpecOf<PoolObject>(object);
  return spec == nullptr ? nullptr : &spec->pool();
}

std::vector<PoolSpec> PoolsOf(const ObjectSet& set) {
  std::vector<PoolSpec> pools;
  for (const auto& [key, object] : set.objects()) {
    if (const PoolSpec* pool = PoolOf(*object)) pools.push_back(*pool);
  }
  return pools;
}

PolicyObject ConfiguredPool(const PoolSpec& spec) {
  return {.key = {.kind = std::string(kKind), .name = spec.name},
          .spec = std::make_shared<const PoolObject>(spec, 0)};
}

}  // namespace spoke::ipam
