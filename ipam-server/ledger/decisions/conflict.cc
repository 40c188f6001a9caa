#include "ipam-server/ledger/decisions/conflict.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/quarantine.h"

namespace spoke::ipam {
namespace {

// The most claims of one node, on what others hold, that are noted: an agent that claims all there
// is must not hide what the others say.
constexpr std::ptrdiff_t kMostClaimsNoted = 16;

// Returns both of them in words. Who is named is looked up once for each holder: it takes a walk
// over all nodes, and an agent may report as often as it likes.
const std::string& NoteHeard(Fleet& fleet, const NodeRecord& holder, const ip::Address& address,
                             const std::string& mac, absl::Time until) {
  const auto [it, inserted] = fleet.doubled.try_emplace(address);
  DoubledAddress& doubled = it->second;
  if (doubled.claimant) return doubled.holders;  // It names more than a MAC does.
  doubled.until = until;
  if (!inserted && doubled.holder == holder.key) return doubled.holders;
  doubled.holder = holder.key;
  std::string other = mac.empty() ? "another NIC" : mac;
  const auto parsed = ip::MacAddress::Parse(mac);
  for (const auto& [key, record] : fleet.ledger.nodes()) {
    if (!parsed.ok() || record.nic_mac != *parsed || key == holder.key) continue;
    other = fmt::format("{} (the NIC of node {})", mac, key.name);
    break;
  }
  doubled.holders = fmt::format("node {} holds it, and {} answers for it", holder.key.name, other);
  return doubled.holders;
}

// An agent that reports its whole network must not take it from the others.
bool MayQuarantine(const Fleet& fleet, const NodeRecord& record, const ip::Address& address) {
  const AddressPool& pool = fleet.ledger.pools().Covering(address)->pool;
  uint64_t of_node = 0;
  uint64_t of_pool = 0;
  for (const auto& [until, quarantined] : fleet.ledger.quarantine().ends) {
    of_node += record.Holding(quarantined) != nullptr ? 1 : 0;
    of_pool += pool.spec().cidr.Contains(quarantined) ? 1 : 0;
  }
  const auto share =
      static_cast<uint64_t>(fleet.policy.conflict.share * static_cast<double>(pool.usable()));
  return of_node < fleet.policy.conflict.per_node &&
         of_pool < std::max(share, fleet.policy.conflict.floor);
}

}  // namespace

Effects OnConflict(Fleet& fleet, const NodeKey& key, const ip::Address& address,
                   const std::string& other, absl::Time now) {
  Effects effects;
  const NodeRecord* record = fleet.ledger.Find(key);
  const Configuration* configuration = record == nullptr ? nullptr : record->Holding(address);
  if (configuration == nullptr) return effects;  // It speaks of what is not its own.
  const absl::Time until = now + fleet.policy.conflict.quarantine;
  const std::string reason = NoteHeard(fleet, *record, address, other, until);
  if (fleet.ledger.quarantine().entries.contains(address)) {
    Prolong(fleet, address, until, effects);
    return effects;
  }
  if (!MayQuarantine(fleet, *record, address)) {
    if (fleet.conflicts_refused.insert(key).second) {
      effects.findings.push_back(
          {Finding::Kind::kConflict, key, address,
           reason + "; not put into quarantine, since so many reports are not plausible"});
    }
    return effects;
  }
  effects.findings.push_back({Finding::Kind::kConflict, key, address, reason});
  auto quarantined = SetQuarantine(
      fleet, address, Quarantine{.reason = reason, .since = now, .until = until, .doubled = true},
      now);
  if (quarantined.ok()) effects.Merge(*std::move(quarantined));
  return effects;
}

bool NoteClaim(Fleet& fleet, const NodeKey& claimant, const NodeRecord& holder,
               const ip::Address& address, std::string_view claim) {
  const auto others =
      std::count_if(fleet.doubled.begin(), fleet.doubled.end(), [&](const auto& entry) {
        return entry.second.claimant == claimant && entry.first != address;
      });
  if (others >= kMostClaimsNoted || claimant == holder.key) return false;
  const Configuration* configuration = holder.Holding(address);
  const bool in_use = configuration != nullptr && configuration->At(address).use == Use::kInUse;
  DoubledAddress& doubled = fleet.doubled[address];
  const bool known = doubled.claimant == claimant;
  doubled = {.holders = fmt::format("node {} holds it{}, and node {} {}", holder.key.name,
                                    in_use ? " for a pod" : "", claimant.name, claim),
             .holder = holder.key,
             .claimant = claimant};
  return !known;
}

void EndClaim(Fleet& fleet, const NodeKey& claimant, const ip::Address& address) {
  const auto it = fleet.doubled.find(address);
  if (it != fleet.doubled.end() && it->second.claimant == claimant) fleet.doubled.erase(it);
}

void EndClaimsOf(Fleet& fleet, const std::string& node) {
  std::erase_if(fleet.doubled, [&](const auto& entry) {
    return entry.second.claimant && entry.second.claimant->name == node;
  });
}

void EndDoubled(Fleet& fleet, absl::Time now) {
  std::erase_if(fleet.doubled, [&](const auto& entry) {
    const auto& [address, doubled] = entry;
    if (!doubled.claimant) return doubled.until <= now;
    const NodeRecord* holder = HolderOf(fleet.ledger, address);
    return holder == nullptr || holder->key != doubled.holder ||
           !fleet.ledger.nodes().contains(*doubled.claimant);
  });
}

}  // namespace spoke::ipam
