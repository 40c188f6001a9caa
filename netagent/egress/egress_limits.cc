#include "netagent/egress/egress_limits.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "netagent/egress/egress_sets.h"

namespace spoke::netagent {
namespace {

// Returns a key (FNV-1a) that stays the same for as long as the limit does, whatever else changes.
uint32_t KeyOf(std::string_view policy, uint32_t limit) {
  uint32_t hash = 0x811C'9DC5;
  const auto add = [&](uint8_t byte) { hash = (hash ^ byte) * 0x0100'0193; };
  for (const char c : policy) add(static_cast<uint8_t>(c));
  for (uint32_t shift = 0; shift < 32; shift += 8) add(static_cast<uint8_t>(limit >> shift));
  return hash;
}

struct Limit {
  const char* set;
  bool pair;  // Whether it counts by pod and destination.
  bool rate;
  uint32_t number;
};

rules::Expressions RuleOf(const ResolvedEgress& policy, const Limit& limit, ip::Family family,
                          const std::string& counter) {
  const nft::Register width = rules::Width(family);
  nft::PutInSet put{.set = limit.set + rules::Suffix(family), .from = 0, .refresh = limit.rate};
  if (limit.rate) {
    // A second's worth passes at once: clients open what they need together.
    put.each.emplace_back(
        nft::LimitRate{.per_second = limit.number, .burst = limit.number, .over = true});
  } else {
    put.each.emplace_back(nft::LimitConnections{.count = limit.number, .over = true});
  }
  return rules::All({rules::IsFamily(family),
                     rules::Number(KeyOf(policy.name, limit.number), 0),
                     rules::LoadSource(family, 1),
                     limit.pair
                         ? rules::LoadDestination(family, static_cast<nft::Register>(1 + width))
                         : rules::Expressions{},
                     {put},
                     rules::Drop(counter)});
}

}  // namespace

std::vector<rules::Expressions> LimitRules(const ResolvedEgress& policy,
                                           const std::string& counter) {
  const policy::EgressLimits& limits = policy.limits;
  // Rates come first: what they drop is not counted as a connection.
  const Limit all[] = {
      {kEgressPodRate, false, true, limits.new_connections_per_second},
      {kEgressPairRate, true, true, limits.new_connections_per_second_per_destination},
      {kEgressPodConnections, false, false, limits.connections},
      {kEgressPairConnections, true, false, limits.connections_per_destination},
  };
  std::vector<rules::Expressions> out;
  for (const Limit& limit : all) {
    if (limit.number == 0) continue;
    for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
      out.push_back(RuleOf(policy, limit, family, counter));
    }
  }
  return out;
}

}  // namespace spoke::netagent
