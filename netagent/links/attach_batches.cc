#include "netagent/links/attach_batches.h"

#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "lib/ip/prefix.h"
#include "lib/netlink/address.h"
#include "lib/netlink/link.h"
#include "lib/netlink/neighbour.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/route.h"
#include "lib/netlink/rule.h"
#include "netagent/claims.h"
#include "netagent/links/host_link_settings.h"
#include "netagent/links/link_shaping.h"

namespace spoke::netagent {
namespace {

// Below this MTU the kernel gives a device no IPv6 part, so there is nothing to configure.
constexpr uint32_t kMinMtuV6 = 1280;  // RFC 8200, section 5.

ip::Address GatewayFor(const ip::Address& address) {
  return address.is_v4() ? claims::kGatewayV4 : claims::kGatewayV6;
}

ip::Prefix DefaultPrefix(const ip::Address& address) {
  return ip::Prefix::Of(address.is_v4() ? ip::Address::V4(0) : ip::Address::V6(0, 0), 0).value();
}

// core/ may not look into the kernel's headers, so its numbers are held against them here.
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

bool HasIpv6(const AttachSpec& spec) {
  return std::any_of(spec.addresses.begin(), spec.addresses.end(),
                     [](const ip::Address& address) { return !address.is_v4(); });
}

// What the pod needs to use `address`, appended to `batch`.
void PutPodAddress(const AttachSpec& spec, int32_t link, const ip::Address& address,
                   std::vector<netlink::Request>& batch) {
  const ip::Address gateway = GatewayFor(address);
  batch.push_back(netlink::AddAddress(link, address));
  batch.push_back(netlink::SetPermanentNeighbour(link, gateway, spec.host_mac));
  for (const netlink::Route& route : PodRoutes(spec, link, address)) {
    batch.push_back(netlink::AddRoute(route));
  }
  // What comes from this address leaves by this link.
  if (const auto rule = PodRule(spec, address)) batch.push_back(netlink::AddRule(*rule));
}

}  // namespace

netlink::LinkSettings HostLinkSettings(bool with_ipv6) {
  netlink::LinkSettings settings;
  settings.ipv4.reserve(kHostLinkSettings.size());
  for (const HostLinkSetting& setting : kHostLinkSettings) {
    settings.ipv4.push_back({setting.number, setting.value});
  }
  if (with_ipv6) settings.address_generation = kHostLinkAddressGeneration;
  return settings;
}

PodRequests PodBatch(const AttachSpec& spec, const AttachIndexes& indexes, const AttachNode& node) {
  PodRequests pod;
  std::vector<netlink::Request>& batch = pod.requests;
  batch.reserve(4 + 5 * spec.addresses.size());
  const bool quiet = node.has_ipv6 && spec.mtu >= kMinMtuV6 && !HasIpv6(spec);
  // The outer end is the only one that can be born up, and it is the pod's.
  batch.push_back(netlink::CreateVeth({spec.pod_link, indexes.pod, spec.pod_mac},
                                      {spec.host_link, indexes.host, spec.host_mac}, node.netns,
                                      spec.mtu));
  if (quiet) {
    // In time: it would get the address with its carrier, when the host end comes up.
    batch.push_back(netlink::ConfigureLink(
        indexes.pod, {.ipv4 = {}, .address_generation = uint8_t{IN6_ADDR_GEN_MODE_NONE}}));
  }
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    if (family == ip::Family::kV6) pod.first_v6 = batch.size();
    for (const ip::Address& address : spec.addresses) {
      if (address.family() == family) PutPodAddress(spec, indexes.pod, address, batch);
    }
  }
  return pod;
}

std::vector<netlink::Request> NodeBatch(const AttachSpec& spec, const AttachIndexes& indexes,
                                        bool node_has_ipv6) {
  std::vector<netlink::Request> batch;
  batch.reserve(3 + 3 * spec.addresses.size());
  // Settings first, in a request of their own: in one request the kernel would bring the link up
  // before it reads them. IPv6 has no setting here for forwarding: the kernel looks at the node's
  // as a whole (conf/all, see node_setup.h).
  const bool with_ipv6 = node_has_ipv6 && spec.mtu >= kMinMtuV6;
  batch.push_back(netlink::ConfigureLink(indexes.host, HostLinkSettings(with_ipv6)));
  const Bandwidth& bandwidth = spec.bandwidth;
  if (const auto ingress =
          PlanLinkShaping(bandwidth.ingress_rate, bandwidth.ingress_burst, spec.mtu)) {
    // Before the link is up: after, the kernel would wait for all CPUs. What the pod sends is held
    // by a class of shaping/shaper.h, since at its own end of the link the pod has a say.
    batch.push_back(netlink::AddTokenBucket(indexes.host, claims::kShaperHandle, Bucket(*ingress)));
  }
  batch.push_back(netlink::SetLinkUp(indexes.host, true));
  for (const ip::Address& address : spec.addresses) {
    batch.push_back(netlink::SetPermanentNeighbour(indexes.host, address, spec.pod_mac));
  }
  for (const SourceTable& source : spec.source_tables) {
    batch.push_back(netlink::AddRule(SourceRule(source)));
  }
  // Routes last: they may take the place of an older attachment's, so nothing else may fail after.
  for (const ip::Address& address : spec.addresses) {
    batch.push_back(netlink::ReplaceRoute(RouteToPod(address, indexes.host)));
  }
  return batch;
}

netlink::Route RouteToPod(const ip::Address& address, int32_t host_link) {
  return {.destination = ip::Prefix::Host(address),
          .protocol = claims::kRouteProtocol,
          .scope = RT_SCOPE_LINK,
          .link = host_link};
}

std::vector<netlink::Route> PodRoutes(const AttachSpec& spec, int32_t link,
                                      const ip::Address& address) {
  netlink::Route route{.destination = DefaultPrefix(address),
                       .protocol = claims::kRouteProtocol,
                       .link = link,
                       .gateway = GatewayFor(address),
                       // IPv6 knows that a link-local gateway is.
                       .on_link = address.is_v4()};
  const auto rule = PodRule(spec, address);
  if (!rule && !address.is_v4()) return {route};
  // Our default route needs none to its gateway, but plugins that are chained behind us add routes
  // by the gateway they read in the result.
  if (!rule) {
    return {{.destination = ip::Prefix::Host(claims::kGatewayV4),
             .protocol = claims::kRouteProtocol,
             .scope = RT_SCOPE_LINK,
             .link = link},
            route};
  }
  netlink::Route later = route;
  later.metric = spec.ordinal + (address.is_v4() ? claims::kLaterMetricV4 : claims::kLaterMetricV6);
  route.table = rule->table;
  return {later, route};
}

netlink::TokenBucket Bucket(const LinkShaping& shaping) {
  return {
      .rate = shaping.bytes_per_second, .burst = shaping.burst_bytes, .limit = shaping.limit_bytes};
}

std::optional<netlink::Rule> PodRule(const AttachSpec& spec, const ip::Address& address) {
  if (spec.ordinal == 0) return std::nullopt;
  return netlink::Rule{.family = address.family(),
                       .priority = claims::kPodRulePriority,
                       .from = ip::Prefix::Host(address),
                       .table = claims::kFirstPodTable + spec.ordinal,
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
