#include "netagent/egress/egress_sets.h"

#include <string>

namespace spoke::netagent {
namespace {

using nft::Field;

// The time after which a rate's element goes: a rate has forgotten everything after a second
// without a packet: its burst is a second's worth.
constexpr absl::Duration kRateTimeout = absl::Seconds(5);

}  // namespace

std::vector<nft::Set> EgressSets() {
  std::vector<nft::Set> sets = {
      {.name = kEgressActions, .key = {Field::kMark}, .verdicts = true},
      {.name = kEgressUsual, .key = {Field::kMark}, .verdicts = true},
      {.name = kEgressSlots, .key = {Field::kMark, Field::kMark}, .verdicts = true},
      {.name = kEgressKept, .key = {Field::kMark}, .verdicts = true},
      {.name = kEgressTunnelled, .key = {Field::kMark}},
  };
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const Field address = rules::AddressField(family);
    const std::string suffix = rules::Suffix(family);
    sets.push_back({.name = kEgressPods + suffix, .key = {address}, .value = Field::kMark});
    sets.push_back(
        {.name = kEgressCells + suffix, .key = {address}, .verdicts = true, .intervals = true});
    sets.push_back({.name = kEgressCluster + suffix, .key = {address}, .intervals = true});
    sets.push_back({.name = kEgressInside + suffix, .key = {address}, .intervals = true});
    sets.push_back({.name = kEgressGateways + suffix, .key = {address}});
    sets.push_back({.name = kEgressOwn + suffix, .key = {Field::kMark}, .value = address});
    const std::vector<Field> pod = {Field::kMark, address};
    const std::vector<Field> pair = {Field::kMark, address, address};
    for (const char* name : {kEgressPodRate, kEgressPairRate}) {
      sets.push_back({.name = name + suffix,
                      .key = name == kEgressPodRate ? pod : pair,
                      .dynamic = true,
                      .size = name == kEgressPodRate ? kEgressPodSize : kEgressPairSize,
                      .timeout = kRateTimeout});
    }
    // An element goes when its last connection has.
    for (const char* name : {kEgressPodConnections, kEgressPairConnections}) {
      sets.push_back({.name = name + suffix,
                      .key = name == kEgressPodConnections ? pod : pair,
                      .dynamic = true,
                      .size = name == kEgressPodConnections ? kEgressPodSize : kEgressPairSize});
    }
  }
  return sets;
}

}  // namespace spoke::netagent
