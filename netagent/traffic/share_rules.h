// A pod's share of the node's connections (connection_shares.h) as rules of the table spoke: a pod
// that is over it begins none, and no pod begins more than so many a second. Pure.
//
// Rules that ask about connections have the kernel track them, so these are for a node that does so
// anyway. A packet of a connection that is known meets one of them.
#pragma once

#include <string>
#include <vector>

#include "lib/nft/ruleset.h"
#include "netagent/connections/connection_shares.h"

namespace spoke::netagent {

inline constexpr char kShareChain[] = "pod_shares";

// The counters of first packets that are dropped: those of pods with more than their share of
// connections, or of ports, and of those that begin too many at a time.
inline constexpr char kOverConnections[] = "drop/pod-share-connections";
inline constexpr char kOverPorts[] = "drop/pod-share-ports";
inline constexpr char kOverRate[] = "drop/pod-share-rate";

// Returns all sets, which are there whatever the shares are. Their keys begin with the link that a
// packet came by, which a pod cannot forge, so that there are no more than there are pods.
std::vector<nft::Set> ShareSets();
nft::Chain ShareBaseChain();
std::vector<nft::Rule> ShareRules(const ConnectionShares& shares);

// Gives every pod what it may begin at once anew: rates that are there do not change with the
// rules.
void AppendFreshRates(nft::Transaction& transaction);
// Puts exactly these links and targets into the sets as over their share.
void AppendOver(const OverShare& over, nft::Transaction& transaction);

}  // namespace spoke::netagent
