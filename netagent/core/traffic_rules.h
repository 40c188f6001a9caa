// The rules of the table "spoke" of family inet. Pure; traffic_plan.h puts them into the kernel.
#pragma once

#include <string>
#include <vector>

#include "lib/nft/ruleset.h"
#include "netagent/core/traffic_class.h"

namespace spoke::netagent {

// All chains, bases first after those they lead to.
std::vector<nft::Chain> TrafficChains();
// All rules, chain by chain. `mark_translated` as in TrafficPlanSettings.
std::vector<nft::Rule> TrafficRules(const ClassMap& classes, bool mark_translated);

// The largest blocks of the class cluster: most packets are of these, and a comparison with a mask
// costs a fraction of a look-up among intervals.
std::vector<ip::Prefix> HotBlocks(const ClassMap& classes, ip::Family family);

}  // namespace spoke::netagent
