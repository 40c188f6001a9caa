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
#include "lib/policy/wire.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;
using policy::EgressMode;
using Blocks = std::vector<Listed<ip::Prefix>>;
using Names = std::vector<Listed<std::string>>;

constexpr int32_t kMaxPriority = 1'000'000;

struct ModeName {
  std::string_view name;
  EgressMode mode;
};
constexpr std::array kModes = {
    ModeName{"Masquerade", EgressMode::kMasquerade}, ModeName{"Routed", EgressMode::kRouted},
    ModeName{"Gateway", EgressMode::kGateway}, ModeName{"Drop", EgressMode::kDrop}};

std::string NameOf(EgressMode mode) {
  for (const ModeName& known : kModes) {
    if (known.mode == mode) return std::string(known.name);
  }
  return "";
}

struct EgressSpec {
  policy::EgressPolicy policy;
  // What rules between objects need the lines of.
  Names teams;
  Names groups;
  Blocks destinations;
  std::vector<Listed<ip::Address>> gateways;
};

class EgressPolicyObject : public Spec {
 public:
  explicit EgressPolicyObject(EgressSpec spec) : spec_(std::move(spec)) {}

  std::string ToJson() const override {
    const policy::EgressPolicy& policy = spec_.policy;
    nlohmann::json json = {{"mode", NameOf(policy.mode)}, {"priority", policy.priority}};
    const auto set = [&](const char* key, const std::vector<std::string>& list) {
      if (!list.empty()) json[key] = list;
    };
    set("namespaces", policy.namespaces);
    set("teams", policy.teams);
    set("destinationCIDRs", Texts(policy.destination_cidrs));
    set("destinationGroups", policy.destination_groups);
    set("excludedCIDRs", Texts(policy.excluded_cidrs));
    if (policy.platform) json["platform"] = true;
    if (policy.gateway) json["gateway"] = ipam::ToJson(*policy.gateway);
    if (policy.fallback != EgressMode::kUnspecified) json["fallback"] = NameOf(policy.fallback);
    if (policy.limits != policy::EgressLimits()) json["limits"] = ipam::ToJson(policy.limits);
    // Where nobody has said it, a server of an earlier version reads the object as well.
    if (policy.established != policy::Established::kUnspecified) {
      json["established"] = ipam::NameOf(policy.established);
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
    for (const auto& address : spec_.gateways) {
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
    policy::EgressPolicy policy = spec_.policy;
    if (policy.platform) {
      for (const ip::Address& service : policy::kPlatformServices) {
        policy.destination_cidrs.push_back(ip::Prefix::Host(service));
      }
    }
    return NodeEntry{.value = policy::ToWire(key.kind + "/" + key.name, policy), .wanted = {}};
  }

 private:
  EgressSpec spec_;
};

EgressMode ReadMode(const ConfigMap& spec, std::string_view key, Need need) {
  auto mode = EgressMode::kUnspecified;
  spec.Custom(key, need, [&](std::string_view text) {
    for (const ModeName& known : kModes) {
      if (known.name == text) mode = known.mode;
    }
    if (mode != EgressMode::kUnspecified) return absl::OkStatus();
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

// Returns the names of `namespaces` and of `selectors`, sorted.
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
  if (block == ip::Prefix::Host(policy::kPlatformServices.front())) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is the platform's metadata service: write platform: true", block.ToString()));
  }
  return CheckOutsidePlatform(block);
}

void ReadDestinations(const ConfigMap& spec, EgressSpec& out) {
  policy::EgressPolicy& policy = out.policy;
  out.destinations = ReadBlocks(spec, "destinationCIDRs", CheckDestination);
  policy.destination_cidrs = Values(out.destinations);
  out.groups = ReadNames(spec, "destinationGroups", "a destination group");
  policy.destination_groups = Values(out.groups);
  policy.excluded_cidrs = Values(ReadBlocks(spec, "excludedCIDRs", [&](const ip::Prefix& excluded) {
    for (const auto& destination : out.destinations) {
      if (destination.value != excluded) continue;
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is listed twice: line {} has it as a destination; remove one",
                      excluded.ToString(), destination.line));
    }
    return absl::OkStatus();
  }));
  spec.Bool("platform", &policy.platform, Need::kOptional);
  const auto given = [&](std::string_view key) { return spec.Has(key) && !spec.IsEmptyList(key); };
  if (!given("destinationCIDRs") && !given("destinationGroups") && !policy.platform) {
    spec.Error("",
               "names no destination: list destinationCIDRs or destinationGroups, or write "
               "platform: true; for all of them write destinationCIDRs: [0.0.0.0/0, \"::/0\"]");
  }
}

// Gateways behind a tunnel take packets of their own family alone. What has none of its family
// would always fall back, which nobody means who has named the destination.
void CheckFamilies(const ConfigMap& spec, const policy::EgressPolicy& read) {
  if (!read.gateway || read.gateway->transport != policy::GatewayTransport::kVxlan) return;
  for (const bool v4 : {true, false}) {
    const auto destination =
        std::find_if(read.destination_cidrs.begin(), read.destination_cidrs.end(),
                     [&](const ip::Prefix& block) { return block.base().is_v4() == v4; });
    const auto& gateways = read.gateway->addresses;
    const bool has_gateway = std::any_of(gateways.begin(), gateways.end(),
                                         [&](const ip::Address& one) { return one.is_v4() == v4; });
    if (destination == read.destination_cidrs.end() || gateways.empty() || has_gateway) continue;
    spec.Error("gateway",
               fmt::format("has no {0} address, but destinationCIDRs has {1}, and a tunnel carries "
                           "{0} to {0} addresses of gateways alone: add those, or take {1} out",
                           v4 ? "IPv4" : "IPv6", destination->ToString()));
  }
}

// What only the mode and the rest together tell.
void CheckMode(const ConfigMap& spec, const policy::EgressPolicy& read) {
  const bool is_gateway = read.mode == EgressMode::kGateway;
  if (is_gateway && !spec.Has("gateway")) {
    spec.Error("mode", "Gateway needs the gateways: write gateway: {addresses: [...]}");
  }
  if (is_gateway && !spec.Has("fallback")) {
    spec.Error("mode",
               "Gateway needs a fallback for when no gateway is healthy: write fallback: "
               "Drop, Masquerade or Routed");
  }
  if (read.fallback == EgressMode::kGateway) {
    spec.Error("fallback",
               "cannot be Gateway, since it is for when no gateway is healthy: write "
               "Drop, Masquerade or Routed");
  }
  if (!is_gateway && read.mode != EgressMode::kUnspecified) {
    for (const std::string_view key : {"gateway", "fallback"}) {
      if (!spec.Has(key)) continue;
      spec.Error(key, fmt::format("means nothing with mode {}: remove it, or write mode: Gateway",
                                  NameOf(read.mode)));
    }
  }
  if (read.platform && read.mode != EgressMode::kMasquerade && read.mode != EgressMode::kDrop &&
      read.mode != EgressMode::kUnspecified) {
    spec.Error(
        "platform",
        fmt::format("cannot be reached with mode {}, since the platform's services answer "
                    "the node alone: write mode: Masquerade (or Drop) in a policy of its own",
                    NameOf(read.mode)));
  }
  if (read.mode != EgressMode::kDrop && read.mode != EgressMode::kUnspecified &&
      spec.Has("established")) {
    spec.Error(
        "established",
        fmt::format("means nothing with mode {}, which lets connections begin: remove it, or "
                    "write mode: Drop",
                    NameOf(read.mode)));
  }
  if (read.mode == EgressMode::kDrop && spec.Has("limits")) {
    spec.Error("limits", "means nothing with mode Drop, which lets no connection through");
  }
}

}  // namespace

std::shared_ptr<const Spec> ReadEgressPolicy(const ConfigMap& spec, const std::string& /*name*/) {
  EgressSpec read;
  policy::EgressPolicy& policy = read.policy;
  policy.namespaces = Values(ReadSelected(spec));
  read.teams = ReadNames(spec, "teams", "a team");
  policy.teams = Values(read.teams);
  ReadDestinations(spec, read);
  policy.mode = ReadMode(spec, "mode", Need::kRequired);
  if (spec.Has("gateway")) policy.gateway = ReadGateway(spec, read.gateways);
  policy.fallback = ReadMode(spec, "fallback", Need::kOptional);
  if (spec.Has("limits")) policy.limits = ReadLimits(spec);
  ReadPriority(spec, policy.priority);
  policy.established = ReadEstablished(spec);
  CheckMode(spec, policy);
  CheckFamilies(spec, policy);
  return std::make_shared<const EgressPolicyObject>(std::move(read));
}

}  // namespace spoke::ipam
