// Addresses that two have at once, as agents' words show it: which they are, and which of them are
// kept from everybody for a time.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/fleet.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

// The most claims of one node, on what others hold, that are noted: an agent that claims all there
// is must not hide what the others say.
constexpr std::ptrdiff_t kMostClaimsNoted = 16;

}  // namespace

// Returns both of them in words. Who is named is looked up once for each holder: it takes a walk
// over all nodes, and an agent may report as often as it likes.
const std::string& Fleet::NoteHeard(const NodeRecord& holder, const ip::Address& address,
                                    const std::string& mac, absl::Time until) {
  const auto [it, inserted] = doubled_.try_emplace(address);
  DoubledAddress& doubled = it->second;
  if (doubled.claimant) return doubled.holders;  // It names more than a MAC does.
  doubled.until = until;
  if (!inserted && doubled.holder == holder.key) return doubled.holders;
  doubled.holder = holder.key;
  std::string other = mac.empty() ? "another NIC" : mac;
  const auto parsed = ip::MacAddress::Parse(mac);
  for (const auto& [key, record] : nodes_) {
    if (!parsed.ok() || record.nic_mac != *parsed || key == holder.key) continue;
    other = fmt::format("{} (the NIC of node {})", mac, key.name);
    break;
  }
  doubled.holders = fmt::format("node {} holds it, and {} answers for it", holder.key.name, other);
  return doubled.holders;
}

// Whether it is news.
bool Fleet::NoteClaim(const NodeKey& claimant, const NodeRecord& holder, const ip::Address& address,
                      std::string_view claim) {
  const auto others = std::count_if(doubled_.begin(), doubled_.end(), [&](const auto& entry) {
    return entry.second.claimant == claimant && entry.first != address;
  });
  if (others >= kMostClaimsNoted || claimant == holder.key) return false;
  const Configuration* configuration = holder.Holding(address);
  const bool in_use = configuration != nullptr && configuration->At(address).use == Use::kInUse;
  DoubledAddress& doubled = doubled_[address];
  const bool known = doubled.claimant == claimant;
  doubled = {.holders = fmt::format("node {} holds it{}, and node {} {}", holder.key.name,
                                    in_use ? " for a pod" : "", claimant.name, claim),
             .holder = holder.key,
             .claimant = claimant};
  return !known;
}

void Fleet::EndClaim(const NodeKey& claimant, const ip::Address& address) {
  const auto it = doubled_.find(address);
  if (it != doubled_.end() && it->second.claimant == claimant) doubled_.erase(it);
}

// Ends claims by the name alone: the same machine may have another VM id now.
void Fleet::EndClaimsOf(const std::string& node) {
  std::erase_if(doubled_, [&](const auto& entry) {
    return entry.second.claimant && entry.second.claimant->name == node;
  });
}

void Fleet::EndDoubled(absl::Time now) {
  std::erase_if(doubled_, [&](const auto& entry) {
    const auto& [address, doubled] = entry;
    if (!doubled.claimant) return doubled.until <= now;
    const NodeRecord* holder = HolderOf(address);
    return holder == nullptr || holder->key != doubled.holder ||
           !nodes_.contains(*doubled.claimant);
  });
}

Effects Fleet::OnConflict(const NodeKey& key, const ip::Address& address, const std::string& other,
                          absl::Time now) {
  Effects effects;
  const NodeRecord* record = Find(key);
  const Configuration* configuration = record == nullptr ? nullptr : record->Holding(address);
  if (configuration == nullptr) return effects;  // It speaks of what is not its own.
  const absl::Time until = now + policy_.conflict.quarantine;
  const std::string reason = NoteHeard(*record, address, other, until);
  if (quarantine_.contains(address)) {
    Prolong(address, until, effects);
    return effects;
  }
  if (!MayQuarantine(*record, address)) {
    if (conflicts_refused_.insert(key).second) {
      effects.findings.push_back(
          {Finding::Kind::kConflict, key, address,
           reason + "; not put into quarantine, since so many reports are not plausible"});
    }
    return effects;
  }
  effects.findings.push_back({Finding::Kind::kConflict, key, address, reason});
  auto quarantined = SetQuarantine(
      address, Quarantine{.reason = reason, .since = now, .until = until, .doubled = true}, now);
  if (quarantined.ok()) effects.Merge(*std::move(quarantined));
  return effects;
}

// One that an operator has put there has no end. It is not stored each time it is heard again.
void Fleet::Prolong(const ip::Address& address, absl::Time until, Effects& effects) {
  std::optional<absl::Time>& ends = quarantine_.at(address).until;
  if (!ends || until - *ends < policy_.conflict.quarantine / 4) return;
  quarantine_ends_.erase({*ends, address});
  ends = until;
  quarantine_ends_.emplace(until, address);
  effects.quarantined.insert(address);
}

// An agent that reports its whole network must not take it from the others.
bool Fleet::MayQuarantine(const NodeRecord& record, const ip::Address& address) const {
  const AddressPool& pool = *PoolOf(address);
  uint64_t of_node = 0;
  uint64_t of_pool = 0;
  for (const auto& [until, quarantined] : quarantine_ends_) {
    of_node += record.Holding(quarantined) != nullptr ? 1 : 0;
    of_pool += pool.spec().cidr.Contains(quarantined) ? 1 : 0;
  }
  const auto share =
      static_cast<uint64_t>(policy_.conflict.share * static_cast<double>(pool.usable()));
  return of_node < policy_.conflict.per_node && of_pool < std::max(share, policy_.conflict.floor);
}

void Fleet::EndQuarantines(Effects& effects, absl::Time now) {
  while (!quarantine_ends_.empty() && quarantine_ends_.begin()->first <= now) {
    const ip::Address address = quarantine_ends_.begin()->second;
    auto ended = SetQuarantine(address, std::nullopt, now);
    CHECK(ended.ok(), "what ends is in quarantine");
    effects.Merge(*std::move(ended));
  }
  if (quarantine_ends_.empty()) conflicts_refused_.clear();
}

}  // namespace spoke::ipam
