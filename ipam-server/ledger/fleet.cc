#include "ipam-server/ledger/fleet.h"

#include <algorithm>

#include "ipam-server/ledger/promises.h"

namespace spoke::ipam {
namespace {

std::vector<std::string> NodesWithPromises(const ReservationBook& reservations) {
  std::vector<std::string> nodes;
  for (const auto& [name, reservation] : reservations.all()) {
    for (const auto& [node, missing] : reservation.missing) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

Fleet::Fleet(const std::vector<PoolSpec>& pools, const FleetPolicy& by)
    : policy(by), ledger(pools, by.target, by.cooldown), breaker(by.breaker) {}

bool IsWithheld(const Fleet& fleet, const Configuration& configuration) {
  if (fleet.ledger.quarantine().Withholds(configuration.range)) return true;
  const auto missing = fleet.off_nic.find(configuration.range.base());
  return missing != fleet.off_nic.end() && missing->second.reported;
}

AddressCounts CountOfUse(const Fleet& fleet, const Configuration& configuration) {
  AddressCounts counts = CountAddresses(configuration);
  if (counts.available > 0 && IsWithheld(fleet, configuration)) counts.available = 0;
  return counts;
}

std::set<NodeKey> FinishLoading(Fleet& fleet, absl::Time now) {
  std::set<NodeKey> changed = fleet.ledger.FinishLoading(now);
  for (const auto& [key, record] : fleet.ledger.nodes()) {
    if (record.configurations.empty() && record.wanted.empty()) {
      fleet.forgettable.emplace(key, now + fleet.policy.replaced_stays);
    }
    const bool given =
        std::any_of(record.wanted.begin(), record.wanted.end(),
                    [](const auto& entry) { return entry.second.given.has_value(); });
    if (given) fleet.unsettled.insert(key);
  }
  for (const auto& [address, quarantine] : fleet.ledger.quarantine().entries) {
    if (!quarantine.doubled || !quarantine.until) continue;
    fleet.doubled[address] = {
        .holders = quarantine.reason, .holder = NodeKey(), .until = *quarantine.until};
  }
  if (!fleet.reservations.all().empty()) {
    fleet.reservations.Recount(CapacityOf(fleet, NodesWithPromises(fleet.reservations)));
  }
  return changed;
}

void TakeUnstored(Fleet& fleet, const Fleet& former) {
  fleet.doubled = former.doubled;
  fleet.demands = former.demands;
  fleet.ending = former.ending;
  fleet.used_unheld = former.used_unheld;
  fleet.heard = former.heard;
  const auto is_gone = [&](const auto& entry) {
    return !fleet.ledger.nodes().contains(entry.first);
  };
  std::erase_if(fleet.demands, is_gone);
  std::erase_if(fleet.ending, is_gone);
  std::erase_if(fleet.used_unheld, is_gone);
  std::erase_if(fleet.heard,
                [&](const NodeKey& key) { return !fleet.ledger.nodes().contains(key); });
}

}  // namespace spoke::ipam
