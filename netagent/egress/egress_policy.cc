#include "netagent/egress/egress_policy.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

template <typename T>
std::map<std::string, const T*> ByName(const Policy& policy) {
  std::map<std::string, const T*> found;
  for (const auto& [key, entry] : policy.entries) {
    const size_t slash = key.find('/');
    const T* value = std::get_if<T>(&entry.value);
    if (value != nullptr && slash != std::string::npos) found.emplace(key.substr(slash + 1), value);
  }
  return found;
}

const std::vector<ip::Prefix>& Everything() {
  static const auto* const both =
      new std::vector<ip::Prefix>{ip::Prefix(), ip::Prefix::Of(ip::Address::V6(0, 0), 0).value()};
  return *both;
}

// Returns whether the policy names one by its address, as policies did before they had a field for
// it.
bool NamesPlatformService(const policy::EgressPolicy& policy) {
  return std::any_of(policy::kPlatformServices.begin(), policy::kPlatformServices.end(),
                     [&](const ip::Address& service) {
                       return std::find(
                                  policy.destination_cidrs.begin(), policy.destination_cidrs.end(),
                                  ip::Prefix::Host(service)) != policy.destination_cidrs.end();
                     });
}

// Reads policies one after the other; the errors do not name the policy yet.
class Resolver {
 public:
  explicit Resolver(const Policy& policy)
      : teams_(ByName<policy::Team>(policy)), groups_(ByName<policy::DestinationGroup>(policy)) {}

  absl::StatusOr<ResolvedEgress> Resolve(const std::string& name,
                                         const policy::EgressPolicy& policy) {
    ResolvedEgress out{.name = name,
                       .platform = policy.platform || NamesPlatformService(policy),
                       .mode = policy.mode,
                       .limits = policy.limits,
                       .cuts = policy.established == policy::Established::kCut &&
                               policy.mode == policy::EgressMode::kDrop};
    RETURN_IF_ERROR(ResolveDestinations(policy, out.destinations));
    if (policy.mode == policy::EgressMode::kUnspecified)
      return absl::InvalidArgumentError("has no mode");
    if (policy.mode != policy::EgressMode::kGateway) return out;
    if (!policy.gateway || policy.gateway->addresses.empty()) {
      return absl::InvalidArgumentError("has no gateway");
    }
    out.fallback = policy.fallback == policy::EgressMode::kUnspecified ? policy::EgressMode::kDrop
                                                                       : policy.fallback;
    if (out.fallback == policy::EgressMode::kGateway) {
      return absl::InvalidArgumentError("falls back on what it falls back from");
    }
    RETURN_IF_ERROR(ResolveGateways(*policy.gateway, out.gateways));
    return out;
  }

  // Returns the namespaces that it selects; empty for all.
  absl::StatusOr<std::set<std::string>> Namespaces(const policy::EgressPolicy& policy) const {
    std::set<std::string> names(policy.namespaces.begin(), policy.namespaces.end());
    for (const std::string& team : policy.teams) {
      const auto found = teams_.find(team);
      if (found == teams_.end()) {
        return absl::InvalidArgumentError(
            fmt::format("names the team {}, which is not there", team));
      }
      names.insert(found->second->namespaces.begin(), found->second->namespaces.end());
    }
    return names;
  }

  std::optional<uint16_t> tunnel_port() const { return tunnel_port_; }

 private:
  absl::Status ResolveDestinations(const policy::EgressPolicy& policy, Destinations& out) const {
    out.blocks = policy.destination_cidrs;
    out.excluded = policy.excluded_cidrs;
    for (const std::string& group : policy.destination_groups) {
      const auto found = groups_.find(group);
      if (found == groups_.end()) {
        return absl::InvalidArgumentError(
            fmt::format("names the destination group {}, which is not there", group));
      }
      const std::vector<ip::Prefix>& blocks = found->second->cidrs;
      out.outside.insert(out.outside.end(), blocks.begin(), blocks.end());
    }
    if (policy.destination_cidrs.empty() && policy.destination_groups.empty()) {
      out.outside = Everything();
    }
    return absl::OkStatus();
  }

  absl::Status ResolveTunnel(const policy::EgressGateway& gateway) {
    if (gateway.transport != policy::GatewayTransport::kVxlan) return absl::OkStatus();
    const uint16_t port = gateway.tunnel_port == 0 ? kTunnelPort : gateway.tunnel_port;
    if (tunnel_port_.value_or(port) != port) {
      return absl::InvalidArgumentError(
          fmt::format("has tunnelPort {}, another policy {}: a node listens at one, so write the "
                      "same in all",
                      port, *tunnel_port_));
    }
    tunnel_port_ = port;
    return absl::OkStatus();
  }

  absl::Status ResolveGateways(const policy::EgressGateway& gateway,
                               std::vector<ResolvedGateway>& out) {
    RETURN_IF_ERROR(ResolveTunnel(gateway));
    const uint16_t port = gateway.health_port == 0 ? kGatewayHealthPort : gateway.health_port;
    const std::set<ip::Address> draining(gateway.draining.begin(), gateway.draining.end());
    for (const ip::Address& address : gateway.addresses) {
      const auto [known, fresh] = ports_.emplace(address, port);
      if (!fresh && known->second != port) {
        return absl::InvalidArgumentError(
            fmt::format("asks gateway {} for its health at port {}, another policy at {}",
                        address.ToString(), port, known->second));
      }
      const GatewayEndpoint endpoint(address, gateway.transport);
      const bool twice = std::any_of(out.begin(), out.end(),
                                     [&](const auto& other) { return other.endpoint == endpoint; });
      if (!twice) out.push_back({endpoint, port, draining.contains(address)});
    }
    return absl::OkStatus();
  }

  const std::map<std::string, const policy::Team*> teams_;
  const std::map<std::string, const policy::DestinationGroup*> groups_;
  std::map<ip::Address, uint16_t> ports_;
  std::optional<uint16_t> tunnel_port_;
};

ResolvedEgress LikeIpMasqAgent(const IpMasqConfig& config) {
  ResolvedEgress out{.name = std::string(kIpMasqPolicy), .mode = policy::EgressMode::kMasquerade};
  for (const ip::Prefix& block : Everything()) {
    if (block.family() == ip::Family::kV4 || config.ipv6) out.destinations.outside.push_back(block);
  }
  out.destinations.excluded = config.non_masquerade;
  // These are of the class platform, so they are meant only where they are named.
  if (config.masquerade_link_local) {
    out.destinations.blocks.push_back(ip::Prefix::Of(ip::Address::V4(0xA9FE0000), 16).value());
  }
  if (config.masquerade_link_local_ipv6) {
    out.destinations.blocks.push_back(
        ip::Prefix::Of(ip::Address::V6(0xFE80'0000'0000'0000, 0), 10).value());
  }
  return out;
}

// Gives each namespace that some policy names its profile, and all others the first one.
absl::Status MakeProfiles(const std::vector<std::set<std::string>>& selected,
                          ResolvedPolicies& out) {
  std::map<std::string, Profile> of;
  Profile all;
  for (const auto& names : selected) {
    for (const std::string& name : names) of[name];
  }
  for (uint32_t i = 0; i < selected.size(); ++i) {
    if (selected[i].empty()) {
      all.push_back(i);
      for (auto& [name, profile] : of) profile.push_back(i);
    }
    for (const std::string& name : selected[i]) of[name].push_back(i);
  }
  std::map<Profile, uint32_t> numbers{{all, 0}};
  out.profiles = {all};
  for (const auto& [name, profile] : of) {
    const auto [known, fresh] =
        numbers.emplace(profile, static_cast<uint32_t>(out.profiles.size()));
    if (fresh) out.profiles.push_back(profile);
    out.profile_of.emplace(name, known->second);
  }
  if (out.profiles.size() > kMaxEgressProfiles) {
    return absl::InvalidArgumentError(
        fmt::format("egress policies select pods in {} different ways; at most {} are taken",
                    out.profiles.size(), kMaxEgressProfiles));
  }
  return absl::OkStatus();
}

}  // namespace

uint32_t ResolvedPolicies::ProfileOf(const std::string& pod_namespace) const {
  const auto found = profile_of.find(pod_namespace);
  return found == profile_of.end() ? 0 : found->second;
}

std::optional<bool> ResolvedPolicies::OpensPlatform(uint32_t profile) const {
  for (const uint32_t index : profiles.at(profile)) {
    if (policies[index].platform) return policies[index].mode != policy::EgressMode::kDrop;
  }
  return std::nullopt;
}

bool ResolvedPolicies::NamesPlatform() const {
  return std::any_of(policies.begin(), policies.end(),
                     [](const ResolvedEgress& policy) { return policy.platform; });
}

absl::StatusOr<ResolvedPolicies> ResolveEgress(const Policy& policy,
                                               const std::optional<IpMasqConfig>& ip_masq) {
  std::vector<std::pair<std::string, const policy::EgressPolicy*>> ordered;
  for (const auto& [name, egress] : ByName<policy::EgressPolicy>(policy))
    ordered.emplace_back(name, egress);
  // They are ordered by name already.
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.second->priority < b.second->priority;
  });
  if (ordered.size() > kMaxEgressPolicies) {
    return absl::InvalidArgumentError(fmt::format("{} egress policies; at most {} are taken",
                                                  ordered.size(), kMaxEgressPolicies));
  }
  ResolvedPolicies out;
  Resolver resolver(policy);
  std::vector<std::set<std::string>> selected;
  for (const auto& [name, egress] : ordered) {
    auto resolved = resolver.Resolve(name, *egress);
    if (!resolved.ok()) return base::Annotate(resolved.status(), "EgressPolicy/" + name);
    auto names = resolver.Namespaces(*egress);
    if (!names.ok()) return base::Annotate(names.status(), "EgressPolicy/" + name);
    // Teams without a namespace select nobody, and an empty set stands for all pods.
    if (names->empty() && !egress->teams.empty()) continue;
    out.policies.push_back(*std::move(resolved));
    selected.push_back(*std::move(names));
  }
  out.tunnel_port = resolver.tunnel_port();
  if (ip_masq) {
    out.policies.push_back(LikeIpMasqAgent(*ip_masq));
    selected.emplace_back();
  }
  RETURN_IF_ERROR(MakeProfiles(selected, out));
  return out;
}

}  // namespace spoke::netagent
