// Pod links, addresses and routes as the node's kernel holds them. Implemented by NetlinkRouter
// and, in tests, FakeKernel; router_contract.h holds the promises below as tests for both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// A host link of ours and what is routed to it.
struct AttachedLink {
  std::string host_link;
  std::vector<ip::Address> addresses;  // Sorted.

  bool operator==(const AttachedLink&) const = default;
};

// A network device of the node that carries attached addresses.
struct Nic {
  std::string name;
  ip::MacAddress mac;
  uint32_t mtu = 0;                    // Bytes.
  std::vector<ip::Address> addresses;  // Global scope, sorted.

  bool operator==(const Nic&) const = default;
};

// Not thread-safe: one thread does the kernel work, since more would only fight for RTNL.
class Router {
 public:
  virtual ~Router() = default;

  // Builds the attachment: veth pair with both MACs and the MTU, the pod end in `pod_netns`
  // (borrowed for the call), up, with its /32 and /128, the gateway's permanent neighbour and
  // default route; the host end up, with permanent neighbours and a route for each address. Each
  // end that a rate is asked for limits what it sends (links/link_shaping.h says how). Where the
  // runtime has switched IPv6 off and there is an IPv6 address, it is switched on for the link.
  //
  // What comes from an address with a source table leaves by that table, and what comes from the
  // others by none of ours.
  //
  // The default routes of an interface after its container's first (`ordinal`) are worse than the
  // first's, and a rule leads what comes from its addresses out by it. (That rule stays when the
  // interface goes before the pod: it then leads into an empty table.)
  //
  // An
  // address that an older attachment has moves to this one. If a detached link that is not
  // unregistered yet has one of the names or addresses, it waits for that first.
  //
  // On an error nothing of this attachment remains, and nothing else has changed.
  //
  // Errors: kAlreadyExists (a link of either name is there already: it is left alone);
  // kUnavailable (a detached link is in the way, and the kernel does not let go of it: try again);
  // kFailedPrecondition (`pod_netns` is the node's own namespace, or not a network namespace);
  // kInvalidArgument (the host link's name is not ours); kResourceExhausted; kInternal (what else
  // the kernel refused, with its words; so two first links of one family in a pod, for the pod has
  // a default route already).
  virtual absl::Status Attach(const AttachSpec& spec, int pod_netns) = 0;

  // Cuts the attachment off: when this returns its routes, rules and neighbours on the node are
  // gone and the host end is down. The link itself is unregistered soon after, together with
  // others; until then ListAttached() does not show it. OK when it is not there. Errors:
  // kInvalidArgument (a name that is not ours); kUnavailable (too many links wait to be
  // unregistered: this one is cut off all the same; try again); kInternal.
  virtual absl::Status Detach(const std::string& host_link) = 0;

  // Waits until every detached link is unregistered. Errors: kUnavailable (try again).
  virtual absl::Status FinishDetaching() = 0;

  // All host links of ours that are not detached, by name. Errors: kUnavailable (the dump kept
  // being interrupted).
  virtual absl::StatusOr<std::vector<AttachedLink>> ListAttached() = 0;

  // Makes the unreachable routes of ours exactly those for `addresses` (see claims.h), and leaves
  // pod routes alone. Idempotent. Errors: kUnavailable (try again); kInternal.
  virtual absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) = 0;

  // Gives the NIC with this MAC a table with a way out of its own: the gateway of the main table's
  // default route by it, or else (IPv4) the first host of its subnet, where clouds have theirs.
  // Returns the table's number, for AttachSpec::source_tables; the same for as long as the device
  // is there. Idempotent. Errors, all of which name the NIC: kNotFound (no such device);
  // kFailedPrecondition (no gateway is known); kUnavailable (try again); kInternal.
  virtual absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& nic) = 0;

  // The index of a host link that is attached. Errors: kNotFound (there is none of that name);
  // kUnavailable (try again); kInternal.
  virtual absl::StatusOr<uint32_t> HostIndex(const std::string& host_link) = 0;

  // Errors: kNotFound (no device of that name); kUnavailable (try again); kInternal.
  virtual absl::StatusOr<Nic> ReadNic(const std::string& name) = 0;
};

}  // namespace spoke::netagent
