// The rules of the table "spoke" of family inet. Pure; traffic_plan.h puts them into the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/nft/ruleset.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/traffic/traffic_plan.h"

namespace spoke::netagent {

// The address that is the far end's: the destination of what leaves, the source of what comes.
enum class FarEnd : uint8_t { kDestination, kSource };
// Returns the name of the verdict map from addresses to the chains of their classes, and of the
// chain that looks into it. What is not in the map is of the class internet.
std::string ClassMapOf(FarEnd end, ip::Family family);
// Returns the name of the chain of one class.
std::string ClassChainOf(FarEnd end, ip::Family family, const std::string& class_text);
// Returns whether the chain is one of a class, of this policy or another.
bool IsClassChain(const std::string& chain);
// Returns whether such a chain is one that only a policy makes.
bool TellsOfAPolicy(const std::string& chain);
// Returns the name of the set of the peer spokes' addresses.
std::string PeerSetOf(ip::Family family);
// Returns how objects' names call a class: its name where that never changes, else the number.
std::string ClassText(const ClassMap& classes, ClassNumber number);

// Returns all chains; a base chain comes after those it leads to.
std::vector<nft::Chain> TrafficChains(const ClassMap& classes, const TrafficPlanSettings& settings);
// Returns all rules, chain by chain.
std::vector<nft::Rule> TrafficRules(const ClassMap& classes, const TrafficPlanSettings& settings);

// Returns the largest blocks of the class cluster: most packets are of these, and a comparison with
// a mask costs a fraction of a look-up among intervals.
std::vector<ip::Prefix> HotBlocks(const ClassMap& classes, ip::Family family);

}  // namespace spoke::netagent
