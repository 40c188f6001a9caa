// The rules of the table "spoke" of family inet. Pure; traffic_plan.h puts them into the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/nft/ruleset.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/traffic/traffic_plan.h"

namespace spoke::netagent {

// Of the address at the far end: what leaves by its destination, what comes by its source.
enum class FarEnd : uint8_t { kDestination, kSource };
// The verdict map from addresses to the chains of their classes, and the chain that looks into it.
// What is not in the map is of the class internet.
std::string ClassMapOf(FarEnd end, ip::Family family);
// That of one class.
std::string ClassChainOf(FarEnd end, ip::Family family, const std::string& class_text);
// Whether the chain is one of a class, of this policy or another.
bool IsClassChain(const std::string& chain);
// Whether such a chain is one that only a policy makes.
bool TellsOfAPolicy(const std::string& chain);
// The set of the peer spokes' addresses.
std::string PeerSetOf(ip::Family family);
// Of a class in the names of objects: its name where that never changes, else the number.
std::string ClassText(const ClassMap& classes, ClassNumber number);

// All chains, bases first after those they lead to.
std::vector<nft::Chain> TrafficChains(const ClassMap& classes, const TrafficPlanSettings& settings);
// All rules, chain by chain.
std::vector<nft::Rule> TrafficRules(const ClassMap& classes, const TrafficPlanSettings& settings);

// The largest blocks of the class cluster: most packets are of these, and a comparison with a mask
// costs a fraction of a look-up among intervals.
std::vector<ip::Prefix> HotBlocks(const ClassMap& classes, ip::Family family);

}  // namespace spoke::netagent
