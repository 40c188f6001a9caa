// Pod links, addresses and routes as the node's kernel holds them. Implemented by KernelLinks and,
// in tests, FakeKernel; links_contract.h holds the promises below as tests for both.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "netagent/links/attach_plan.h"
#include "netagent/links/link_plan.h"

namespace spoke::netagent {

// A network device of the node that carries attached addresses.
struct Nic {
  std::string name;
  ip::MacAddress mac;
  uint32_t mtu = 0;                    // Bytes.
  std::vector<ip::Address> addresses;  // Global scope, sorted.

  bool operator==(const Nic&) const = default;
};

// The pods' namespaces in which something has changed.
struct PodChanges {
  bool all = false;         // In any of them something may have.
  std::set<int32_t> netns;  // By HostSide::peer_netns; of some use only if not all.

  bool operator==(const PodChanges&) const = default;
};

// Not thread-safe: one thread does the kernel work, since more would only fight for RTNL.
class Links {
 public:
  virtual ~Links() = default;

  // Reads the node's side of every host link of ours that is not taken down, by name. Takes the
  // same number of questions to the kernel however many there are. Errors: kUnavailable (links kept
  // changing meanwhile: look again later); kInternal.
  virtual absl::StatusOr<std::map<std::string, HostSide>> Read() = 0;

  // Reads the pod's side of `spec`, in the namespace of `pod_netns` (borrowed for the call).
  //
  // The path of a namespace may come to mean another one (/proc/PID is used again), so this makes
  // sure that the host link's peer is in it.
  // Errors: kNotFound (the host link is gone); kFailedPrecondition (its peer is not in there, or it
  // is no network namespace); kUnavailable (see Read()); kResourceExhausted; kInternal.
  virtual absl::StatusOr<PodSide> ReadPod(const AttachSpec& spec, int pod_netns) = 0;

  // Returns in which pods' namespaces a link, an address, a route, a rule or a neighbour entry has
  // been changed, by whomever, since the last call; all at the first. What is changed during the
  // call is in this answer or the next. It is all as well where the kernel does not tell this
  // process, and when it had more to tell than was kept for it.
  virtual PodChanges TakePodChanges() = 0;

  // Returns the index of the host link that Apply() made, or that was there when this began; 0: it
  // is not there. Asks nobody.
  virtual uint32_t IndexOf(const std::string& host_link) const = 0;

  // Returns what is remembered of the host link that Apply() made, or that was there when this
  // began: its index, its routes, and the rules of addresses that no other link has. Asks nobody.
  // The value of a link that is not there is as constructed.
  virtual HostSide Recall(const std::string& host_link) const = 0;

  // Carries out `plan`, PlanLink() of `spec`, in the namespace of `pod_netns` (borrowed for the
  // call) as far as it is in the pod.
  //
  // A plan that makes the link is carried out as a whole or not at all: on an error nothing of the
  // link remains, and nothing else has changed. Only kHostRouters may be left undone, where the
  // setting cannot be written: then Read() shows it. Where the runtime has switched IPv6 off and
  // there is an IPv6 address, it is switched on for the link. An address that an older link has
  // moves to this one, with its source tables. If a link that was taken down and is not
  // unregistered yet has one of the names or addresses, it waits for that first. The routes and
  // rules of an interface after its container's first (`ordinal`) are PodRoutesOf()'s; its rules
  // stay when the interface goes before the pod, and lead into an empty table. Errors:
  // kAlreadyExists (a link of either name is there already: it is left alone); kUnavailable (a link
  // that was taken down is in the way, and the kernel does not let go of it: try again);
  // kFailedPrecondition (`pod_netns` is the node's own namespace, or not a network namespace);
  // kInvalidArgument (the host link's name is not ours, or there is no `pod_netns`);
  // kResourceExhausted; kInternal (what else the kernel refused, with its words; so two first links
  // of one family in a pod, for the pod has a default route already).
  //
  // A plan that takes the link down (NoLink()) cuts it off: when this returns its routes, rules and
  // neighbours on the node are gone and the host end is down. The link itself is unregistered soon
  // after, together with others; until then Read() does not show it. OK when it is not there.
  // Errors: kInvalidArgument (a name that is not ours); kUnavailable (too many links wait to be
  // unregistered: this one is cut off all the same; try again); kInternal.
  //
  // Any other plan puts right what it names, and changes nothing else: what somebody else has put
  // in the place of ours stays, and is an error. Idempotent. An operation that fails does not keep
  // the others from being carried out; the first error is returned.
  // Errors: kInvalidArgument (kPodLink; or it is in the pod and there is no `pod_netns`);
  // kNotFound and kFailedPrecondition as for ReadPod(): nothing has been changed; kAlreadyExists
  // (something of somebody else's is in the way); kUnavailable; kInternal.
  virtual absl::Status Apply(const AttachSpec& spec, const LinkOperations& plan,
                             std::optional<int> pod_netns) = 0;

  // Makes the unreachable routes of ours exactly those for `addresses` (see claims.h), and leaves
  // pod routes alone. Idempotent. Errors: kUnavailable (try again); kInternal.
  virtual absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) = 0;

  // Gives the NIC with this MAC a table with a way out of its own: the gateway of the main table's
  // default route by it, or else (IPv4) the first host of its subnet, where clouds have theirs.
  // Returns the table's number, for AttachSpec::source_tables; the same for as long as the device
  // is there. Idempotent. Errors, all of which name the NIC: kNotFound (no such device);
  // kFailedPrecondition (no gateway is known); kUnavailable (try again); kInternal.
  virtual absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& nic) = 0;

  // Reads a NIC. Errors: kNotFound (no device of that name); kUnavailable (try again); kInternal.
  virtual absl::StatusOr<Nic> ReadNic(const std::string& name) = 0;
};

}  // namespace spoke::netagent
