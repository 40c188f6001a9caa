#include "lib/policy/wire.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "fmt/core.h"
#include "lib/base/dns_name.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::policy {
namespace {

using Texts = google::protobuf::RepeatedPtrField<std::string>;

// The longest key: a kind, a slash, and a name of 253 (RFC 1123 subdomain).
constexpr size_t kMaxKeyBytes = 320;

// The names of the kinds, by the index of Value.
constexpr std::array<std::string_view, std::variant_size_v<Value>> kKinds = {"",
                                                                             "ClusterNetwork",
                                                                             "Team",
                                                                             "DestinationGroup",
                                                                             "EgressPolicy",
                                                                             "BandwidthLimit",
                                                                             "BandwidthBudget"};

absl::Status CheckKey(const std::string& key, std::string_view kind) {
  const size_t slash = key.find('/');
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (slash == std::string::npos || slash == 0 || slash + 1 == key.size() ||
      key.size() > kMaxKeyBytes || !printable) {
    return absl::InvalidArgumentError(fmt::format(
        "a policy key of {} bytes is not KIND/NAME of at most {}", key.size(), kMaxKeyBytes));
  }
  if (!kind.empty() && std::string_view(key).substr(0, slash) != kind) {
    return absl::InvalidArgumentError(fmt::format("{} holds a {}", key, kind));
  }
  return absl::OkStatus();
}

// Reads fields until the first mistake.
class Reader {
 public:
  std::vector<std::string> Names(std::string_view field, const Texts& in) {
    if (!CheckSize(field, in)) return {};
    return {in.begin(), in.end()};
  }

  std::vector<std::string> Namespaces(const Texts& in) {
    for (const std::string& name : in) {
      if (!base::IsDnsLabel(name)) Refuse(fmt::format("namespaces: '{}' is no namespace", name));
    }
    return Names("namespaces", in);
  }

  // Reads blocks, addresses or endpoints: whatever T::Parse() makes of a text.
  template <typename T>
  std::vector<T> Parsed(std::string_view field, const Texts& in, size_t most = kMaxItems) {
    std::vector<T> out;
    if (!CheckSize(field, in, most)) return out;
    out.reserve(static_cast<size_t>(in.size()));
    for (const std::string& text : in) {
      absl::StatusOr<T> value = T::Parse(text);
      status_.Update(base::Annotate(value.status(), field));
      if (!status_.ok()) break;
      out.push_back(*value);
    }
    return out;
  }

  uint16_t Port(std::string_view field, uint32_t port) {
    if (port > std::numeric_limits<uint16_t>::max()) Refuse(fmt::format("{}: {}", field, port));
    return static_cast<uint16_t>(port);
  }

  void Require(bool holds, std::string_view mistake) {
    if (!holds) Refuse(mistake);
  }

  const absl::Status& status() const { return status_; }

 private:
  void Refuse(std::string_view mistake) {
    status_.Update(absl::InvalidArgumentError(std::string(mistake)));
  }

  bool CheckSize(std::string_view field, const Texts& in, size_t most = kMaxItems) {
    if (static_cast<size_t>(in.size()) > most) {
      Refuse(fmt::format("{}: {} items; at most {} are taken", field, in.size(), most));
    }
    return status_.ok();
  }

  absl::Status status_;
};

template <typename T>
void Add(const std::vector<T>& in, Texts& out) {
  for (const T& item : in) {
    if constexpr (std::is_same_v<T, std::string>) {
      *out.Add() = item;
    } else {
      *out.Add() = item.ToString();
    }
  }
}

// Reads an enumerator, which has the number of the wire. One that only a newer program knows is as
// if nothing were said.
static_assert(static_cast<int>(Established::kCut) == v1::CUT &&
              static_cast<int>(Established::kKeep) == v1::KEEP);
static_assert(static_cast<int>(EgressMode::kMasquerade) == v1::EgressPolicy::MASQUERADE &&
              static_cast<int>(EgressMode::kRouted) == v1::EgressPolicy::ROUTED &&
              static_cast<int>(EgressMode::kGateway) == v1::EgressPolicy::GATEWAY &&
              static_cast<int>(EgressMode::kDrop) == v1::EgressPolicy::DROP);

Established FromWire(v1::Established in) {
  return v1::Established_IsValid(in) ? static_cast<Established>(in) : Established::kUnspecified;
}

EgressMode FromWire(v1::EgressPolicy::Mode in) {
  return v1::EgressPolicy::Mode_IsValid(in) ? static_cast<EgressMode>(in)
                                            : EgressMode::kUnspecified;
}

void Put(UnknownKind, v1::PolicyEntry&) {}

void Put(const ClusterNetwork& in, v1::PolicyEntry& entry) {
  v1::ClusterNetworkPolicy& out = *entry.mutable_cluster_network();
  Add(in.cluster, *out.mutable_cluster());
  Add(in.hub, *out.mutable_hub());
  Add(in.peer_spoke, *out.mutable_peer_spoke());
  Add(in.platform, *out.mutable_platform());
  Add(in.storage, *out.mutable_storage());
  Add(in.services, *out.mutable_services());
  out.set_established(static_cast<v1::Established>(in.established));
  Add(in.hub_probes, *out.mutable_hub_probes());
  Add(in.peer_spoke_probes, *out.mutable_peer_spoke_probes());
}

ClusterNetwork Read(const v1::ClusterNetworkPolicy& in, Reader& read) {
  return {.cluster = read.Parsed<ip::Prefix>("cluster", in.cluster()),
          .hub = read.Parsed<ip::Prefix>("hub", in.hub()),
          .peer_spoke = read.Parsed<ip::Prefix>("peer_spoke", in.peer_spoke()),
          .platform = read.Parsed<ip::Prefix>("platform", in.platform()),
          .storage = read.Parsed<ip::Prefix>("storage", in.storage()),
          .services = read.Parsed<ip::Prefix>("services", in.services()),
          .established = FromWire(in.established()),
          .hub_probes = read.Parsed<ip::Endpoint>("hub_probes", in.hub_probes(), kMaxProbes),
          .peer_spoke_probes =
              read.Parsed<ip::Endpoint>("peer_spoke_probes", in.peer_spoke_probes(), kMaxProbes)};
}

void Put(const Team& in, v1::PolicyEntry& entry) {
  Add(in.namespaces, *entry.mutable_team()->mutable_namespaces());
}

Team Read(const v1::TeamPolicy& in, Reader& read) {
  return {.namespaces = read.Namespaces(in.namespaces())};
}

void Put(const DestinationGroup& in, v1::PolicyEntry& entry) {
  Add(in.cidrs, *entry.mutable_destination_group()->mutable_cidrs());
  Add(in.names, *entry.mutable_destination_group()->mutable_names());
}

DestinationGroup Read(const v1::DestinationGroupPolicy& in, Reader& read) {
  return {.cidrs = read.Parsed<ip::Prefix>("cidrs", in.cidrs()),
          .names = read.Names("names", in.names())};
}

void Put(const EgressPolicy& in, v1::PolicyEntry& entry) {
  v1::EgressPolicy& out = *entry.mutable_egress();
  Add(in.namespaces, *out.mutable_namespaces());
  Add(in.teams, *out.mutable_teams());
  Add(in.destination_cidrs, *out.mutable_destination_cidrs());
  Add(in.destination_groups, *out.mutable_destination_groups());
  Add(in.excluded_cidrs, *out.mutable_excluded_cidrs());
  out.set_platform(in.platform);
  out.set_mode(static_cast<v1::EgressPolicy::Mode>(in.mode));
  if (in.gateway) {
    v1::EgressPolicy::Gateway& gateway = *out.mutable_gateway();
    Add(in.gateway->addresses, *gateway.mutable_addresses());
    gateway.set_health_port(in.gateway->health_port);
    Add(in.gateway->draining, *gateway.mutable_draining());
    gateway.set_transport(in.gateway->transport == GatewayTransport::kVxlan
                              ? v1::EgressPolicy::Gateway::VXLAN
                              : v1::EgressPolicy::Gateway::DIRECT);
    gateway.set_tunnel_port(in.gateway->tunnel_port);
  }
  out.set_fallback(static_cast<v1::EgressPolicy::Mode>(in.fallback));
  if (in.limits != EgressLimits()) {
    v1::EgressPolicy::Limits& limits = *out.mutable_limits();
    limits.set_connections(in.limits.connections);
    limits.set_new_connections_per_second(in.limits.new_connections_per_second);
    limits.set_connections_per_destination(in.limits.connections_per_destination);
    limits.set_new_connections_per_second_per_destination(
        in.limits.new_connections_per_second_per_destination);
  }
  out.set_priority(in.priority);
  out.set_established(static_cast<v1::Established>(in.established));
}

EgressGateway Read(const v1::EgressPolicy::Gateway& in, Reader& read) {
  const bool vxlan = in.transport() == v1::EgressPolicy::Gateway::VXLAN;
  read.Require(vxlan || in.transport() == v1::EgressPolicy::Gateway::DIRECT,
               "a transport to gateways that this agent does not know");
  return {.addresses = read.Parsed<ip::Address>("gateway", in.addresses()),
          .health_port = read.Port("health_port", in.health_port()),
          .draining = read.Parsed<ip::Address>("gateway", in.draining()),
          .transport = vxlan ? GatewayTransport::kVxlan : GatewayTransport::kDirect,
          .tunnel_port = read.Port("tunnel_port", in.tunnel_port())};
}

EgressPolicy Read(const v1::EgressPolicy& in, Reader& read) {
  const v1::EgressPolicy::Limits& limits = in.limits();
  EgressPolicy out{
      .namespaces = read.Namespaces(in.namespaces()),
      .teams = read.Names("teams", in.teams()),
      .destination_cidrs = read.Parsed<ip::Prefix>("destination_cidrs", in.destination_cidrs()),
      .destination_groups = read.Names("destination_groups", in.destination_groups()),
      .excluded_cidrs = read.Parsed<ip::Prefix>("excluded_cidrs", in.excluded_cidrs()),
      .platform = in.platform(),
      .mode = FromWire(in.mode()),
      .fallback = FromWire(in.fallback()),
      .limits = {.connections = limits.connections(),
                 .new_connections_per_second = limits.new_connections_per_second(),
                 .connections_per_destination = limits.connections_per_destination(),
                 .new_connections_per_second_per_destination =
                     limits.new_connections_per_second_per_destination()},
      .priority = in.priority(),
      .established = FromWire(in.established())};
  read.Require(out.mode != EgressMode::kUnspecified,
               "no mode, or one that this agent does not know");
  if (out.mode != EgressMode::kGateway) return out;
  read.Require(in.gateway().addresses_size() > 0, "mode Gateway without a gateway's address");
  read.Require(out.fallback != EgressMode::kUnspecified && out.fallback != EgressMode::kGateway,
               "mode Gateway without a fallback");
  out.gateway = Read(in.gateway(), read);
  return out;
}

void Put(const BandwidthLimit& in, v1::PolicyEntry& entry) {
  v1::BandwidthLimitPolicy& out = *entry.mutable_bandwidth_limit();
  Add(in.namespaces, *out.mutable_namespaces());
  Add(in.teams, *out.mutable_teams());
  out.set_destination_group(in.destination_group);
  out.set_pod_ingress(in.pod_ingress.count());
  out.set_pod_egress(in.pod_egress.count());
  out.set_node_ingress(in.node_ingress.count());
  out.set_node_egress(in.node_egress.count());
  out.set_shadow(in.shadow);
}

BandwidthLimit Read(const v1::BandwidthLimitPolicy& in, Reader& read) {
  read.Require((in.pod_ingress() | in.pod_egress() | in.node_ingress() | in.node_egress()) != 0,
               "no rate, or one that this agent does not know");
  return {.namespaces = read.Namespaces(in.namespaces()),
          .teams = read.Names("teams", in.teams()),
          .destination_group = in.destination_group(),
          .pod_ingress = units::BitRate(in.pod_ingress()),
          .pod_egress = units::BitRate(in.pod_egress()),
          .node_ingress = units::BitRate(in.node_ingress()),
          .node_egress = units::BitRate(in.node_egress()),
          .shadow = in.shadow()};
}

void Put(const BandwidthBudget& in, v1::PolicyEntry& entry) {
  const auto ms = [](absl::Duration time) {
    return static_cast<uint32_t>(absl::ToInt64Milliseconds(time));
  };
  v1::BandwidthBudgetPolicy& out = *entry.mutable_bandwidth_budget();
  out.set_destination_group(in.destination_group);
  out.set_egress(in.egress);
  Add(in.teams, *out.mutable_teams());
  out.set_floor(in.floor.count());
  out.set_refresh_ms(ms(in.refresh));
  out.set_hold_ms(ms(in.hold));
  out.set_half_life_ms(ms(in.half_life));
  out.set_shadow(in.shadow);
}

BandwidthBudget Read(const v1::BandwidthBudgetPolicy& in, Reader& read) {
  read.Require(in.refresh_ms() != 0 && in.half_life_ms() != 0,
               "a refresh time or a half-life of 0");
  return {.destination_group = in.destination_group(),
          .egress = in.egress(),
          .teams = read.Names("teams", in.teams()),
          .floor = units::BitRate(in.floor()),
          .refresh = absl::Milliseconds(in.refresh_ms()),
          .hold = absl::Milliseconds(in.hold_ms()),
          .half_life = absl::Milliseconds(in.half_life_ms()),
          .shadow = in.shadow()};
}

Value ReadValue(const v1::PolicyEntry& in, Reader& read) {
  switch (in.value_case()) {
    case v1::PolicyEntry::kClusterNetwork:
      return Read(in.cluster_network(), read);
    case v1::PolicyEntry::kTeam:
      return Read(in.team(), read);
    case v1::PolicyEntry::kDestinationGroup:
      return Read(in.destination_group(), read);
    case v1::PolicyEntry::kEgress:
      return Read(in.egress(), read);
    case v1::PolicyEntry::kBandwidthLimit:
      return Read(in.bandwidth_limit(), read);
    case v1::PolicyEntry::kBandwidthBudget:
      return Read(in.bandwidth_budget(), read);
    case v1::PolicyEntry::VALUE_NOT_SET:
      break;
  }
  return UnknownKind();
}

}  // namespace

std::string ToWire(std::string_view key, const Value& value) {
  v1::PolicyEntry out;
  out.set_key(key.data(), key.size());
  std::visit([&](const auto& of_kind) { Put(of_kind, out); }, value);
  return out.SerializeAsString();
}

absl::StatusOr<Entry> FromWire(const v1::PolicyEntry& in) {
  Reader read;
  Entry entry{.key = in.key(), .bytes = in.SerializeAsString(), .value = ReadValue(in, read)};
  RETURN_IF_ERROR(CheckKey(entry.key, kKinds.at(entry.value.index())));
  RETURN_IF_ERROR(base::Annotate(read.status(), entry.key));
  return entry;
}

Update FromWire(const v1::PolicyBundle& in) {
  Update update{.version = in.version(), .full = in.full(), .base_version = in.base_version()};
  for (const v1::PolicyEntry& changed : in.changed()) {
    absl::StatusOr<Entry> entry = FromWire(changed);
    update.mistake.Update(entry.status());
    if (!entry.ok()) break;
    update.changed.push_back(*std::move(entry));
  }
  update.removed = {in.removed().begin(), in.removed().end()};
  return update;
}

}  // namespace spoke::policy
