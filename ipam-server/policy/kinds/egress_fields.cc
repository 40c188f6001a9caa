#include "ipam-server/policy/kinds/egress_fields.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/policy/objects/object.h"
#include "lib/base/status.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;
using policy::EgressGateway;
using policy::EgressLimits;
using policy::GatewayTransport;

constexpr uint32_t kMaxConnections = 1'000'000;  // No node tracks more.
constexpr size_t kMaxGateways = 64;
constexpr uint32_t kMaxPort = 65535;
constexpr uint16_t kHealthPort = 9467;
constexpr uint16_t kTunnelPort = 4789;

// A limit that means something: 0 would be no limit to the agent, and a way to say "none at all" to
// whoever writes it.
void ReadLimit(const ConfigMap& map, std::string_view key, uint32_t& out) {
  map.Uint32(key, &out, Need::kOptional, {1, kMaxConnections});
}

// Checks that a pod has no more to one destination than to all.
void CheckPart(const ConfigMap& map, std::string_view key, uint32_t part, uint32_t whole) {
  if (part == 0 || whole == 0 || part <= whole) return;
  map.Error(key, fmt::format("{} to one destination is more than {} to all together: lower it, or "
                             "raise limits.{}",
                             part, whole, key));
}

// Reads a number; absent: `out` stays.
void ReadPort(const ConfigMap& map, std::string_view key, uint16_t& out) {
  uint32_t port = out;
  map.Uint32(key, &port, Need::kOptional, {1, kMaxPort});
  out = static_cast<uint16_t>(port);
}

void ReadTransport(const ConfigMap& map, EgressGateway& out) {
  map.Custom("transport", Need::kOptional, [&](std::string_view text) {
    if (text == "vxlan") {
      out.transport = GatewayTransport::kVxlan;
      out.tunnel_port = kTunnelPort;
    } else if (text != "direct") {
      return absl::InvalidArgumentError(
          fmt::format("must be direct (gateways are next hops: not on Azure) or vxlan, not \"{}\"",
                      text.substr(0, 64)));
    }
    return absl::OkStatus();
  });
  const bool tunnel = out.transport == GatewayTransport::kVxlan;
  ReadPort(map, "tunnelPort", out.tunnel_port);
  if (map.Has("tunnelPort") && !tunnel) {
    map.Error("tunnelPort",
              "means nothing with transport direct: remove it, or write "
              "transport: vxlan");
  }
}

void ReadSelector(const ConfigMap& selector, std::vector<Listed<std::string>>& out) {
  const ConfigMap pod = selector.Map("podSelector", Need::kRequired);
  const ConfigMap labels = pod.Map("matchLabels", Need::kRequired);
  size_t namespaces = 0;
  for (const std::string& label : labels.Keys()) {
    labels.Custom(label, Need::kRequired, [&](std::string_view text) {
      if (label != "io.kubernetes.pod.namespace" && label != "k8s:io.kubernetes.pod.namespace") {
        return absl::InvalidArgumentError(
            "nodes do not know pods' labels: select by io.kubernetes.pod.namespace, or list "
            "namespaces or teams");
      }
      RETURN_IF_ERROR(base::Annotate(CheckLabel(text), "a namespace"));
      ++namespaces;
      const auto place = std::lower_bound(
          out.begin(), out.end(), text,
          [](const auto& item, std::string_view name) { return item.value < name; });
      if (place != out.end() && place->value == text) {
        return absl::InvalidArgumentError(fmt::format(
            "\"{}\" is listed twice: line {} has it already; remove one", text, place->line));
      }
      out.insert(place, {std::string(text), labels.LineOf(label)});
      return absl::OkStatus();
    });
  }
  if (labels.present() && labels.Keys().empty()) {
    labels.Error("",
                 "selects nothing by name: write io.kubernetes.pod.namespace: NAME, or leave "
                 "all selectors out to select all pods");
  }
  if (namespaces > 1) labels.Error("", "a pod has one namespace: make two selectors of them");
}

}  // namespace

EgressGateway ReadGateway(const ConfigMap& spec, std::vector<Listed<ip::Address>>& addresses) {
  EgressGateway out;
  out.health_port = kHealthPort;
  const ConfigMap map = spec.Map("gateway", Need::kOptional);
  if (!map.present()) return out;
  addresses = ReadAddresses(map, "addresses");
  out.addresses = Values(addresses);
  ReadPort(map, "healthPort", out.health_port);
  out.draining = Values(ReadAddresses(map, "draining", [&](const ip::Address& draining) {
    if (std::binary_search(out.addresses.begin(), out.addresses.end(), draining)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(fmt::format(
        "{} is not among addresses: a gateway that drains stays listed until its flows are over",
        draining.ToString()));
  }));
  ReadTransport(map, out);
  if (!map.Has("addresses") || map.IsEmptyList("addresses")) {
    map.Error("addresses", "needs at least one address of a gateway");
  }
  if (addresses.size() > kMaxGateways) {
    map.Error("addresses", fmt::format("has {} gateways, more than the {} allowed",
                                       addresses.size(), kMaxGateways));
  }
  return out;
}

EgressLimits ReadLimits(const ConfigMap& spec) {
  EgressLimits out;
  const ConfigMap map = spec.Map("limits", Need::kOptional);
  if (!map.present()) return out;
  ReadLimit(map, "connections", out.connections);
  ReadLimit(map, "newConnectionsPerSecond", out.new_connections_per_second);
  const bool has_part = map.Has("perDestination");
  const ConfigMap part = map.Map("perDestination", Need::kOptional);
  ReadLimit(part, "connections", out.connections_per_destination);
  ReadLimit(part, "newConnectionsPerSecond", out.new_connections_per_second_per_destination);
  CheckPart(part, "connections", out.connections_per_destination, out.connections);
  CheckPart(part, "newConnectionsPerSecond", out.new_connections_per_second_per_destination,
            out.new_connections_per_second);
  if (map.Keys().empty() || (has_part && part.present() && part.Keys().empty())) {
    (map.Keys().empty() ? map : part)
        .Error("", "says no limit: write connections or newConnectionsPerSecond, or remove it");
  }
  return out;
}

nlohmann::json ToJson(const EgressGateway& gateway) {
  nlohmann::json json = {{"addresses", Texts(gateway.addresses)},
                         {"healthPort", gateway.health_port}};
  if (!gateway.draining.empty()) json["draining"] = Texts(gateway.draining);
  if (gateway.transport == GatewayTransport::kVxlan) {
    json["transport"] = "vxlan";
    json["tunnelPort"] = gateway.tunnel_port;
  }
  return json;
}

nlohmann::json ToJson(const EgressLimits& limits) {
  nlohmann::json json = nlohmann::json::object();
  nlohmann::json part = nlohmann::json::object();
  const auto set = [](nlohmann::json& to, const char* key, uint32_t value) {
    if (value != 0) to[key] = value;
  };
  set(json, "connections", limits.connections);
  set(json, "newConnectionsPerSecond", limits.new_connections_per_second);
  set(part, "connections", limits.connections_per_destination);
  set(part, "newConnectionsPerSecond", limits.new_connections_per_second_per_destination);
  if (!part.empty()) json["perDestination"] = std::move(part);
  return json;
}

void ReadSelectors(const ConfigMap& spec, std::vector<Listed<std::string>>& namespaces) {
  if (!spec.Has("selectors")) return;
  for (const ConfigMap& selector : spec.MapList("selectors", Need::kOptional)) {
    ReadSelector(selector, namespaces);
  }
  if (spec.IsEmptyList("selectors")) {
    spec.Error("selectors", "an empty list selects nothing: remove it to select all pods");
  }
}

}  // namespace spoke::ipam
