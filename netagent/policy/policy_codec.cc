#include "netagent/policy/policy_codec.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "netagent/journal/frame.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kMagic = "SPOKEPOL";
constexpr uint32_t kFormat = 1;
constexpr size_t kHeaderBytes = kMagic.size() + 3 * sizeof(uint32_t);

std::vector<std::string> Texts(const google::protobuf::RepeatedPtrField<std::string>& in) {
  return {in.begin(), in.end()};
}

EgressMode FromWire(v1::EgressPolicy::Mode mode) {
  switch (mode) {
    case v1::EgressPolicy::MASQUERADE:
      return EgressMode::kMasquerade;
    case v1::EgressPolicy::ROUTED:
      return EgressMode::kRouted;
    case v1::EgressPolicy::GATEWAY:
      return EgressMode::kGateway;
    case v1::EgressPolicy::DROP:
      return EgressMode::kDrop;
    default:  // Of a newer server.
      return EgressMode::kUnspecified;
  }
}

GatewayTransport TransportOf(v1::EgressPolicy::Gateway::Transport transport) {
  switch (transport) {
    case v1::EgressPolicy::Gateway::DIRECT:
      return GatewayTransport::kDirect;
    case v1::EgressPolicy::Gateway::VXLAN:
      return GatewayTransport::kVxlan;
    default:  // Of a newer server.
      return GatewayTransport::kUnknown;
  }
}

EgressPolicy FromWire(const v1::EgressPolicy& in) {
  EgressPolicy policy{.namespaces = Texts(in.namespaces()),
                      .teams = Texts(in.teams()),
                      .destination_cidrs = Texts(in.destination_cidrs()),
                      .destination_groups = Texts(in.destination_groups()),
                      .excluded_cidrs = Texts(in.excluded_cidrs()),
                      .platform = in.platform(),
                      .mode = FromWire(in.mode()),
                      .fallback = FromWire(in.fallback()),
                      .priority = in.priority(),
                      .cut_established = in.established() == v1::CUT};
  if (in.has_gateway()) {
    policy.gateway = {.addresses = Texts(in.gateway().addresses()),
                      .health_port = static_cast<uint16_t>(in.gateway().health_port()),
                      .draining = Texts(in.gateway().draining()),
                      .transport = TransportOf(in.gateway().transport()),
                      .tunnel_port = static_cast<uint16_t>(in.gateway().tunnel_port())};
  }
  const v1::EgressPolicy::Limits& limits = in.limits();
  policy.limits = {.connections = limits.connections(),
                   .new_connections_per_second = limits.new_connections_per_second(),
                   .connections_per_destination = limits.connections_per_destination(),
                   .new_connections_per_second_per_destination =
                       limits.new_connections_per_second_per_destination()};
  return policy;
}

BandwidthLimit FromWire(const v1::BandwidthLimitPolicy& in) {
  return {.namespaces = Texts(in.namespaces()),
          .teams = Texts(in.teams()),
          .destination_group = in.destination_group(),
          .pod_ingress = in.pod_ingress(),
          .pod_egress = in.pod_egress(),
          .node_ingress = in.node_ingress(),
          .node_egress = in.node_egress(),
          .shadow = in.shadow()};
}

BandwidthBudget FromWire(const v1::BandwidthBudgetPolicy& in) {
  return {.destination_group = in.destination_group(),
          .egress = in.egress(),
          .teams = Texts(in.teams()),
          .floor = in.floor(),
          .refresh = absl::Milliseconds(in.refresh_ms()),
          .hold = absl::Milliseconds(in.hold_ms()),
          .half_life = absl::Milliseconds(in.half_life_ms()),
          .shadow = in.shadow()};
}

PolicyEntry FromWire(const v1::PolicyEntry& in) {
  PolicyEntry entry{.key = in.key(), .bytes = in.SerializeAsString()};
  switch (in.value_case()) {
    case v1::PolicyEntry::kClusterNetwork: {
      const v1::ClusterNetworkPolicy& network = in.cluster_network();
      entry.value = ClusterNetwork{.cluster = Texts(network.cluster()),
                                   .hub = Texts(network.hub()),
                                   .peer_spoke = Texts(network.peer_spoke()),
                                   .platform = Texts(network.platform()),
                                   .storage = Texts(network.storage()),
                                   .services = Texts(network.services()),
                                   .keep_established = network.established() == v1::KEEP};
      break;
    }
    case v1::PolicyEntry::kTeam:
      entry.value = Team{.namespaces = Texts(in.team().namespaces())};
      break;
    case v1::PolicyEntry::kDestinationGroup:
      entry.value = DestinationGroup{.cidrs = Texts(in.destination_group().cidrs()),
                                     .names = Texts(in.destination_group().names())};
      break;
    case v1::PolicyEntry::kEgress:
      entry.value = FromWire(in.egress());
      break;
    case v1::PolicyEntry::kBandwidthLimit:
      entry.value = FromWire(in.bandwidth_limit());
      break;
    case v1::PolicyEntry::kBandwidthBudget:
      entry.value = FromWire(in.bandwidth_budget());
      break;
    case v1::PolicyEntry::VALUE_NOT_SET:
      break;
  }
  return entry;
}

}  // namespace

PolicyUpdate FromWire(const v1::PolicyBundle& in) {
  PolicyUpdate update{
      .version = in.version(), .full = in.full(), .base_version = in.base_version()};
  for (const v1::PolicyEntry& entry : in.changed()) update.changed.push_back(FromWire(entry));
  update.removed = Texts(in.removed());
  return update;
}

std::string EncodePolicyFile(const Policy& policy) {
  v1::PolicyBundle bundle;
  bundle.set_version(policy.version);
  bundle.set_full(true);
  for (const auto& [key, entry] : policy.entries) {
    bundle.add_changed()->ParseFromString(entry.bytes);
  }
  const std::string payload = bundle.SerializeAsString();
  std::string out(kMagic);
  AppendLittleEndian(kFormat, out);
  AppendLittleEndian(static_cast<uint32_t>(payload.size()), out);
  AppendLittleEndian(Crc32(payload), out);
  return out + payload;
}

absl::StatusOr<Policy> DecodePolicyFile(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError("this is no policy file");
  }
  const uint32_t format = ReadLittleEndian(bytes.substr(kMagic.size(), 4));
  if (format != kFormat) {
    return absl::FailedPreconditionError(
        fmt::format("the policy file has format {}; this agent reads {}", format, kFormat));
  }
  const uint32_t length = ReadLittleEndian(bytes.substr(kMagic.size() + 4, 4));
  const uint32_t checksum = ReadLittleEndian(bytes.substr(kMagic.size() + 8, 4));
  const std::string_view payload = bytes.substr(kHeaderBytes);
  if (payload.size() != length || Crc32(payload) != checksum) {
    return absl::DataLossError("the policy file is torn or damaged");
  }
  v1::PolicyBundle bundle;
  if (!bundle.ParseFromArray(payload.data(), static_cast<int>(payload.size())) || !bundle.full()) {
    return absl::DataLossError("the policy file holds no policy");
  }
  auto policy = ApplyPolicy({}, FromWire(bundle));
  if (!policy.ok()) return absl::DataLossError(policy.status().message());
  return policy;
}

}  // namespace spoke::netagent
