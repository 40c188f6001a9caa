#include "netagent/links/attachment_state.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fmt/core.h"
#include "netagent/claims.h"
#include "netagent/links/host_link_settings.h"
#include "netagent/links/link_shaping.h"

namespace spoke::netagent {
namespace {

constexpr uint64_t kBitsPerByte = 8;
constexpr uint32_t kMainTable = 254;  // RT_TABLE_MAIN of linux/rtnetlink.h.

struct PartTraits {
  Part part;
  std::string_view name;
  bool mendable;
};

constexpr std::array<PartTraits, static_cast<size_t>(kLastPart) + 1> kParts = {{
    {Part::kHostLink, "host_link", false},
    {Part::kHostUp, "host_up", true},
    {Part::kHostMac, "host_mac", true},
    {Part::kHostMtu, "host_mtu", true},
    {Part::kHostSetting, "host_setting", true},
    {Part::kHostNeighbour, "host_neighbour", true},
    {Part::kHostRule, "host_rule", true},
    {Part::kHostRoute, "host_route", true},
    {Part::kIngressLimit, "ingress_limit", true},
    {Part::kPodLink, "pod_link", false},
    {Part::kPodUp, "pod_up", true},
    {Part::kPodMac, "pod_mac", false},
    {Part::kPodMtu, "pod_mtu", false},
    {Part::kPodAddress, "pod_address", true},
    {Part::kPodNeighbour, "pod_neighbour", true},
    {Part::kPodRoute, "pod_route", true},
    {Part::kPodRule, "pod_rule", true},
}};

constexpr bool PartsAreInOrder() {
  for (size_t i = 0; i < kParts.size(); ++i) {
    if (kParts[i].part != static_cast<Part>(i)) return false;
  }
  return true;
}
static_assert(PartsAreInOrder());

const PartTraits& TraitsOf(Part part) { return kParts[static_cast<size_t>(part)]; }

template <typename T>
bool Holds(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

const PermanentNeighbour* FindNeighbour(const std::vector<PermanentNeighbour>& neighbours,
                                        const ip::Address& address) {
  const auto found = std::find_if(neighbours.begin(), neighbours.end(),
                                  [&](const auto& entry) { return entry.address == address; });
  return found == neighbours.end() ? nullptr : &*found;
}

ip::Address GatewayOf(const ip::Address& address) {
  return address.is_v4() ? claims::kGatewayV4 : claims::kGatewayV6;
}

ip::Prefix EverythingOf(ip::Family family) {
  return ip::Prefix::Of(family == ip::Family::kV4 ? ip::Address::V4(0) : ip::Address::V6(0, 0), 0)
      .value();
}

std::string RateText(const std::optional<uint64_t>& bps) {
  return bps ? fmt::format("{} bit/s", *bps) : "not limited";
}

// What the pod gets: nothing is looked at where nobody asked for a limit, so that a plugin of the
// chain can have set one. That of what it sends is no part of the link (shaping/shaper.h).
void CompareLimit(const std::string& link, const std::optional<uint64_t>& wanted,
                  const std::optional<uint64_t>& found, std::vector<Difference>& out) {
  if (!wanted || wanted == found) return;
  out.push_back({Part::kIngressLimit, fmt::format("the limit of link {} is {}, not {}", link,
                                                  RateText(found), RateText(wanted))});
}

void CompareSettings(const AttachSpec& spec, const HostSide& host, std::vector<Difference>& out) {
  for (const HostLinkSetting& setting : kHostLinkSettings) {
    if (setting.number >= host.settings.size()) continue;
    const uint32_t found = host.settings[setting.number];
    if (found == setting.value) continue;
    out.push_back(
        {Part::kHostSetting, fmt::format("net.ipv4.conf.{}.{} is {}, not {}", spec.host_link,
                                         setting.name, found, setting.value)});
  }
  if (host.address_generation && *host.address_generation != kHostLinkAddressGeneration) {
    out.push_back({Part::kHostSetting, fmt::format("link {} makes itself IPv6 addresses (mode {})",
                                                   spec.host_link, *host.address_generation)});
  }
}

void CompareHost(const AttachSpec& spec, const HostSide& host, const std::optional<PodSide>& pod,
                 std::vector<Difference>& out) {
  const std::string& link = spec.host_link;
  if (!host.up) out.push_back({Part::kHostUp, fmt::format("link {} is down on the node", link)});
  if (host.mac != spec.host_mac) {
    out.push_back({Part::kHostMac, fmt::format("link {} has MAC {} on the node, not {}", link,
                                               host.mac.ToString(), spec.host_mac.ToString())});
  }
  // A veth drops what its other end cannot take in one piece, without a word.
  if (pod && host.mtu != pod->mtu) {
    out.push_back({Part::kHostMtu, fmt::format("link {} has MTU {} on the node, but {} in the pod",
                                               link, host.mtu, pod->mtu)});
  }
  CompareSettings(spec, host, out);
  for (const ip::Address& address : spec.addresses) {
    const PermanentNeighbour* const entry = FindNeighbour(host.neighbours, address);
    const std::string text = address.ToString();
    if (entry == nullptr) {
      out.push_back({Part::kHostNeighbour,
                     fmt::format("neighbour entry of {} on {} is gone from the node", text, link),
                     address});
    } else if (pod && entry->mac != pod->mac) {
      out.push_back({Part::kHostNeighbour,
                     fmt::format("neighbour entry of {} on {} has MAC {}, but the pod has {}", text,
                                 link, entry->mac.ToString(), pod->mac.ToString()),
                     address});
    }
  }
  for (const ip::Address& address : spec.addresses) {
    if (Holds(host.routes, address)) continue;
    out.push_back({Part::kHostRoute,
                   fmt::format("route to {} by {} is gone from the node", address.ToString(), link),
                   address});
  }
  for (const SourceTable& source : spec.source_tables) {
    if (Holds(host.rules, source)) continue;
    out.push_back({Part::kHostRule,
                   fmt::format("rule for what comes from {} into table {} is gone from the node",
                               source.address.ToString(), source.table),
                   source.address});
  }
  CompareLimit(link, IngressRateOf(spec), host.limit_bps, out);
}

uint32_t PodTableOf(const AttachSpec& spec) { return claims::kFirstPodTable + spec.ordinal; }

// IPv6 needs none: the gateway is link-local.
bool HasGatewayRoute(const AttachSpec& spec, const ip::Address& address) {
  return spec.ordinal == 0 && address.is_v4();
}

// The way out of the pod for what comes from `address`.
void ComparePodRoutes(const AttachSpec& spec, const PodSide& pod, const ip::Address& address,
                      std::vector<Difference>& out) {
  const ip::Address gateway = GatewayOf(address);
  uint32_t table = kMainTable;
  if (spec.ordinal > 0) {
    const auto rule = std::find_if(
        pod.rules.begin(), pod.rules.end(),
        [&](const PodSourceRule& found) { return found.source == ip::Prefix::Host(address); });
    if (rule == pod.rules.end()) {
      out.push_back(
          {Part::kPodRule,
           fmt::format("rule for what comes from {} is gone from the pod", address.ToString()),
           address});
      table = PodTableOf(spec);
    } else {
      table = rule->table;
    }
  }
  if (HasGatewayRoute(spec, address) &&
      !Holds(pod.routes, PodRoute{ip::Prefix::Host(gateway), std::nullopt, kMainTable})) {
    out.push_back({Part::kPodRoute,
                   fmt::format("route to the gateway {} by {} is gone from the pod",
                               gateway.ToString(), spec.pod_link),
                   address});
  }
  if (!Holds(pod.routes, PodRoute{EverythingOf(address.family()), gateway, table})) {
    out.push_back({Part::kPodRoute,
                   fmt::format("default route by {} dev {} is gone from the pod",
                               gateway.ToString(), spec.pod_link),
                   address});
  }
}

void ComparePod(const AttachSpec& spec, const PodSide& pod, const PodExpectation& expected,
                std::vector<Difference>& out) {
  if (pod.name != spec.pod_link) {
    out.push_back(
        {Part::kPodLink, fmt::format("the other end of {} is called {} in the pod, not {}",
                                     spec.host_link, pod.name, spec.pod_link)});
    if (!pod.impostor.empty()) {
      out.push_back({Part::kPodLink, fmt::format("link {} of the pod is a {} of somebody else's",
                                                 spec.pod_link, pod.impostor)});
    }
  }
  if (!pod.up) out.push_back({Part::kPodUp, fmt::format("link {} is down in the pod", pod.name)});
  if (expected.mac && *expected.mac != pod.mac) {
    out.push_back({Part::kPodMac, fmt::format("link {} has MAC {} in the pod, not {}", pod.name,
                                              pod.mac.ToString(), expected.mac->ToString())});
  }
  if (expected.mtu != 0 && expected.mtu != pod.mtu) {
    out.push_back({Part::kPodMtu, fmt::format("link {} has MTU {} in the pod, not {}", pod.name,
                                              pod.mtu, expected.mtu)});
  }
  for (const ip::Address& address : spec.addresses) {
    if (Holds(pod.addresses, address)) continue;
    out.push_back(
        {Part::kPodAddress,
         fmt::format("address {} is gone from {} in the pod", address.ToString(), pod.name),
         address});
  }
  for (const ip::Address& address : spec.addresses) {
    const ip::Address gateway = GatewayOf(address);
    const PermanentNeighbour* const entry = FindNeighbour(pod.neighbours, gateway);
    if (entry != nullptr && entry->mac == spec.host_mac) continue;
    const std::string found = entry == nullptr
                                  ? "is gone from the pod"
                                  : fmt::format("has MAC {} in the pod, not {}",
                                                entry->mac.ToString(), spec.host_mac.ToString());
    out.push_back({Part::kPodNeighbour,
                   fmt::format("neighbour entry of the gateway {} on {} {}", gateway.ToString(),
                               pod.name, found),
                   address});
  }
  for (const ip::Address& address : spec.addresses) ComparePodRoutes(spec, pod, address, out);
}

}  // namespace

std::string_view NameOf(Part part) { return TraitsOf(part).name; }
bool IsInPod(Part part) { return part >= Part::kPodLink; }
bool IsMendable(Part part) { return TraitsOf(part).mendable; }

std::optional<uint64_t> IngressRateOf(const AttachSpec& spec) {
  const Bandwidth& asked = spec.bandwidth;
  const auto ingress = PlanLinkShaping(asked.ingress_rate, asked.ingress_burst, spec.mtu);
  if (!ingress) return std::nullopt;
  return ingress->bytes_per_second * kBitsPerByte;
}

std::vector<Difference> Compare(const AttachSpec& spec, const HostSide& host,
                                const std::optional<PodSide>& pod, const PodExpectation& expected) {
  std::vector<Difference> differences;
  if (!host.exists) {
    // The kernel has taken the other end with it, and all that led to either.
    differences.push_back(
        {Part::kHostLink, fmt::format("link {} is gone from the node", spec.host_link)});
    return differences;
  }
  CompareHost(spec, host, pod, differences);
  if (pod) ComparePod(spec, *pod, expected, differences);
  return differences;
}

HostSide BuiltHostSide(const AttachSpec& spec) {
  HostSide host{.exists = true, .up = true, .mac = spec.host_mac, .mtu = spec.mtu};
  for (const HostLinkSetting& setting : kHostLinkSettings) {
    if (setting.number >= host.settings.size()) host.settings.resize(setting.number + 1U);
    host.settings[setting.number] = setting.value;
  }
  host.address_generation = kHostLinkAddressGeneration;
  for (const ip::Address& address : spec.addresses) {
    host.neighbours.push_back({address, spec.pod_mac});
  }
  host.rules = spec.source_tables;
  host.routes = spec.addresses;
  host.limit_bps = IngressRateOf(spec);
  return host;
}

PodSide BuiltPodSide(const AttachSpec& spec) {
  PodSide pod{.name = spec.pod_link, .up = true, .mac = spec.pod_mac, .mtu = spec.mtu};
  pod.addresses = spec.addresses;
  const uint32_t table = spec.ordinal > 0 ? PodTableOf(spec) : kMainTable;
  for (const ip::Address& address : spec.addresses) {
    const ip::Address gateway = GatewayOf(address);
    pod.neighbours.push_back({gateway, spec.host_mac});
    if (HasGatewayRoute(spec, address)) {
      pod.routes.push_back({ip::Prefix::Host(gateway), std::nullopt, kMainTable});
    }
    pod.routes.push_back({EverythingOf(address.family()), gateway, table});
    if (spec.ordinal > 0) pod.rules.push_back({ip::Prefix::Host(address), table});
  }
  return pod;
}

}  // namespace spoke::netagent
