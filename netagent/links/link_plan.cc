#include "netagent/links/link_plan.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

constexpr uint64_t kBurstsASecond = 1000;
constexpr uint64_t kMinBurst = 16UL << 10;
constexpr uint64_t kQueuesASecond = 20;
constexpr uint64_t kMinQueuedPackets = 8;
// Ethernet header and one VLAN tag, which the kernel counts.
constexpr uint64_t kHeaderBytes = 18;
// Above some 2 Gbit/s a queue is shorter in time than 50 ms, and long enough.
constexpr uint64_t kMaxQueue = 16UL << 20;
constexpr uint64_t kMaxBurst = 16UL << 20;

constexpr std::array<std::string_view, static_cast<size_t>(kLastPart) + 1> kPartNames = {
    "host_link",   "host_setting",   "host_routers", "host_mac",   "host_mtu", "ingress_limit",
    "host_up",     "host_neighbour", "host_rule",    "host_route", "pod_link", "pod_up",
    "pod_address", "pod_neighbour",  "pod_route",    "pod_rule"};

constexpr std::string_view kAcceptRa = "accept_ra";

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

std::string RateText(const std::optional<units::BitRate>& rate) {
  return rate ? fmt::format("{} bit/s", rate->count()) : "not limited";
}

// The addresses of a pod, those of IPv4 first: where the runtime has switched IPv6 off, all that is
// refused is then behind what is not.
std::vector<ip::Address> InOrder(const AttachSpec& spec) {
  std::vector<ip::Address> addresses = spec.addresses;
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const ip::Address& address) { return address.is_v4(); });
  return addresses;
}

// Plans everything of a link that is not there. It makes no text: every ADD comes this way.
LinkOperations PlanNew(const AttachSpec& spec) {
  LinkOperations plan;
  plan.reserve(6 + 7 * spec.addresses.size());
  plan.push_back({.part = Part::kHostLink,
                  .found = fmt::format("link {} is gone from the node", spec.host_link)});
  plan.push_back({.part = Part::kHostSetting});
  plan.push_back({.part = Part::kHostRouters});
  // The limit comes before the link is up: after, the kernel would wait for all CPUs.
  if (!spec.bandwidth.ingress_rate.is_zero()) plan.push_back({.part = Part::kIngressLimit});
  plan.push_back({.part = Part::kHostUp});
  for (const ip::Address& address : spec.addresses) {
    plan.push_back({.part = Part::kHostNeighbour, .address = address, .mac = spec.pod_mac});
  }
  for (const SourceTable& source : spec.source_tables) {
    plan.push_back({.part = Part::kHostRule, .address = source.address, .table = source.table});
  }
  // Routes come last: they may replace an older attachment's, so nothing else may fail after.
  for (const ip::Address& address : spec.addresses) {
    plan.push_back({.part = Part::kHostRoute, .address = address});
  }
  for (const ip::Address& address : InOrder(spec)) {
    for (const Part part : {Part::kPodAddress, Part::kPodNeighbour, Part::kPodRoute}) {
      plan.push_back({.part = part, .address = address});
    }
    if (spec.ordinal > 0) plan.push_back({.part = Part::kPodRule, .address = address});
  }
  return plan;
}

LinkOperations PlanRemoval(const HostSide& host) {
  LinkOperations plan;
  // The kernel would remove the routes with the link, but goes through all routes to find them.
  for (const ip::Address& address : host.routes) {
    plan.push_back({.part = Part::kHostRoute, .address = address});
  }
  plan.push_back({.part = Part::kHostLink});
  for (const SourceTable& source : host.rules) {
    plan.push_back({.part = Part::kHostRule, .address = source.address, .table = source.table});
  }
  return plan;
}

void PlanSettings(const AttachSpec& spec, const HostSide& host, LinkOperations& plan) {
  std::string found;
  for (const HostLinkSetting& setting : kHostLinkSettings) {
    if (setting.number >= host.settings.size()) continue;
    const uint32_t is = host.settings[setting.number];
    if (is == setting.value) continue;
    found += fmt::format("{}net.ipv4.conf.{}.{} is {}, not {}", found.empty() ? "" : ", ",
                         spec.host_link, setting.name, is, setting.value);
  }
  if (host.address_generation && *host.address_generation != kHostLinkAddressGeneration) {
    found += fmt::format("{}link {} makes itself IPv6 addresses (mode {})",
                         found.empty() ? "" : ", ", spec.host_link, *host.address_generation);
  }
  // One request makes all the settings.
  if (!found.empty()) plan.push_back({.part = Part::kHostSetting, .found = std::move(found)});
  const Ipv6Setting wanted = RouterSettingOf(spec);
  const std::optional<uint32_t> is = wanted.name == kAcceptRa ? host.accept_ra : host.disable_ipv6;
  // A link that does not listen is fine without the other setting: earlier agents left that out.
  if (is.value_or(wanted.value) == wanted.value || host.accept_ra == 0U) return;
  plan.push_back({.part = Part::kHostRouters,
                  .found = fmt::format("net.ipv6.conf.{}.{} is {}, not {}", spec.host_link,
                                       wanted.name, *is, wanted.value)});
}

void PlanHostNeighbours(const AttachSpec& spec, const ObservedLink& observed,
                        LinkOperations& plan) {
  const std::string& link = spec.host_link;
  const ip::MacAddress mac = observed.pod ? observed.pod->mac : spec.pod_mac;
  // A device loses all its neighbour entries with its MAC, permanent ones included.
  const bool lost = observed.host.mac != spec.host_mac;
  for (const ip::Address& address : spec.addresses) {
    const PermanentNeighbour* const entry = FindNeighbour(observed.host.neighbours, address);
    std::string found;
    if (entry == nullptr) {
      found = fmt::format("neighbour entry of {} on {} is gone from the node", address.ToString(),
                          link);
    } else if (observed.pod && entry->mac != mac) {
      found = fmt::format("neighbour entry of {} on {} has MAC {}, but the pod has {}",
                          address.ToString(), link, entry->mac.ToString(), mac.ToString());
    }
    if (!lost && found.empty()) continue;
    plan.push_back(
        {.part = Part::kHostNeighbour, .address = address, .mac = mac, .found = std::move(found)});
  }
}

void PlanHost(const AttachSpec& spec, const ObservedLink& observed, LinkOperations& plan) {
  const HostSide& host = observed.host;
  const std::string& link = spec.host_link;
  PlanSettings(spec, host, plan);
  if (host.mac != spec.host_mac) {
    plan.push_back({.part = Part::kHostMac,
                    .found = fmt::format("link {} has MAC {} on the node, not {}", link,
                                         host.mac.ToString(), spec.host_mac.ToString())});
  }
  // A veth drops what its other end cannot take in one piece, without a word.
  if (observed.pod && host.mtu != observed.pod->mtu) {
    plan.push_back({.part = Part::kHostMtu,
                    .mtu = observed.pod->mtu,
                    .found = fmt::format("link {} has MTU {} on the node, but {} in the pod", link,
                                         host.mtu, observed.pod->mtu)});
  }
  // Where nobody asked for a limit, a plugin of the chain can have set one. The limit of what the
  // pod sends is no part of the link (shaping/shaper.h): at its own end the pod has a say.
  if (const auto wanted = IngressRateOf(spec); wanted && wanted != host.limit) {
    plan.push_back({.part = Part::kIngressLimit,
                    .found = fmt::format("the limit of link {} is {}, not {}", link,
                                         RateText(host.limit), RateText(wanted))});
  }
  if (!host.up) {
    plan.push_back(
        {.part = Part::kHostUp, .found = fmt::format("link {} is down on the node", link)});
  }
  PlanHostNeighbours(spec, observed, plan);
  for (const SourceTable& source : spec.source_tables) {
    if (Holds(host.rules, source)) continue;
    plan.push_back(
        {.part = Part::kHostRule,
         .address = source.address,
         .table = source.table,
         .found = fmt::format("rule for what comes from {} into table {} is gone from the node",
                              source.address.ToString(), source.table)});
  }
  for (const ip::Address& address : spec.addresses) {
    if (Holds(host.routes, address)) continue;
    plan.push_back({.part = Part::kHostRoute,
                    .address = address,
                    .found = fmt::format("route to {} by {} is gone from the node",
                                         address.ToString(), link)});
  }
}

// Plans the way out of the pod for what comes from `address`.
void PlanPodRoutes(const AttachSpec& spec, const PodSide& pod, const ip::Address& address,
                   LinkOperations& plan) {
  const bool later = spec.ordinal > 0;
  const auto rule = std::find_if(
      pod.rules.begin(), pod.rules.end(),
      [&](const PodSourceRule& found) { return found.source == ip::Prefix::Host(address); });
  std::string found;
  for (PodRoute route : PodRoutesOf(spec, address)) {
    // A later interface works by its own table.
    if (later && route.table == kMainTable) continue;
    if (later && rule != pod.rules.end()) route.table = rule->table;
    if (Holds(pod.routes, route)) continue;
    if (!found.empty()) found += ", ";
    found += route.gateway ? fmt::format("default route by {} dev {} is gone from the pod",
                                         route.gateway->ToString(), spec.pod_link)
                           : fmt::format("route to the gateway {} by {} is gone from the pod",
                                         route.destination.base().ToString(), spec.pod_link);
  }
  if (!found.empty()) {
    plan.push_back({.part = Part::kPodRoute, .address = address, .found = std::move(found)});
  }
  if (later && rule == pod.rules.end()) {
    plan.push_back({.part = Part::kPodRule,
                    .address = address,
                    .found = fmt::format("rule for what comes from {} is gone from the pod",
                                         address.ToString())});
  }
}

void PlanPod(const AttachSpec& spec, const PodSide& pod, LinkOperations& plan) {
  if (pod.name != spec.pod_link) {
    std::string found = fmt::format("the other end of {} is called {} in the pod, not {}",
                                    spec.host_link, pod.name, spec.pod_link);
    if (!pod.impostor.empty()) {
      found += fmt::format(", and link {} of the pod is a {} of somebody else's", spec.pod_link,
                           pod.impostor);
    }
    plan.push_back({.part = Part::kPodLink, .found = std::move(found)});
  }
  if (!pod.up) {
    plan.push_back(
        {.part = Part::kPodUp, .found = fmt::format("link {} is down in the pod", pod.name)});
  }
  for (const ip::Address& address : InOrder(spec)) {
    if (!Holds(pod.addresses, address)) {
      plan.push_back({.part = Part::kPodAddress,
                      .address = address,
                      .found = fmt::format("address {} is gone from {} in the pod",
                                           address.ToString(), pod.name)});
    }
    const ip::Address gateway = GatewayOf(address);
    const PermanentNeighbour* const entry = FindNeighbour(pod.neighbours, gateway);
    if (entry == nullptr || entry->mac != spec.host_mac) {
      const std::string found = entry == nullptr
                                    ? "is gone from the pod"
                                    : fmt::format("has MAC {} in the pod, not {}",
                                                  entry->mac.ToString(), spec.host_mac.ToString());
      plan.push_back({.part = Part::kPodNeighbour,
                      .address = address,
                      .found = fmt::format("neighbour entry of the gateway {} on {} {}",
                                           gateway.ToString(), pod.name, found)});
    }
    PlanPodRoutes(spec, pod, address, plan);
  }
}

}  // namespace

Ipv6Setting RouterSettingOf(const AttachSpec& spec) {
  const bool has_ipv6 = std::any_of(spec.addresses.begin(), spec.addresses.end(),
                                    [](const ip::Address& address) { return !address.is_v4(); });
  if (has_ipv6) return {.name = kAcceptRa, .value = 0};
  return {.name = "disable_ipv6", .value = 1};
}

std::string_view NameOf(Part part) { return kPartNames[static_cast<size_t>(part)]; }
bool IsInPod(Part part) { return part >= Part::kPodLink; }

std::vector<PodRoute> PodRoutesOf(const AttachSpec& spec, const ip::Address& address) {
  const ip::Address gateway = GatewayOf(address);
  const ip::Address any = address.is_v4() ? ip::Address::V4(0) : ip::Address::V6(0, 0);
  const PodRoute main{ip::Prefix::Of(any, 0).value(), gateway, kMainTable};
  if (spec.ordinal > 0) return {main, {main.destination, gateway, PodTableOf(spec)}};
  // IPv6 needs no route to its gateway, which is link-local; nor does our default route of IPv4,
  // but plugins that are chained behind us add routes by the gateway they read in the result.
  if (!address.is_v4()) return {main};
  return {{ip::Prefix::Host(gateway), std::nullopt, kMainTable}, main};
}

uint32_t PodTableOf(const AttachSpec& spec) { return claims::kFirstPodTable + spec.ordinal; }

std::optional<LinkShaping> PlanLinkShaping(units::BitRate rate, units::BitCount burst,
                                           uint32_t mtu) {
  if (rate.is_zero()) return std::nullopt;
  const uint64_t bytes_per_second = std::max<uint64_t>(units::ToBytes(rate).count(), 1);
  const uint64_t packet = mtu + kHeaderBytes;
  uint64_t bytes = std::clamp(bytes_per_second / kBurstsASecond, kMinBurst, kMaxBurst);
  if (!burst.is_zero()) bytes = std::min(bytes, units::ToBytes(burst).count());
  bytes = std::max(bytes, packet);
  const uint64_t queue = std::min(bytes_per_second / kQueuesASecond, kMaxQueue);
  const uint64_t limit = std::max({queue, bytes, kMinQueuedPackets * packet});
  return LinkShaping{.rate = units::ByteRate(bytes_per_second),
                     .burst = units::ByteCount(bytes),
                     .limit = units::ByteCount(limit)};
}

std::optional<units::BitRate> IngressRateOf(const AttachSpec& spec) {
  const cni::Bandwidth& asked = spec.bandwidth;
  const auto ingress = PlanLinkShaping(asked.ingress_rate, asked.ingress_burst, spec.mtu);
  if (!ingress) return std::nullopt;
  return units::ToBits(ingress->rate);
}

LinkOperations PlanLink(const AttachSpec& spec, const ObservedLink& observed) {
  if (spec.addresses.empty()) return PlanRemoval(observed.host);
  // The kernel has taken the other end with it, and all that led to either.
  if (!observed.host.exists) return PlanNew(spec);
  LinkOperations plan;
  PlanHost(spec, observed, plan);
  if (observed.pod) PlanPod(spec, *observed.pod, plan);
  return plan;
}

AttachSpec NoLink(std::string host_link) { return {.host_link = std::move(host_link)}; }

}  // namespace spoke::netagent
