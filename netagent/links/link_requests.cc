#include "netagent/links/link_requests.h"

#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <string_view>

#include "lib/ip/prefix.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

// The plan may not look into the kernel's headers, so its numbers are compared with them here.
constexpr bool HasSetting(uint16_t number, std::string_view name) {
  for (const HostLinkSetting& setting : kHostLinkSettings) {
    if (setting.number == number && setting.name == name) return true;
  }
  return false;
}
static_assert(HasSetting(IPV4_DEVCONF_FORWARDING, "forwarding"));
static_assert(HasSetting(IPV4_DEVCONF_RP_FILTER, "rp_filter"));
static_assert(HasSetting(IPV4_DEVCONF_PROXY_ARP, "proxy_arp"));
static_assert(HasSetting(IPV4_DEVCONF_ARP_ACCEPT, "arp_accept"));
static_assert(HasSetting(IPV4_DEVCONF_ARP_IGNORE, "arp_ignore"));
static_assert(HasSetting(IPV4_DEVCONF_ACCEPT_REDIRECTS, "accept_redirects"));
static_assert(HasSetting(IPV4_DEVCONF_SEND_REDIRECTS, "send_redirects"));
static_assert(HasSetting(IPV4_DEVCONF_ACCEPT_SOURCE_ROUTE, "accept_source_route"));
static_assert(kHostLinkSettings.size() == 8);
static_assert(kHostLinkAddressGeneration == IN6_ADDR_GEN_MODE_NONE);
static_assert(kMainTable == RT_TABLE_MAIN);

netlink::LinkSettings HostLinkSettings(bool have_ipv6) {
  netlink::LinkSettings settings;
  settings.ipv4.reserve(kHostLinkSettings.size());
  for (const HostLinkSetting& setting : kHostLinkSettings) {
    settings.ipv4.push_back({setting.number, setting.value});
  }
  // IPv6 has no setting here for forwarding: the kernel looks at the node's as a whole (conf/all,
  // see node_setup.h).
  if (have_ipv6) settings.address_generation = kHostLinkAddressGeneration;
  return settings;
}

// A pod that has no IPv6 address gets no link-local one either: with it the pod would ask for
// routers, which there are none of, again and again, and nobody counts what a pod tells its link.
bool IsQuiet(const AttachSpec& spec, const LinkEnds& ends) {
  return ends.have_ipv6 && std::all_of(spec.addresses.begin(), spec.addresses.end(),
                                       [](const ip::Address& address) { return address.is_v4(); });
}

void PutLink(const AttachSpec& spec, const LinkEnds& ends, std::vector<netlink::Request>& batch) {
  // The outer end is the only one that can be born up, and it is the pod's.
  batch.push_back(netlink::CreateVeth({spec.pod_link, ends.pod, spec.pod_mac},
                                      {spec.host_link, ends.host, spec.host_mac}, ends.node_netns,
                                      spec.mtu));
  if (!IsQuiet(spec, ends)) return;
  // This is in time: the device would get the address with its carrier, when the host end is up.
  batch.push_back(netlink::ConfigureLink(
      ends.pod, {.ipv4 = {}, .address_generation = uint8_t{IN6_ADDR_GEN_MODE_NONE}}));
}

netlink::Request AddLimit(const AttachSpec& spec, int32_t host_link) {
  const auto shaping =
      PlanLinkShaping(spec.bandwidth.ingress_rate, spec.bandwidth.ingress_burst, spec.mtu);
  return netlink::AddTokenBucket(host_link, claims::kShaperHandle,
                                 {.rate = shaping->rate.count(),
                                  .burst = static_cast<uint32_t>(shaping->burst.count()),
                                  .limit = static_cast<uint32_t>(shaping->limit.count())});
}

}  // namespace

void PutRequests(const AttachSpec& spec, const LinkOperation& operation, const LinkEnds& ends,
                 std::vector<netlink::Request>& batch) {
  switch (operation.part) {
    case Part::kHostLink:
      return PutLink(spec, ends, batch);
    case Part::kHostSetting:
      // The settings are a request of their own: with the change to up, that would come first.
      batch.push_back(netlink::ConfigureLink(ends.host, HostLinkSettings(ends.have_ipv6)));
      return;
    case Part::kHostRouters:  // See KernelLinks::IgnoreRouters().
      return;
    case Part::kHostMac:
      batch.push_back(netlink::SetLinkMac(ends.host, spec.host_mac));
      return;
    case Part::kHostMtu:
      batch.push_back(netlink::SetLinkMtu(ends.host, operation.mtu));
      return;
    case Part::kIngressLimit:
      batch.push_back(AddLimit(spec, ends.host));
      return;
    case Part::kHostUp:
      batch.push_back(netlink::SetLinkUp(ends.host, true));
      return;
    case Part::kHostNeighbour:
      batch.push_back(netlink::SetPermanentNeighbour(ends.host, *operation.address, operation.mac));
      return;
    case Part::kHostRule:
      batch.push_back(netlink::AddRule(SourceRule({*operation.address, operation.table})));
      return;
    case Part::kHostRoute:
      batch.push_back(netlink::ReplaceRoute(RouteToPod(*operation.address, ends.host)));
      return;
    case Part::kPodLink:
      return;
    case Part::kPodUp:
      batch.push_back(netlink::SetLinkUp(ends.pod, true));
      return;
    case Part::kPodAddress:
      batch.push_back(netlink::AddAddress(ends.pod, *operation.address));
      return;
    case Part::kPodNeighbour:
      batch.push_back(
          netlink::SetPermanentNeighbour(ends.pod, GatewayOf(*operation.address), spec.host_mac));
      return;
    case Part::kPodRoute:
      for (const PodRoute& route : PodRoutesOf(spec, *operation.address)) {
        batch.push_back(netlink::AddRoute(RouteOf(spec, ends.pod, route)));
      }
      return;
    case Part::kPodRule:
      batch.push_back(netlink::AddRule(PodRule(spec, *operation.address)));
      return;
  }
}

LinkBatches BatchesOf(const AttachSpec& spec, const LinkOperations& plan, const LinkEnds& ends) {
  LinkBatches batches;
  // The room is enough for all requests that there can be, since they are dear to move.
  batches.in_pod.reserve(2 + 5 * spec.addresses.size());
  batches.on_node.reserve(3 + 4 * spec.addresses.size());
  std::optional<size_t> first_v6;
  for (const LinkOperation& operation : plan) {
    const bool in_pod = operation.part == Part::kHostLink || IsInPod(operation.part);
    const bool is_v6 = operation.address && !operation.address->is_v4();
    if (in_pod && is_v6 && !first_v6) first_v6 = batches.in_pod.size();
    PutRequests(spec, operation, ends, in_pod ? batches.in_pod : batches.on_node);
  }
  batches.first_v6 = first_v6.value_or(batches.in_pod.size());
  return batches;
}

netlink::Route RouteToPod(const ip::Address& address, int32_t host_link) {
  return {.destination = ip::Prefix::Host(address),
          .protocol = claims::kRouteProtocol,
          .scope = RT_SCOPE_LINK,
          .link = host_link};
}

netlink::Route RouteOf(const AttachSpec& spec, int32_t link, const PodRoute& route) {
  const bool is_v4 = route.destination.base().is_v4();
  netlink::Route out{.destination = route.destination,
                     .table = route.table,
                     .protocol = claims::kRouteProtocol,
                     .link = link,
                     .gateway = route.gateway,
                     // IPv6 knows that a link-local gateway is on the link.
                     .on_link = route.gateway && is_v4};
  if (!route.gateway) out.scope = RT_SCOPE_LINK;
  if (spec.ordinal > 0 && route.table == kMainTable) {
    out.metric = spec.ordinal + (is_v4 ? claims::kLaterMetricV4 : claims::kLaterMetricV6);
  }
  return out;
}

netlink::Rule PodRule(const AttachSpec& spec, const ip::Address& address) {
  return {.family = address.family(),
          .priority = claims::kPodRulePriority,
          .from = ip::Prefix::Host(address),
          .table = PodTableOf(spec),
          .protocol = claims::kRouteProtocol,
          .suppress_prefix_length = {}};
}

netlink::Rule SourceRule(const SourceTable& source) {
  return {.family = source.address.family(),
          .priority = claims::kSourcePriority,
          .from = ip::Prefix::Host(source.address),
          .table = source.table,
          .protocol = claims::kRouteProtocol,
          .suppress_prefix_length = {}};
}

}  // namespace spoke::netagent
