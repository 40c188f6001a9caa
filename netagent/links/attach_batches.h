// The netlink requests that build one attachment, in the order the kernel needs. Pure.
//
// Measured and explained in the order of cost: a veth made in place with one queue each way takes
// half a millisecond; one that is made and then moved takes twenty, under the kernel's network
// lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/netlink/link.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/request.h"
#include "lib/netlink/route.h"
#include "lib/netlink/rule.h"
#include "netagent/links/attach_plan.h"
#include "netagent/links/link_shaping.h"

namespace spoke::netagent {

// The two ends' indexes, chosen before the kernel has made either.
struct AttachIndexes {
  int32_t pod = 0;
  int32_t host = 0;
};

struct PodRequests {
  std::vector<netlink::Request> requests;
  // The first that is about an IPv6 address; all behind it are too. The number of requests when
  // there is none. Where IPv6 is switched off it is the one that is refused, and they may be sent
  // again from it on.
  size_t first_v6 = 0;
};

struct AttachNode {
  int netns = -1;        // A descriptor of its namespace.
  bool has_ipv6 = true;  // This kernel speaks IPv6 at all.
};

// For a socket in the pod's namespace. The first request makes the pair, with the host end in the
// node's namespace; when it is refused, nothing has been made. A pod that has no IPv6 address gets
// no link-local one either: with it the pod would ask for routers, which there are none of, again
// and again, and nobody counts what a pod tells its link.
PodRequests PodBatch(const AttachSpec& spec, const AttachIndexes& indexes, const AttachNode& node);

// For a socket in the node's namespace, when PodBatch() is done. `node_has_ipv6`: this kernel
// speaks IPv6 at all.
std::vector<netlink::Request> NodeBatch(const AttachSpec& spec, const AttachIndexes& indexes,
                                        bool node_has_ipv6);

// The node's route to a pod's address.
netlink::Route RouteToPod(const ip::Address& address, int32_t host_link);

// What a host link is set to; `with_ipv6`: it has an IPv6 part.
netlink::LinkSettings HostLinkSettings(bool with_ipv6);

// The pod's routes for what comes from `address`, one of the spec's: those of an interface
// after its container's first are in the main table, with a worse metric, and in a table of its
// own.
std::vector<netlink::Route> PodRoutes(const AttachSpec& spec, int32_t link,
                                      const ip::Address& address);

netlink::TokenBucket Bucket(const LinkShaping& shaping);

// The rule in the pod that leads what comes from `address`, one of the spec's, out by the
// attachment; nothing for a container's first interface, which needs none.
std::optional<netlink::Rule> PodRule(const AttachSpec& spec, const ip::Address& address);

// The rule that leads what comes from the address into the table.
netlink::Rule SourceRule(const SourceTable& source);

}  // namespace spoke::netagent
