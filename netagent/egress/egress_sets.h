// The sets and maps of egress: their names do not depend on policy, so that none is ever left over.
// Pure.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "lib/nft/ruleset.h"
#include "netagent/egress/egress_chains.h"
#include "netagent/nftables/rule_parts.h"

namespace spoke::netagent {

// These have "4" or "6" behind their names.
inline constexpr char kEgressCells[] = "egress_cells";      // Destination to the chain of its cell.
inline constexpr char kEgressCluster[] = "egress_cluster";  // Where pods are, for a gateway.
inline constexpr char kEgressInside[] = "egress_inside";  // Everything that is not on the Internet.
inline constexpr char kEgressOwn[] = "egress_own";        // Number to address, for a gateway.
// Gateways that are reached by a tunnel.
inline constexpr char kEgressGateways[] = "egress_gateways";
inline constexpr char kEgressPodRate[] = "egress_pod_rate";
inline constexpr char kEgressPodConnections[] = "egress_pod_conns";
inline constexpr char kEgressPairRate[] = "egress_pair_rate";
inline constexpr char kEgressPairConnections[] = "egress_pair_conns";
// These have exactly these names.
inline constexpr char kEgressActions[] = "egress_actions";  // Profile and cell to chain.
inline constexpr char kEgressUsual[] = "egress_usual";      // Profile to chain.
inline constexpr char kEgressSlots[] = "egress_slots";      // Policy and slot to gateway's chain.
inline constexpr char kEgressKept[] = "egress_kept";        // Mark of a flow to chain.
inline constexpr char kEgressTunnelled[] = "egress_tunnelled";  // Marks of flows in a tunnel.

// The most elements of the sets that count by pod, and by pod and destination. When one is full,
// flows that it has no element for are not limited. One pod's destinations do not fill it: it has
// no more of them than connections, of which it has its share (connection_shares.h), and what it
// asked for at a rate is soon forgotten.
inline constexpr uint32_t kEgressPodSize = 65'536;
inline constexpr uint32_t kEgressPairSize = 262'144;

std::vector<nft::Set> EgressSets();

}  // namespace spoke::netagent
