#include "netagent/kernel/attach_batches.h"

#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>

#include <optional>

#include "lib/ip/prefix.h"
#include "lib/netlink/address.h"
#include "lib/netlink/link.h"
#include "lib/netlink/neighbour.h"
#include "lib/netlink/route.h"
#include "netagent/core/claims.h"

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

netlink::LinkSettings HostLinkSettings(bool with_ipv6) {
  netlink::LinkSettings settings;
  settings.ipv4 = {
      {IPV4_DEVCONF_FORWARDING, 1},
      // Strict: what the pod sends from an address that is not routed to it is dropped.
      {IPV4_DEVCONF_RP_FILTER, 1},
      // The node speaks for nobody on this link, and learns no routes or neighbours from a pod.
      {IPV4_DEVCONF_PROXY_ARP, 0},
      {IPV4_DEVCONF_ARP_ACCEPT, 0},
      {IPV4_DEVCONF_ACCEPT_REDIRECTS, 0},
      {IPV4_DEVCONF_SEND_REDIRECTS, 0},
      {IPV4_DEVCONF_ACCEPT_SOURCE_ROUTE, 0},
  };
  if (with_ipv6) {
    // No link-local address: nobody speaks to it, and its routes would make every further link
    // slower to bring up (the kernel walks those of all links).
    settings.address_generation = IN6_ADDR_GEN_MODE_NONE;
  }
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
