// An egress plan as objects of the table spoke. Pure; egress_rules.h is for others.
#pragma once

#include <set>
#include <string>

#include "lib/nft/ruleset.h"
#include "netagent/egress/egress_plan.h"

namespace spoke::netagent {

// The map from each pod's address to its profile, with "4" or "6" behind its name.
inline constexpr char kEgressPods[] = "egress_pods";

// Returns what that map has for a profile.
uint32_t ProfileKey(uint32_t profile);

inline constexpr char kEgressPrefix[] = "egress_";

// Return the counters of a policy's flows that were dropped, and of those beyond its limits.
std::string DropCounterOf(const std::string& policy);
std::string LimitCounterOf(const std::string& policy);
inline constexpr char kLeakCounter[] = "drop/leak";
// The counter of packets of flows that a policy has ended while they lasted.
inline constexpr char kCutCounter[] = "drop/cut";

// Append what EgressRules::AppendTables() promises, for a plan that does something and for one that
// does nothing. `old` are the chains of ours that there are.
void AppendEgress(const EgressPlan& plan, const std::set<std::string>& old,
                  nft::Transaction& transaction);
void AppendNoEgress(const std::set<std::string>& old, nft::Transaction& transaction);

}  // namespace spoke::netagent
