// The table "spoke" of family netdev: a shorter way for packets between pods of the cluster, which
// are forwarded where they come in, by the device and to the neighbour that routing would have
// chosen. Pure.
//
// It takes only what it may: a pod's own address, the class cluster except for Services, as the
// main table routes it; whole packets that have hops left, between two addresses between which
// nothing is translated. Everything else goes the long way, uncounted here. Pods are in it whose
// packets always fit the NIC, and on whose cluster traffic no policy has a say. For each pair of
// addresses both directions take the same way, since whoever tracks connections must see both or
// none.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "netagent/classes/address_ranges.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/fastpath/fast_hop.h"
#include "netagent/fastpath/fast_path_obstacles.h"

namespace spoke::netagent {

struct FastPathSettings {
  std::string uplink = {};           // The node's first NIC.
  bool wanted = true;                // Whether it is wanted: not `traffic.fast_path: off`.
  std::string missing = {};          // What this kernel lacks for it, in words; empty: nothing.
  FastPathObstacles obstacles = {};  // The obstacles that forbid it.
  // The addresses for which packets, to and from them, take the ordinary way, though the cluster
  // has them.
  std::set<ip::Address> ordinary = {};
};

// A route of the main table. One by an unreachable route, by several next hops or by none has
// device 0.
struct NodeRoute {
  ip::Prefix destination;
  uint32_t metric = 0;
  uint32_t device = 0;
  // The gateway; nothing: the destination is on the link itself.
  std::optional<ip::Address> gateway;
  bool ours = false;  // Whether it leads to a pod, or is that of an address that no pod has.

  bool operator==(const NodeRoute&) const = default;
};

struct NodeAddress {
  ip::Address address;
  int prefix_length = 0;

  bool operator==(const NodeAddress&) const = default;
};

struct NodeNetwork {
  std::string uplink;
  uint32_t uplink_index = 0;
  uint32_t uplink_mtu = 0;             // The MTU in bytes.
  std::vector<NodeAddress> addresses;  // The addresses of all devices.
  std::vector<NodeRoute> routes;
  // Whether rules of others send some packets elsewhere than the main table says.
  bool foreign_rules = false;

  bool operator==(const NodeNetwork&) const = default;
};

// Returns the hops, sorted and disjoint, neighbours different: those of the class cluster, routed
// by the uplink, neither a Service's nor the node's own nor a broadcast address, nor one of
// `ordinary`.
std::vector<FastHop> PlanHops(const ClassMap& classes, const NodeNetwork& network,
                              ip::Family family, const std::set<ip::Address>& ordinary = {});

class FastPathPlan {
 public:
  // Makes the plan. `on` is false, and `state` says why, when it is not wanted or not possible.
  static FastPathPlan Plan(const FastPathSettings& settings, const ClassMap& classes,
                           const NodeNetwork& network);

  bool on() const { return on_; }
  const std::string& state() const { return state_; }  // Returns "on", or what keeps pods off.
  // Returns whether pods become fast that are not.
  bool takes_new_pods() const { return on_ && takes_new_pods_; }
  const NodeNetwork& network() const { return network_; }

  // Returns why the pod is not in it; empty if it is. `kept_by_policy` is
  // EgressRules::KeepsFromFastPath().
  std::string WhyNot(const TrafficPod& pod, bool kept_by_policy) const;

  // Returns this node's own addresses, those of its pods, and those that no pod has: never beyond a
  // hop.
  std::set<ip::Address> Local() const;

  // Returns what the kernel goes by; nothing is in it when it is off.
  FastPathTable Table() const;

  bool operator==(const FastPathPlan& other) const {
    return on_ == other.on_ && takes_new_pods_ == other.takes_new_pods_ && state_ == other.state_ &&
           hops_v4_ == other.hops_v4_ && hops_v6_ == other.hops_v6_ &&
           network_.uplink_index == other.network_.uplink_index &&
           network_.uplink == other.network_.uplink &&
           network_.uplink_mtu == other.network_.uplink_mtu;
  }

 private:
  bool on_ = false;
  bool takes_new_pods_ = true;
  std::string state_;
  NodeNetwork network_;
  std::vector<FastHop> hops_v4_;
  std::vector<FastHop> hops_v6_;
};

}  // namespace spoke::netagent
