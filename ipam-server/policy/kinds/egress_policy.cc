// The kind EgressPolicy: how pods' traffic leaves the cluster. All nodes get it.
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/kinds/egress_fields.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/selector.h"
#include "ipam-server/policy/platform_blocks.h"
#include "nlohmann/json.hpp"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;
using Blocks = std::vector<Listed<ip::Prefix>>;
using Names = std::vector<Listed<std::string>>;

constexpr int32_t kMaxPriority = 1'000'000;

struct ModeName {
  std::string_view name;
  v1::EgressPolicy::Mode mode;
};
constexpr std::array kModes = {ModeName{"Masquerade", v1::EgressPolicy::MASQUERADE},
                               ModeName{"Routed", v1::EgressPolicy::ROUTED},
                               ModeName{"Gateway", v1::EgressPolicy::GATEWAY},
                               ModeName{"Drop", v1::EgressPolicy::DROP}};

std::string NameOf(v1::EgressPolicy::Mode mode) {
  for (const ModeName& known : kModes) {
    if (known.mode == mode) return std::string(known.name);
  }
  return "";
}

struct EgressSpec {
  Names namespaces;
  Names teams;
  Blocks destinations;
  Names groups;
  Blocks excluded;
  bool platform = false;
  v1::EgressPolicy::Mode mode = v1::EgressPolicy::MODE_UNSPECIFIED;
  std::optional<EgressGateways> gateways;
  v1::EgressPolicy::Mode fallback = v1::EgressPolicy::MODE_UNSPECIFIED;
  std::optional<EgressLimits> limits;
  int32_t priority = 0;
  v1::Established established = v1::ESTABLISHED_UNSPECIFIED;
};

std::vector<std::string> Texts(const Names& names) {
  std::vector<std::string> out;
  for (const auto& name : names) out.push_back(name.value);
  return out;
}

std::vector<std::string> Texts(const Blocks& blocks) {
  std::vector<std::string> out;
  for (const auto& block : blocks) out.push_back(block.value.ToString());
  return out;
}

class EgressPolicyObject : public Spec {
 public:
  explicit EgressPolicyObject(EgressSpec spec) : spec_(std::move(spec)) {}

  std::string ToJson() const override {
    nlohmann::json json = {{"mode", NameOf(spec_.mode)}, {"priority", spec_.priority}};
    const auto set = [&](const char* key, const auto& list) {
      if (!list.empty()) json[key] = Texts(list);
    };
    set("namespaces", spec_.namespaces);
    set("teams", spec_.teams);
    set("destinationCIDRs", spec_.destinations);
    set("destinationGroups", spec_.groups);
    set("excludedCIDRs", spec_.excluded);
    if (spec_.platform) json["platform"] = true;
    if (spec_.gateways) json["gateway"] = ipam::ToJson(*spec_.gateways);
    if (spec_.fallback != v1::EgressPolicy::MODE_UNSPECIFIED) {
      json["fallback"] = NameOf(spec_.fallback);
    }
    if (spec_.limits) json["limits"] = ipam::ToJson(*spec_.limits);
    // Where nobody has said it, a server of an earlier version reads the object as well.
    if (spec_.established != v1::ESTABLISHED_UNSPECIFIED) {
      json["established"] = ipam::NameOf(spec_.established);
    }
    return json.dump();
  }

  std::vector<Reference> References() const override {
    std::vector<Reference> references;
    for (const auto& team : spec_.teams) {
      references.push_back({{"Team", team.value}, "spec.teams", team.line});
    }
    for (const auto& group : spec_.groups) {
      references.push_back(
          {{"DestinationGroup", group.value}, "spec.destinationGroups", group.line});
    }
    return references;
  }

  std::vector<Avoidance> Avoidances() const override {
    std::vector<Avoidance> avoidances;
    for (const auto& block : spec_.destinations) {
      avoidances.push_back({.block = block.value,
                            .space = std::string(kNetworkSpace),
                            .shares = {"platform"},
                            .why = "the platform's addresses are named by platform: true alone; "
                                   "take it out",
                            .path = "spec.destinationCIDRs",
                            .line = block.line});
    }
    if (!spec_.gateways) return avoidances;
    for (const auto& address : spec_.gateways->addresses) {
      avoidances.push_back({.block = ip::Prefix::Host(address.value),
                            .space = std::string(kNetworkSpace),
                            .shares = {std::string(kDroppedShare), "platform"},
                            .why = "nodes could not reach the gateway there; choose another",
                            .path = "spec.gateway.addresses",
                            .line = address.line});
    }
    return avoidances;
  }

  std::optional<NodeEntry> ForNodes(const ObjectKey& key) const override {
    v1::PolicyEntry entry;
    entry.set_key(key.kind + "/" + key.name);
    v1::EgressPolicy& egress = *entry.mutable_egress();
    for (std::string& name : Texts(spec_.namespaces)) egress.add_namespaces(std::move(name));
    for (std::string& name : Texts(spec_.teams)) egress.add_teams(std::move(name));
    for (std::string& cidr : Texts(spec_.destinations)) {
      egress.add_destination_cidrs(std::move(cidr));
    }
    if (spec_.platform) {
      egress.set_platform(true);
      for (const std::string_view address : kPlatformServices) {
        egress.add_destination_cidrs(fmt::format("{}/32", address));
      }
    }
    for (std::string& name : Texts(spec_.groups)) egress.add_destination_groups(std::move(name));
    for (std::string& cidr : Texts(spec_.excluded)) egress.add_excluded_cidrs(std::move(cidr));
    egress.set_mode(spec_.mode);
    if (spec_.gateways) ToPolicy(*spec_.gateways, *egress.mutable_gateway());
    egress.set_fallback(spec_.fallback);
    if (spec_.limits) ToPolicy(*spec_.limits, *egress.mutable_limits());
    egress.set_priority(spec_.priority);
    egress.set_established(spec_.established);
    return NodeEntry{.value = entry.SerializeAsString(), .wanted = {}};
  }

 private:
  EgressSpec spec_;
};

v1::EgressPolicy::Mode ReadMode(const ConfigMap& spec, std::string_view key, Need need) {
  auto mode = v1::EgressPolicy::MODE_UNSPECIFIED;
  spec.Custom(key, need, [&](std::string_view text) {
    for (const ModeName& known : kModes) {
      if (known.name == text) mode = known.mode;
    }
    if (mode != v1::EgressPolicy::MODE_UNSPECIFIED) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("must be Masquerade, Routed, Gateway or Drop, not \"{}\"", text.substr(0, 64)));
  });
  return mode;
}

void ReadPriority(const ConfigMap& spec, int32_t& out) {
  spec.Custom("priority", Need::kOptional, [&](std::string_view text) {
    int32_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value < -kMaxPriority || value > kMaxPriority) {
      return absl::InvalidArgumentError(
          fmt::format("must be a whole number from {} to {}, not \"{}\"", -kMaxPriority,
                      kMaxPriority, text.substr(0, 64)));
    }
    out = value;
    return absl::OkStatus();
  });
}

// Those of `namespaces` and of `selectors`, sorted.
Names ReadSelected(const ConfigMap& spec) {
  Names all = ReadNamespaces(spec, "namespaces", Need::kOptional);
  ReadSelectors(spec, all);
  for (const std::string_view key : {"namespaces", "teams"}) {
    if (spec.IsEmptyList(key)) {
      spec.Error(key, "an empty list selects nothing: remove it to select all pods");
    }
  }
  return all;
}

absl::Status CheckDestination(const ip::Prefix& block) {
  if (block.ToString() == fmt::format("{}/32", kPlatformServices.front())) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is the platform's metadata service: write platform: true", block.ToString()));
  }
  return CheckOutsidePlatform(block);
}

void ReadDestinations(const ConfigMap& spec, EgressSpec& out) {
  out.destinations = ReadBlocks(spec, "destinationCIDRs", CheckDestination);
  out.groups = ReadNames(spec, "destinationGroups", "a destination group");
  out.excluded = ReadBlocks(spec, "excludedCIDRs", [&](const ip::Prefix& excluded) {
    for (const auto& destination : out.destinations) {
      if (destination.value != excluded) continue;
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is listed twice: line {} has it as a destination; remove one",
                      excluded.ToString(), destination.line));
    }
    return absl::OkStatus();
  });
  spec.Bool("platform", &out.platform, Need::kOptional);
  const auto given = [&](std::string_view key) { return spec.Has(key) && !spec.IsEmptyList(key); };
  if (!given("destinationCIDRs") && !given("destinationGroups") && !out.platform) {
    spec.Error("",
               "names no destination: list destinationCIDRs or destinationGroups, or write "
               "platform: true; for all of them write destinationCIDRs: [0.0.0.0/0, \"::/0\"]");
  }
}

// Gateways behind a tunnel take packets of their own family alone. What has none of its family
// would always fall back, which nobody means who has named the destination.
void CheckFamilies(const ConfigMap& spec, const EgressSpec& read) {
  if (!read.gateways || read.gateways->transport != v1::EgressPolicy::Gateway::VXLAN) return;
  for (const bool v4 : {true, false}) {
    const auto destination =
        std::find_if(read.destinations.begin(), read.destinations.end(),
                     [&](const auto& block) { return block.value.base().is_v4() == v4; });
    const auto& gateways = read.gateways->addresses;
    const bool has_gateway = std::any_of(gateways.begin(), gateways.end(),
                                         [&](const auto& one) { return one.value.is_v4() == v4; });
    if (destination == read.destinations.end() || gateways.empty() || has_gateway) continue;
    spec.Error("gateway",
               fmt::format("has no {0} address, but destinationCIDRs has {1}, and a tunnel carries "
                           "{0} to {0} addresses of gateways alone: add those, or take {1} out",
                           v4 ? "IPv4" : "IPv6", destination->value.ToString()));
  }
}

// What only the mode and the rest together tell.
void CheckMode(const ConfigMap& spec, const EgressSpec& read) {
  const bool is_gateway = read.mode == v1::EgressPolicy::GATEWAY;
  if (is_gateway && !spec.Has("gateway")) {
    spec.Error("mode", "Gateway needs the gateways: write gateway: {addresses: [...]}");
  }
  if (is_gateway && !spec.Has("fallback")) {
    spec.Error("mode",
               "Gateway needs a fallback for when no gateway is healthy: write fallback: "
               "Drop, Masquerade or Routed");
  }
  if (read.fallback == v1::EgressPolicy::GATEWAY) {
    spec.Error("fallback",
               "cannot be Gateway, since it is for when no gateway is healthy: write "
               "Drop, Masquerade or Routed");
  }
  if (!is_gateway && read.mode != v1::EgressPolicy::MODE_UNSPECIFIED) {
    for (const std::string_view key : {"gateway", "fallback"}) {
      if (!spec.Has(key)) continue;
      spec.Error(key, fmt::format("means nothing with mode {}: remove it, or write mode: Gateway",
                                  NameOf(read.mode)));
    }
  }
  if (read.platform && read.mode != v1::EgressPolicy::MASQUERADE &&
      read.mode != v1::EgressPolicy::DROP && read.mode != v1::EgressPolicy::MODE_UNSPECIFIED) {
    spec.Error(
        "platform",
        fmt::format("cannot be reached with mode {}, since the platform's services answer "
                    "the node alone: write mode: Masquerade (or Drop) in a policy of its own",
                    NameOf(read.mode)));
  }
  if (read.mode != v1::EgressPolicy::DROP && read.mode != v1::EgressPolicy::MODE_UNSPECIFIED &&
      spec.Has("established")) {
    spec.Error(
        "established",
        fmt::format("means nothing with mode {}, which lets connections begin: remove it, or "
                    "write mode: Drop",
                    NameOf(read.mode)));
  }
  if (read.mode == v1::EgressPolicy::DROP && spec.Has("limits")) {
    spec.Error("limits", "means nothing with mode Drop, which lets no connection through");
  }
}

}  // namespace

std::shared_ptr<const Spec> ReadEgressPolicy(const ConfigMap& spec, const std::string& /*name*/) {
  EgressSpec read;
  read.namespaces = ReadSelected(spec);
  read.teams = ReadNames(spec, "teams", "a team");
  ReadDestinations(spec, read);
  read.mode = ReadMode(spec, "mode", Need::kRequired);
  if (spec.Has("gateway")) read.gateways = ReadGateways(spec);
  read.fallback = ReadMode(spec, "fallback", Need::kOptional);
  if (spec.Has("limits")) read.limits = ReadLimits(spec);
  ReadPriority(spec, read.priority);
  read.established = ReadEstablished(spec);
  CheckMode(spec, read);
  CheckFamilies(spec, read);
  return std::make_shared<const EgressPolicyObject>(std::move(read));
}

}  // namespace spoke::ipam
