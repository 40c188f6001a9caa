// The netlink requests that carry out the operations of a link's plan. Pure.
//
// The order of requests goes by what they cost, as measured: a veth made in place with one queue
// each way takes half a millisecond; one that is made and then moved takes twenty, under the
// kernel's network lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/netlink/message.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/queueing/qdisc.h"
#include "netagent/links/link_plan.h"

namespace spoke::netagent {

// The two devices of a link, as requests name them.
struct LinkEnds {
  int32_t pod = 0;  // Indexes; the caller chooses those of a link that is to be made.
  int32_t host = 0;
  bool have_ipv6 = true;  // Whether the devices have an IPv6 part.
  int node_netns = -1;    // A descriptor of the node's namespace, for kHostLink.
};

// Below this MTU the kernel gives a device no IPv6 part, so there is nothing to configure.
inline constexpr uint32_t kMinMtuV6 = 1280;  // RFC 8200, section 5.

// Appends what makes the operation's part: for a socket in the pod's namespace if it is kHostLink
// or IsInPod(), else in the node's. Appends nothing for kPodLink, which only the pod can change.
void PutRequests(const AttachSpec& spec, const LinkOperation& operation, const LinkEnds& ends,
                 std::vector<netlink::Request>& batch);

// The plan of a link that is to be made, as one batch for each side.
struct LinkBatches {
  // The first request makes the pair, with the host end in the node's namespace; when it is
  // refused, nothing has been made.
  std::vector<netlink::Request> in_pod;
  // The index of the first of `in_pod` that is about an IPv6 address; all behind it are too. It is
  // their number when there is none. Where IPv6 is switched off this request is the one that is
  // refused, and they may be sent again from it on.
  size_t first_v6 = 0;
  std::vector<netlink::Request> on_node;  // To be sent when those are done.
};
LinkBatches BatchesOf(const AttachSpec& spec, const LinkOperations& plan, const LinkEnds& ends);

// The node's route to a pod's address.
netlink::Route RouteToPod(const ip::Address& address, int32_t host_link);

// Returns the netlink route for a route of PodRoutesOf() by the pod's end of the link.
netlink::Route RouteOf(const AttachSpec& spec, int32_t link, const PodRoute& route);

// The rule in the pod that leads what comes from `address` out by an interface after its
// container's first.
netlink::Rule PodRule(const AttachSpec& spec, const ip::Address& address);

// The rule on the node that leads what comes from the address into the table.
netlink::Rule SourceRule(const SourceTable& source);

}  // namespace spoke::netagent
