#include "netagent/kernel/attach_batches.h"

#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>

#include <optional>
#include <string_view>

#include "lib/ip/prefix.h"
#include "lib/netlink/address.h"
#include "lib/netlink/link.h"
#include "lib/netlink/neighbour.h"
#include "lib/netlink/route.h"
#include "netagent/core/claims.h"
#include "netagent/core/host_link_settings.h"

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

netlink::Route LinkRoute(const ip::Address& destination, int32_t link) {
  return {.destination = ip::Prefix::Host(destination),
          .protocol = claims::kRouteProtocol,
          .scope = RT_SCOPE_LINK,
          .link = link};
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
static_assert(HasSetting(IPV4_DEVCONF_ACCEPT_REDIRECTS, "accept_redirects"));
static_assert(HasSetting(IPV4_DEVCONF_SEND_REDIRECTS, "send_redirects"));
static_assert(HasSetting(IPV4_DEVCONF_ACCEPT_SOURCE_ROUTE, "accept_source_route"));
static_assert(kHostLinkSettings.size() == 7);
static_assert(kHostLinkAddressGeneration == IN6_ADDR_GEN_MODE_NONE);

netlink::LinkSettings HostLinkSettings(bool with_ipv6) {
  netlink::LinkSettings settings;
  settings.ipv4.reserve(kHostLinkSettings.size());
  for (const HostLinkSetting& setting : kHostLinkSettings) {
    settings.ipv4.push_back({setting.number, setting.value});
  }
  if (with_ipv6) settings.address_generation = kHostLinkAddressGeneration;
  return settings;
}

}  // namespace

std::vector<netlink::Request> PodBatch(const AttachSpec& spec, const AttachIndexes& indexes,
                                       int node_netns) {
  std::vector<netlink::Request> batch;
  batch.reserve(1 + 4 * spec.addresses.size());
  // The outer end is the only one that can be born up, and it is the pod's.
  batch.push_back(netlink::CreateVeth({spec.pod_link, indexes.pod, spec.pod_mac},
                                      {spec.host_link, indexes.host, spec.host_mac}, node_netns,
                                      spec.mtu));
  for (const ip::Address& address : spec.addresses) {
    const ip::Address gateway = GatewayFor(address);
    batch.push_back(netlink::AddAddress(indexes.pod, address));
    batch.push_back(netlink::SetPermanentNeighbour(indexes.pod, gateway, spec.host_mac));
    batch.push_back(netlink::AddRoute(LinkRoute(gateway, indexes.pod)));
    batch.push_back(netlink::AddRoute({.destination = DefaultPrefix(address),
                                       .protocol = claims::kRouteProtocol,
                                       .link = indexes.pod,
                                       .gateway = gateway}));
  }
  return batch;
}

std::vector<netlink::Request> NodeBatch(const AttachSpec& spec, const AttachIndexes& indexes,
                                        bool node_has_ipv6) {
  std::vector<netlink::Request> batch;
  batch.reserve(2 + 2 * spec.addresses.size());
  // Settings first, in a request of their own: in one request the kernel would bring the link up
  // before it reads them. IPv6 has no setting here for forwarding: the kernel looks at the node's
  // as a whole (conf/all, see node_setup.h).
  const bool with_ipv6 = node_has_ipv6 && spec.mtu >= kMinMtuV6;
  batch.push_back(netlink::ConfigureLink(indexes.host, HostLinkSettings(with_ipv6)));
  batch.push_back(netlink::SetLinkUp(indexes.host, true));
  for (const ip::Address& address : spec.addresses) {
    batch.push_back(netlink::SetPermanentNeighbour(indexes.host, address, spec.pod_mac));
  }
  // Routes last: they may take the place of an older attachment's, so nothing else may fail after.
  for (const ip::Address& address : spec.addresses) {
    batch.push_back(netlink::ReplaceRoute(LinkRoute(address, indexes.host)));
  }
  return batch;
}

}  // namespace spoke::netagent
