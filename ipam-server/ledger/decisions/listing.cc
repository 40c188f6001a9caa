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

// Returns the nodes that this listing lacks as the one before did, and that have no session.
std::set<NodeKey> NoteMissing(Fleet& fleet, const std::set<NodeKey>& present,
                              const std::set<NodeKey>& connected) {
  std::set<NodeKey> missing;
  std::set<NodeKey> twice;
  for (const auto& [key, record] : fleet.ledger.nodes()) {
    if (present.contains(key)) continue;
    missing.insert(missing.end(), key);
    if (fleet.missing.contains(key) && !connected.contains(key)) twice.insert(twice.end(), key);
  }
  fleet.missing = std::move(missing);
  return twice;
}

// What a listing says of the nodes that hold something.
struct Loss {
  uint64_t known = 0;
  uint64_t lost = 0;  // Not in the listing, and nobody has their name.
};

Loss LossOf(const Fleet& fleet, const std::set<NodeKey>& present) {
  Loss loss;
  for (const auto& [key, record] : fleet.ledger.nodes()) {
    if (!HasAddresses(record)) continue;
    ++loss.known;
    loss.lost += present.contains(key) || IsSucceeded(fleet, record) ? 0 : 1;
  }
  return loss;
}

bool MayFreeGone(Fleet& fleet, const Loss& loss, uint64_t would_free, Effects& effects,
                 absl::Time now) {
  const bool was_frozen = fleet.breaker.frozen();
  const auto shrank = fleet.breaker.SourceShrank("the cloud's list of VMs", loss.known,
                                                 loss.known - loss.lost, now);
  if (fleet.breaker.frozen() != was_frozen) {
    effects.breaker = true;
    effects.findings.push_back({Finding::Kind::kFrozen, NodeKey(), ip::Address(), shrank.reason});
  }
  return shrank.allowed && MayFree(fleet, would_free, NodeKey(), effects, now);
}

}  // namespace

Effects OnListing(Fleet& fleet, const std::set<NodeKey>& present,
                  const std::set<NodeKey>& connected, absl::Time now) {
  Effects effects;
  const std::set<NodeKey> missing_twice = NoteMissing(fleet, present, connected);
  std::vector<NodeKey> gone;
  std::vector<NodeKey> succeeded;
  std::vector<NodeKey> empty;
  uint64_t would_free = 0;
  for (const NodeKey& key : missing_twice) {
    const NodeRecord& record = *fleet.ledger.Find(key);
    if (!HasAddresses(record)) {
      const auto waiting = fleet.forgettable.find(key);
      if (waiting == fleet.forgettable.end() || waiting->second > now) empty.push_back(key);
    } else if (IsSucceeded(fleet, record)) {
      succeeded.push_back(key);
    } else {
      gone.push_back(key);
      would_free += AddressesHeld(record);
    }
  }
  const Loss loss = LossOf(fleet, present);
  for (const NodeKey& key : succeeded) FreeGone(fleet, *fleet.ledger.Find(key), effects, now);
  if (!gone.empty() && !MayFreeGone(fleet, loss, would_free, effects, now)) return effects;
  for (const NodeKey& key : gone) FreeGone(fleet, *fleet.ledger.Find(key), effects, now);
  if (fleet.breaker.frozen()) return effects;
  for (const NodeKey& key : empty) FreeGone(fleet, *fleet.ledger.Find(key), effects, now);
  return effects;
}

std::vector<NodeKey> GoneMeanwhile(Fleet& fleet, const std::set<NodeKey>& present,
                                   const std::set<NodeKey>& connected) {
  const std::set<NodeKey> missing_twice = NoteMissing(fleet, present, connected);
  const Loss loss = LossOf(fleet, present);
  const bool is_believed =
      !fleet.breaker.frozen() && loss.lost <= fleet.breaker.MayLack(loss.known);
  std::vector<NodeKey> gone;
  for (const NodeKey& key : missing_twice) {
    if (is_believed || IsSucceeded(fleet, *fleet.ledger.Find(key))) gone.push_back(key);
  }
  return gone;
}

void FreeGone(Fleet& fleet, NodeRecord& record, Effects& effects, absl::Time now) {
  effects.findings.push_back(
      {Finding::Kind::kGone, record.key, ip::Address(),
       fmt::format("{} addresses are free after the cooldown", AddressesHeld(record))});
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
  fleet.forgettable.insert_or_assign(record.key, now);
  record.mode = NodeMode::kRetired;
}

}  // namespace spoke::ipam
