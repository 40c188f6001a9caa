#include "ipam-server/ledger/decisions/quarantine.h"

#include <set>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ipam {

absl::StatusOr<Effects> SetQuarantine(Fleet& fleet, const ip::Address& address,
                                      std::optional<Quarantine> quarantine, absl::Time now) {
  const PoolEntry* entry = fleet.ledger.pools().Offering(address);
  if (entry == nullptr) {
    return absl::NotFoundError(
        fmt::format("{} is in none of the pools; see: spokectl pool list", address.ToString()));
  }
  const auto& entries = fleet.ledger.quarantine().entries;
  const auto known = entries.find(address);
  if (known != entries.end() && quarantine && !known->second.until) {
    return absl::AlreadyExistsError(
        fmt::format("{} is in quarantine already: {}", address.ToString(), known->second.reason));
  }
  if (known == entries.end() && !quarantine) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not in quarantine", address.ToString()));
  }
  Effects effects;
  effects.quarantined.insert(address);
  const NodeRecord* record = entry->pool.OwnerOf(address);
  effects.history.push_back(EntryOf(quarantine ? HistoryEvent::kQuarantined : HistoryEvent::kLifted,
                                    record == nullptr ? NodeKey() : record->key, address, now));
  if (!quarantine) {
    const auto doubled = fleet.doubled.find(address);
    if (doubled != fleet.doubled.end() && !doubled->second.claimant) fleet.doubled.erase(doubled);
  } else if (record != nullptr && record->Holding(address)->IsAvailable()) {
    effects.reclaim[record->key].push_back(*entry->pool.UnitOf(address));
  }
  if (record != nullptr) effects.desired.insert(record->key);
  fleet.ledger.SetQuarantine(address, std::move(quarantine));
  return effects;
}

void AskForWithheld(const Fleet& fleet, const NodeRecord& record, Effects& effects,
                    absl::Time now) {
  if (fleet.ledger.quarantine().entries.empty()) return;
  for (const auto& [base, configuration] : record.configurations) {
    if (configuration.state == AddressState::kAttached && configuration.IsAvailable() &&
        configuration.denied_until <= now &&
        fleet.ledger.quarantine().Withholds(configuration.range)) {
      effects.reclaim[record.key].push_back(configuration.range);
    }
  }
}

// It is not stored each time it is heard again.
void Prolong(Fleet& fleet, const ip::Address& address, absl::Time until, Effects& effects) {
  Quarantine longer = fleet.ledger.quarantine().entries.at(address);
  if (!longer.until || until - *longer.until < fleet.policy.conflict.quarantine / 4) return;
  longer.until = until;
  fleet.ledger.SetQuarantine(address, std::move(longer));
  effects.quarantined.insert(address);
}

void EndQuarantines(Fleet& fleet, Effects& effects, absl::Time now) {
  const auto& ends = fleet.ledger.quarantine().ends;
  while (!ends.empty() && ends.begin()->first <= now) {
    const ip::Address address = ends.begin()->second;
    auto ended = SetQuarantine(fleet, address, std::nullopt, now);
    CHECK(ended.ok(), "what ends is in quarantine");
    effects.Merge(*std::move(ended));
  }
  if (ends.empty()) fleet.conflicts_refused.clear();
}

void HoldClaims(Fleet& fleet, const node_api::Hello& hello, Effects& effects, absl::Time now) {
  const auto& entries = fleet.ledger.quarantine().entries;
  std::set<ip::Address>& claimed = fleet.refused_claims[hello.node.node_name];
  std::erase_if(claimed, [&](const ip::Address& address) { return !entries.contains(address); });
  const absl::Time until = now + fleet.policy.conflict.quarantine;
  for (const node_api::Assignment& assignment : hello.in_use) {
    const ip::Address& address = assignment.address;
    // Nobody remembers after a restart whose claims they were.
    const auto known = entries.find(address);
    const bool ends = known != entries.end() && known->second.until;
    if (ends && claimed.size() < fleet.policy.nic_configurations) claimed.insert(address);
    if (claimed.contains(address)) {
      Prolong(fleet, address, until, effects);
      continue;
    }
    // A node claims no more than a NIC takes in all, or it could claim the pool bit by bit.
    const PoolEntry* entry = fleet.ledger.pools().Covering(address);
    if (claimed.size() >= fleet.policy.nic_configurations || entry == nullptr ||
        entry->pool.StateOf(address) != AddressPool::State::kFree) {
      continue;
    }
    const std::string reason =
        fmt::format("node {} says that a pod uses it, and was refused", hello.node.node_name);
    auto quarantined = SetQuarantine(
        fleet, address, Quarantine{.reason = reason, .since = now, .until = until}, now);
    if (!quarantined.ok()) continue;
    effects.Merge(*std::move(quarantined));
    claimed.insert(address);
  }
  if (claimed.empty()) fleet.refused_claims.erase(hello.node.node_name);
}

}  // namespace spoke::ipam
