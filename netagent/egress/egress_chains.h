// An egress plan as objects of the table spoke. Pure; egress_rules.h is for others.
#pragma once

#include <set>
#include <string>

#include "lib/nft/ruleset.h"
#include "netagent/egress/egress_plan.h"

namespace spoke::netagent {

// Maps and sets that hold something for each pod.
inline constexpr char kEgressPods[] = "egress_pods";  // And "4" or "6": address to profile.

// What that map has for a profile.
uint32_t ProfileKey(uint32_t profile);

inline constexpr char kEgressPrefix[] = "egress_";

// What a policy's flows that were dropped are counted in; and those beyond its limits.
std::string DropCounterOf(const std::string& policy);
std::string LimitCounterOf(const std::string& policy);
inline constexpr char kLeakCounter[] = "drop/leak";
// Packets of flows that a policy has ended while they lasted.
inline constexpr char kCutCounter[] = "drop/cut";

// As EgressRules::AppendTables(), for a plan that does something; and for one that does nothing.
// `old`: the chains of ours that there are.
void AppendEgress(const EgressPlan& plan, const std::set<std::string>& old,
                  nft::Transaction& transaction);
void AppendNoEgress(const std::set<std::string>& old, nft::Transaction& transaction);

}  // namespace spoke::netagent
