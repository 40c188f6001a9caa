// The tunnel between nodes and egress gateways (claims::kTunnelLink) as rules: who may send by it,
// who may receive, and how a gateway is asked whether it works. Pure; egress_chains.h puts them
// into the table.
//
// A node puts its pods' packets into the tunnel by the route that their mark leads to. Nobody else
// may: what a pod sends to a gateway's tunnel port itself is dropped here, behind all translation,
// and a gateway takes from the tunnel's port only what comes from the cluster's addresses and not
// from its own pods. What comes out of the tunnel goes to the Internet, translated, or nowhere.
//
// A gateway is asked at an address that nobody has (claims::kProbeV4, kProbeV6), by the tunnel. It
// translates the destination to itself and the source as it does for pods' flows; who asks is
// answered only if both have happened, by the ordinary way, from that address.
#pragma once

#include <utility>
#include <vector>

#include "lib/nft/ruleset.h"
#include "netagent/egress/egress_plan.h"
#include "netagent/nftables/rule_parts.h"

namespace spoke::netagent {

inline constexpr char kTunnelCounter[] = "drop/tunnel";

inline constexpr char kFromTunnel[] = "egress_from_tunnel";
// Returns all chains of the tunnel; kFromTunnel is the one without a hook.
std::vector<nft::Chain> TunnelChains();

// Returns elements of EgressSets(), by set. They are empty where the plan has no tunnel, and so are
// the rules below.
std::vector<std::pair<std::string, std::vector<nft::Element>>> TunnelElements(
    const EgressPlan& plan);
// Returns the rules of the chains of TunnelChains().
std::vector<nft::Rule> TunnelRules(const EgressPlan& plan);
// Returns the rules at the beginning of the chain that sees each packet first (prerouting).
std::vector<rules::Expressions> TunnelArrivals(const EgressPlan& plan);
// Returns the rules of the guard behind all translation (postrouting).
std::vector<rules::Expressions> TunnelGuard(const EgressPlan& plan);

}  // namespace spoke::netagent
