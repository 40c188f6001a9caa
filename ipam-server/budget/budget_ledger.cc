#include "ipam-server/budget/budget_ledger.h"

#include <algorithm>
#include <utility>

#include "ipam-server/budget/budget_book.h"

namespace spoke::ipam {
namespace {

// A node asks for several times of what it uses (four) only while it is held back. A queue that
// waits without dropping shows in nothing else.
constexpr uint64_t kHeldBackDemand = 3;
// A demand that has become so many times what it was is growing still.
constexpr uint64_t kMuchMore = 2;
// A grant is much too large when so many-th of it is not needed.
constexpr uint64_t kMuchLess = 5;
// The halvings after which learning is called over: they leave next to nothing. What is left still
// counts.
constexpr int kLearningHalvings = 10;

}  // namespace

BudgetLedger::BudgetLedger(BudgetSpec spec, Learning learning) : learning_(std::move(learning)) {
  SetSpec(std::move(spec));
  unknown_ = Grantable();
  if (learning_.unheard && learning_.unheard->empty()) unknown_ = {};
}

void BudgetLedger::ExpectNodes(const std::vector<uint64_t>& nodes) {
  learning_.unheard.emplace(nodes.begin(), nodes.end());
  absl::erase_if(*learning_.unheard, [this](uint64_t node) { return heard_.contains(node); });
  if (learning_.unheard->empty()) unknown_ = {};
}

void BudgetLedger::SetSpec(BudgetSpec spec) {
  const absl::Duration longer_hold = std::max(spec.hold - hold_, absl::ZeroDuration());
  grant_ = std::max(grant_, spec.grant);
  hold_ = std::max(hold_, spec.hold);
  half_life_ = std::max(half_life_, spec.half_life);
  most_capacity_ = std::max(most_capacity_, spec.capacity);
  for (const auto& entry : entries_) entry->belief.Extend(longer_hold * kClockMargin);
  spec_ = std::move(spec);
  retired_ = false;

  std::vector<std::unique_ptr<LedgerTeam>> old = std::move(teams_);
  teams_.clear();
  for (const BudgetTeam& team : spec_.teams) {
    const auto same = std::find_if(old.begin(), old.end(), [&team](const auto& other) {
      return other != nullptr && other->spec.name == team.name;
    });
    teams_.push_back(same == old.end() ? std::make_unique<LedgerTeam>() : std::move(*same));
    teams_.back()->spec = team;
    teams_.back()->retired = false;
    teams_.back()->index = teams_.size() - 1;
  }
  for (auto& team : old) {
    if (team == nullptr) continue;
    const bool held = std::any_of(entries_.begin(), entries_.end(),
                                  [&team](const auto& entry) { return entry->team == team.get(); });
    if (!held) continue;
    team->retired = true;
    teams_.push_back(std::move(team));
  }
}

units::BitRate BudgetLedger::Floors() const {
  const double part =
      static_cast<double>(spec_.capacity.count()) * std::clamp(spec_.floor_part, 0.0, 1.0);
  return std::min(units::BitRate(static_cast<uint64_t>(part) + 1), spec_.capacity);
}

units::BitRate BudgetLedger::Grantable() const { return spec_.capacity - Floors(); }

absl::Time BudgetLedger::HeldUntil(absl::Time from) const {
  return from + (grant_ + hold_) * kClockMargin;
}

units::BitRate BudgetLedger::UnknownAt(absl::Time now) const {
  if (unknown_.is_zero()) return {};
  return DecayedRate(unknown_, HeldUntil(learning_.started), half_life_, now);
}

absl::Duration BudgetLedger::LearningAt(absl::Time now) const {
  if (UnknownAt(now).is_zero()) return absl::ZeroDuration();
  const absl::Time end =
      HeldUntil(learning_.started) + half_life_ * kClockMargin * kLearningHalvings;
  return std::max(end - now, absl::ZeroDuration());
}

units::BitRate BudgetLedger::BelievedOf(const LedgerEntry& entry, absl::Time now) const {
  return entry.belief.RateAt(now, half_life_);
}

units::BitRate BudgetLedger::BelievedAt(absl::Time now) const {
  units::BitRate sum;
  for (const auto& entry : entries_) sum += BelievedOf(*entry, now);
  return sum;
}

LedgerTeam* BudgetLedger::FindTeam(std::string_view name) const {
  const auto found = std::find_if(teams_.begin(), teams_.end(),
                                  [name](const auto& team) { return team->spec.name == name; });
  return found == teams_.end() ? nullptr : found->get();
}

LedgerEntry* BudgetLedger::FindEntry(const LedgerNode& node, std::string_view team) const {
  for (LedgerEntry* entry : node.entries) {
    if (entry->ledger == this && entry->team->spec.name == team) return entry;
  }
  return nullptr;
}

LedgerEntry* BudgetLedger::EntryOf(LedgerNode& node, std::string_view team_name) {
  if (LedgerEntry* known = FindEntry(node, team_name); known != nullptr) return known;
  LedgerTeam* team = FindTeam(team_name);
  if (team == nullptr) return nullptr;
  entries_.push_back(std::make_unique<LedgerEntry>());
  LedgerEntry& entry = *entries_.back();
  entry.node = &node;
  entry.team = team;
  entry.ledger = this;
  entry.slot = entries_.size() - 1;
  node.entries.push_back(&entry);
  return &entry;
}

void BudgetLedger::Remove(LedgerEntry& entry) {
  std::erase(entry.node->entries, &entry);
  const size_t slot = entry.slot;
  std::swap(entries_[slot], entries_.back());
  entries_[slot]->slot = slot;
  entries_.pop_back();
}

void BudgetLedger::OnNodeGone(LedgerNode& node) {
  const std::vector<LedgerEntry*> entries = node.entries;
  for (LedgerEntry* entry : entries) {
    if (entry->ledger == this) Remove(*entry);
  }
  Learn(node, {}, absl::InfinitePast());
}

void BudgetLedger::Learn(const LedgerNode& node, units::BitRate held, absl::Time now) {
  if (unknown_.is_zero() || !heard_.insert(node.number).second) return;
  // What it holds now was so many times as much at the start, if it has decayed meanwhile.
  const int halvings = HalvingsAt(HeldUntil(learning_.started), half_life_, now);
  const bool rest = held < UnknownAt(now);
  if (!held.is_zero()) {
    unknown_ = rest ? unknown_ - (uint64_t{1} << static_cast<unsigned>(halvings)) * held
                    : units::BitRate();
  }
  if (!learning_.unheard) return;
  learning_.unheard->erase(node.number);
  if (learning_.unheard->empty()) unknown_ = {};
}

bool BudgetLedger::OnApplied(LedgerEntry& entry, uint64_t message, absl::Time now) {
  const units::BitRate before = BelievedOf(entry, now);
  entry.belief.OnApplied(message);
  return waited_for_ && BelievedOf(entry, now) < before;
}

void BudgetLedger::OnSent(LedgerEntry& entry) {
  entry.belief.Add(entry.node->sent, entry.grant, entry.grant_connections,
                   HeldUntil(entry.node->granted_from));
  entry.sent_rate = entry.grant;
  entry.sent_connections = entry.grant_connections;
}

void BudgetLedger::TakeHeld(LedgerEntry& entry, units::BitRate held, uint32_t connections,
                            absl::Time now) {
  if (held <= BelievedOf(entry, now)) return;
  entry.belief.Add(entry.node->applied, held, connections, HeldUntil(now));
  entry.sent_rate = std::max(entry.sent_rate, held);
}

bool BudgetLedger::TakeUse(LedgerEntry& entry, const node_api::BudgetUse& use) {
  const bool was_held_back = entry.held_back;
  const units::BitRate demanded = entry.demand;
  entry.reported = true;
  // The usage may be above the capacity in Shadow, and is to be seen.
  entry.usage = use.usage;
  entry.demand = std::min(use.demand, most_capacity_);
  entry.throttled = use.throttled;
  entry.connections = use.connections;
  entry.refused_connections = use.refused_connections;
  entry.held_back = !use.throttled.is_zero() || use.demand / kHeldBackDemand > use.usage;
  // What it has too much others may be waiting for.
  const bool leaves = waited_for_ && (kMuchLess - 1) * (entry.sent_rate / kMuchLess) > entry.demand;
  const bool grows = !was_held_back || entry.demand / kMuchMore > demanded;
  return (entry.held_back && grows) || leaves;
}

bool BudgetLedger::OnReport(LedgerNode& node, const std::vector<node_api::BudgetUse>& uses,
                            absl::Time now) {
  for (LedgerEntry* entry : node.entries) {
    if (entry->ledger == this) entry->reported = false;
  }
  units::BitRate held;
  units::BitRate stray;
  bool soon = false;
  for (const node_api::BudgetUse& use : uses) {
    if (use.budget != spec_.name) continue;
    const units::BitRate of_team = std::min(use.held, most_capacity_);
    held += of_team;
    LedgerEntry* entry = EntryOf(node, use.team);
    if (entry == nullptr) {
      stray += of_team;
      continue;
    }
    if (TakeUse(*entry, use)) soon = true;
    TakeHeld(*entry, of_team, use.held_connections, now);
  }
  // A stray part is of teams that the node knows by another policy than ours. What it holds counts;
  // what they want it will tell by the right name.
  if (!stray.is_zero()) {
    if (LedgerEntry* others = EntryOf(node, kOtherTeams); others != nullptr) {
      TakeHeld(*others, held, 0, now);
    }
  }
  for (LedgerEntry* entry : node.entries) {
    if (entry->ledger != this || entry->reported) continue;
    entry->held_back = false;
    entry->usage = entry->demand = entry->throttled = {};
    entry->connections = entry->refused_connections = 0;
  }
  Learn(node, held, now);
  return soon;
}

}  // namespace spoke::ipam
