// An egress policy's limits as rules. Pure.
#pragma once

#include <string>
#include <vector>

#include "netagent/egress/egress_policy.h"
#include "netagent/nftables/rule_parts.h"

namespace spoke::netagent {

// Returns the rules. Each drops a new flow that is beyond one of the policy's limits, and counts it
// in `counter`. What is counted is the pod's, or the pod's and one destination's, under this very
// limit: a policy with another number counts anew.
std::vector<rules::Expressions> LimitRules(const ResolvedEgress& policy,
                                           const std::string& counter);

}  // namespace spoke::netagent
