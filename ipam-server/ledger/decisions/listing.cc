#include "ipam-server/ledger/decisions/listing.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

// Another VM has the name, and has booted: that the old one is missing from the list has a reason.
bool IsSucceeded(const Fleet& fleet, const NodeRecord& record) {
  if (record.mode != NodeMode::kRetired) return false;
  const NodeRecord* successor = FindByName(fleet.ledger, record.key.name);
  return successor != nullptr && !successor->boot_id.empty() &&
         successor->boot_id != record.boot_id;
}

}  // namespace

Effects OnListing(Fleet& fleet, const std::set<NodeKey>& present,
                  const std::set<NodeKey>& connected, absl::Time now) {
  Effects effects;
  if (fleet.hold.active) return effects;
  std::set<NodeKey> missing;
  std::vector<NodeKey> gone;
  std::vector<NodeKey> succeeded;
  uint64_t known = 0;
  uint64_t lost = 0;
  uint64_t would_free = 0;
  for (const auto& [key, record] : fleet.ledger.nodes()) {
    if (record.configurations.empty() && record.wanted.empty()) continue;
    ++known;
    if (present.contains(key)) continue;
    missing.insert(key);
    const bool has_successor = IsSucceeded(fleet, record);
    lost += has_successor ? 0 : 1;
    if (!fleet.missing.contains(key) || connected.contains(key)) continue;
    (has_successor ? succeeded : gone).push_back(key);
    would_free += has_successor ? 0 : CountAddresses(record).total();
  }
  fleet.missing = std::move(missing);
  for (const NodeKey& key : succeeded) FreeGone(fleet, *fleet.ledger.Find(key), effects, now);
  if (gone.empty()) return effects;
  const bool was_frozen = fleet.breaker.frozen();
  const auto shrank =
      fleet.breaker.SourceShrank("the cloud's list of VMs", known, known - lost, now);
  if (fleet.breaker.frozen() != was_frozen) {
    effects.breaker = true;
    effects.findings.push_back({Finding::Kind::kFrozen, NodeKey(), ip::Address(), shrank.reason});
  }
  if (!shrank.allowed || !MayFree(fleet, would_free, NodeKey(), effects, now)) return effects;
  for (const NodeKey& key : gone) FreeGone(fleet, *fleet.ledger.Find(key), effects, now);
  return effects;
}

void FreeGone(Fleet& fleet, NodeRecord& record, Effects& effects, absl::Time now) {
  effects.findings.push_back(
      {Finding::Kind::kGone, record.key, ip::Address(),
       fmt::format("{} addresses are free after the cooldown", CountAddresses(record).total())});
  while (!record.wanted.empty()) {
    fleet.ledger.SetWanted(record, std::string(record.wanted.begin()->first), std::nullopt);
  }
  fleet.unsettled.erase(record.key);
  fleet.ledger.LeaveInstance(record);
  while (!record.configurations.empty()) {
    const auto& [base, configuration] = *record.configurations.begin();
    CHECK(Next(configuration.state, AddressEvent::kNodeGone) == AddressState::kFree,
          "a node that is gone holds nothing");
    Free(fleet, record, ip::Address(base), effects, now);
  }
  // The record of one that held nothing but names changes too: Free() was not called for it.
  effects.changed.insert(record.key);
  fleet.forgettable.insert(record.key);
  record.mode = NodeMode::kRetired;
}

}  // namespace spoke::ipam
