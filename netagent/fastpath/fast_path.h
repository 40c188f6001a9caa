// The guard of pods' links, and the fast path: programs at the devices' ingress (tc-bpf(8)).
//
// The guard drops what a pod has no right to send, whatever becomes of the rules in nf_tables. On
// the fast path packets between a pod here and an address inside the cluster pass from device to
// device, and meet neither routing, nor nf_tables, nor connection tracking. Everything that a
// program does not know for certain goes the ordinary way.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/fastpath/fast_hop.h"

namespace spoke::netagent {

// The time for which a pair is remembered; it is longer than connection tracking remembers one that
// is idle: kube-proxy sets a day.
inline constexpr absl::Duration kTranslatedFor = absl::Hours(25);

// The most pods that are repaired at once; more would take the one who repairs too long.
inline constexpr size_t kRepairedAtOnce = 64;

// The most pods, fast or not, those included that have ended and are not forgotten yet; and the
// most addresses of one family that are this node's.
inline constexpr size_t kMaxFastPods = 1024;

// Not thread-safe. What it has put into the kernel stays there, and works, without the agent; the
// next agent takes it over with all counts.
//
// A frame that comes by a pod's link is refused, and counted, unless: its source MAC is the pod's,
// where that is known; it has no VLAN tag; it is IP from the pod's own address, or ARP that tells
// of the pod's own MAC and address; of IPv6 also a neighbour solicitation, an advertisement of the
// pod's own address, and a report of a multicast listener from a link-local address or from none;
// and it is nothing that only a router says (ICMP redirects, router solicitations and
// advertisements, queries and routing of multicast).
//
// A packet is taken by the fast path only if: both ends are in fast blocks or are fast pods, and at
// least one is a pod here; it is not sent to an address of this node that is no fast pod's
// (SetLocal()); its source is the address of the pod it comes from; it is proven plain: a frame to
// this host without a VLAN tag, lengths and checksum of the IP header right, no options or
// extension headers, no fragment, no ICMP error but about a packet that was taken itself, TTL (hop
// limit) above 1, which falls by one; and nobody has translated a connection between its two
// addresses within kTranslatedFor: packets that bear kTranslatedMark (claims.h) when they leave a
// pod's link or the uplink tell of one, and both directions of the pair then go the ordinary way.
// Room for pairs is bounded, in all and for each pod: a pod that has one too many goes the ordinary
// way with all that it sends and receives, until it ends.
class FastPath {
 public:
  virtual ~FastPath() = default;

  // Returns whether a device runs programs of an earlier agent. Errors: kUnavailable, kInternal.
  virtual absl::StatusOr<bool> IsThere() = 0;

  // Puts the programs onto the uplink, or changes what they go by; the pods stay. Without an uplink
  // they are taken off the one before. Errors:
  // kNotFound (no such uplink); kInvalidArgument (too many hops; two families in one);
  // kUnimplemented (the kernel lacks something, which is named); kPermissionDenied; kInternal.
  virtual absl::Status Configure(const FastPathTable& table) = 0;

  // Adds a pod: its link is guarded and its packets go this way from now on. Another pod that has
  // not ended and is said to be behind the same link ends: that device has gone. Returns the id
  // under which it is counted, from 0: no id is ever used again. Errors: kFailedPrecondition
  // (Configure() first); kInvalidArgument (a pod without an address); kResourceExhausted
  // (kMaxFastPods); kAlreadyExists (an address is another pod's); kInternal.
  virtual absl::StatusOr<uint64_t> AddPod(const TrafficPod& pod, PodWay way) = 0;

  // Changes a pod: its packets go this way from now on, and come from this MAC. Errors: kNotFound
  // (it is not there, or has ended); kInternal.
  virtual absl::Status Change(uint64_t id, PodWay way,
                              const std::optional<ip::MacAddress>& pod_mac) = 0;

  // Sets all addresses that are this node's, with pods or without: to one that is no fast pod's
  // packets go the ordinary way, also where a hop has it. What was named before and is not now is
  // no longer this node's. Errors: kFailedPrecondition (Configure() first); kResourceExhausted
  // (more than kMaxFastPods of a family; what was named before stays); kInternal.
  virtual absl::Status SetLocal(const std::set<ip::Address>& addresses) = 0;

  // Adds these addresses: what was named before stays. Errors: those of SetLocal().
  virtual absl::Status AddLocal(const std::vector<ip::Address>& addresses) = 0;

  // Ends a pod: what still comes by its link is refused from now on, packets to it go the ordinary
  // way, and its addresses are this node's until SetLocal() says otherwise; its counts stay
  // readable. OK when it is not there, or has ended already.
  virtual absl::Status EndPod(uint64_t id) = 0;

  // Forgets a pod whose counts are no longer wanted. OK when it is not there. Ends it, if it has
  // not ended.
  virtual absl::Status ForgetPod(uint64_t id) = 0;

  // Reads all pods that are not forgotten, those of earlier agents too; by id.
  virtual absl::StatusOr<std::vector<FastPodReading>> Read() = 0;

  // Reads what was refused since the programs were first loaded here, each reason once. Errors:
  // kInternal.
  virtual absl::StatusOr<std::vector<RefusedCount>> ReadRefused() = 0;

  // Forgets pairs of addresses between which nothing translated has passed for kTranslatedFor, or
  // since the pod at one end was added, or whose pods have ended. Call every few minutes.
  virtual absl::Status SweepTranslated() = 0;

  // Puts back what somebody has taken off: of the uplink, and of kRepairedAtOnce pods in turn.
  // Returns from how many devices something was missing. Call every few seconds.
  virtual absl::StatusOr<size_t> Repair() = 0;

  // Takes everything off again, also what an earlier agent has left: all packets go the ordinary
  // way.
  virtual absl::Status Remove() = 0;
};

}  // namespace spoke::netagent
