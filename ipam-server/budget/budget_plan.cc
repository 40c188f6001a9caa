// What each node is to have next: BudgetLedger::Plan() and its steps.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "ipam-server/budget/budget_book.h"
#include "ipam-server/budget/budget_ledger.h"
#include "lib/base/max_min.h"

namespace spoke::ipam {
namespace {

// A node that has missed so many reports may not hear us either.
constexpr int kMissedReports = 3;
constexpr absl::Duration kReportGrace = absl::Seconds(2);
// Nodes ask for a tenth more than they use. When not all get what they ask for, only so much of it
// is left: the rest would be taken from others, and lie idle. What is left lies idle too, at the
// cost of the few teams that want more than their share; with less of it nodes would count as held
// back, who call a grant full from 0.997 of it on.
constexpr double kTightened = 1.005 / 1.1;
// The part of what nobody has asked for that is granted to nodes that are held back, since their
// demand is a guess. The rest is at hand for those that will be held back next.
constexpr double kSlack = 0.97;
// The part of a grant below which changes are not worth a message.
constexpr double kWorthwhile = 0.05;
// The part of a grant below which changes are not worth a message to a node that is held back.
constexpr double kWorthwhileHeldBack = 0.02;
// The part that is not worth taking back, even if others wait.
constexpr double kNegligible = 0.005;
// The part of a node's floor below which changes make no difference to it.
constexpr uint64_t kPartsOfFloor = 8;

double ToDouble(units::BitRate rate) { return static_cast<double>(rate.count()); }

bool Differs(uint64_t a, uint64_t b, double part) {
  const double difference = a > b ? static_cast<double>(a - b) : static_cast<double>(b - a);
  return difference > part * static_cast<double>(b);
}
bool Differs(units::BitRate a, units::BitRate b, double part) {
  return Differs(a.count(), b.count(), part);
}

// The part of what is wanted that there is.
double PartOf(uint64_t free, uint64_t wanted) {
  return wanted <= free ? 1.0 : static_cast<double>(free) / static_cast<double>(wanted);
}

// Returns how many connections are granted; as many as are believed cost nothing.
uint64_t GrantOf(uint64_t target, uint64_t believed, double part) {
  if (target <= believed) return target;
  return believed + static_cast<uint64_t>(static_cast<double>(target - believed) * part);
}

template <typename T>
T Above(T a, T b) {
  return a > b ? a - b : T();
}

// The part of their targets up to which `free` lifts those that have less; at most 1. Only these
// stay in `takers`.
double EqualPart(double free, std::vector<LedgerEntry*>& takers) {
  while (!takers.empty()) {
    double all = free;
    double targets = 0;
    for (const LedgerEntry* entry : takers) {
      all += ToDouble(entry->believed);
      targets += ToDouble(entry->target);
    }
    const double part = std::min(all / targets, 1.0);
    // Who has more than that already is not lifted, and what it has is not for the others.
    const size_t over = std::erase_if(takers, [part](const LedgerEntry* entry) {
      return ToDouble(entry->believed) > part * ToDouble(entry->target);
    });
    if (over == 0) return part;
  }
  return 0;
}

}  // namespace

void BudgetLedger::Plan(absl::Time now) {
  const Sums sums = Look(now);
  const units::BitRate unknown = UnknownAt(now);
  SetTargets(units::FractionalBitRate(ToDouble(Above(Grantable(), unknown + sums.stuck))));
  const double all = std::max(ToDouble(Grantable()), 1.0);
  SetConnectionTargets(sums, std::min(ToDouble(unknown) / all, 1.0));
  SetGrants(sums, unknown);
  ChooseDue(Above(Grantable(), unknown + sums.believed), now);
}

// A node that has just begun another stream wants what it wanted before: its share is not for
// others until it has reported again.
bool BudgetLedger::IsHeard(const LedgerNode& node, absl::Time now) const {
  return now - node.reported_at <= spec_.refresh * kMissedReports + kReportGrace;
}

bool BudgetLedger::CanBeTold(const LedgerNode& node, absl::Time now) {
  if (node.reported == 0) return false;  // This stream has nothing that could be answered.
  // One message for each report, or a tick, is enough.
  return node.reported > node.answered || now - node.sent_at >= BudgetBook::kTick;
}

BudgetLedger::Sums BudgetLedger::Look(absl::Time now) {
  Sums sums;
  for (size_t i = 0; i < entries_.size();) {
    LedgerEntry& entry = *entries_[i];
    entry.live = IsHeard(*entry.node, now);
    entry.can_be_told = entry.live && CanBeTold(*entry.node, now);
    entry.believed = BelievedOf(entry, now);
    if (entry.believed.is_zero() && !(entry.live && entry.reported)) {
      Remove(entry);
      continue;
    }
    entry.believed_connections =
        spec_.connections == 0 ? 0 : entry.belief.ConnectionsAt(now, half_life_);
    sums.believed += entry.believed;
    sums.believed_connections += entry.believed_connections;
    if (!entry.live) {
      sums.stuck += entry.believed;
      sums.stuck_connections += entry.believed_connections;
    }
    ++i;
  }
  return sums;
}

void BudgetLedger::SetTargets(units::FractionalBitRate pool) {
  const size_t count = spec_.teams.size();
  std::vector<TeamDemands> demands(count);
  const auto wanted = [](const LedgerEntry& entry) {
    return static_cast<float>(entry.demand.count()) *
           static_cast<float>(entry.held_back ? 1.0 : kTightened);
  };
  const auto counts = [this](const LedgerEntry& entry) {
    return entry.live && !entry.team->retired && !retired_;
  };
  for (const auto& entry : entries_) {
    if (counts(*entry)) demands[entry->team->index].by_node.push_back(wanted(*entry));
  }
  const std::vector<TeamAllocation> allocations = Allocate(spec_, pool, demands);
  const std::vector<units::FractionalBitRate> bounds = TeamBounds(spec_, pool);
  std::vector<double> room(count);
  for (size_t i = 0; i < count; ++i) {
    teams_[i]->fair = allocations[i].share;
    room[i] = std::max((bounds[i] - allocations[i].share).count(), 0.0);
    pool -= allocations[i].share;
  }
  for (const auto& entry : entries_) {
    entry->target = {};
    if (!counts(*entry)) continue;
    const double level = allocations[entry->team->index].level.count();
    entry->target =
        units::BitRate(static_cast<uint64_t>(std::min(static_cast<double>(wanted(*entry)), level)));
  }
  if (pool <= units::FractionalBitRate() || retired_) return;
  const double rest = RestoreHeadroom(pool.count(), room);
  if (rest > 0) LendRest(rest * kSlack, room);
}

// Gives those that are not held back all that they have asked for, as far as there is any left.
// `room`: what each team can still get. Returns what is left then.
double BudgetLedger::RestoreHeadroom(double rest, std::vector<double>& room) {
  const auto missing = [](const LedgerEntry& entry) {
    return entry.live && !entry.team->retired && !entry.held_back
               ? ToDouble(Above(entry.demand, entry.target))
               : 0.0;
  };
  std::vector<double> wanted(room.size());
  for (const auto& entry : entries_) {
    if (!entry->team->retired) wanted[entry->team->index] += missing(*entry);
  }
  double total = 0;
  std::vector<double> parts(room.size());
  for (size_t i = 0; i < room.size(); ++i) {
    if (wanted[i] > 0) parts[i] = std::min(room[i] / wanted[i], 1.0);
    total += wanted[i] * parts[i];
  }
  const double scale = total > rest ? rest / total : 1.0;
  for (const auto& entry : entries_) {
    if (entry->team->retired) continue;
    entry->target +=
        units::BitRate(static_cast<uint64_t>(missing(*entry) * parts[entry->team->index] * scale));
  }
  for (size_t i = 0; i < room.size(); ++i) room[i] -= wanted[i] * parts[i] * scale;
  return rest - total * scale;
}

void BudgetLedger::LendRest(double rest, const std::vector<double>& room) {
  const auto takes = [](const LedgerEntry& entry) {
    return entry.live && !entry.team->retired && entry.held_back;
  };
  std::vector<size_t> takers(room.size());
  for (const auto& entry : entries_) {
    if (takes(*entry)) ++takers[entry->team->index];
  }
  std::vector<base::Claimant> claimants;
  for (size_t i = 0; i < room.size(); ++i) {
    claimants.push_back({.demand = takers[i] > 0 ? std::clamp(room[i], 0.0, rest) : 0.0,
                         .weight = spec_.teams[i].weight});
  }
  const std::vector<double> shares = base::WeightedMaxMin(rest, claimants);
  for (const auto& entry : entries_) {
    if (!takes(*entry)) continue;
    const size_t team = entry->team->index;
    entry->target +=
        units::BitRate(static_cast<uint64_t>(shares[team] / static_cast<double>(takers[team])));
  }
}

// Sets targets in proportion to the rates, but at least 1 for each grant, since 0 means no limit.
void BudgetLedger::SetConnectionTargets(const Sums& sums, double unknown_part) {
  double rates = 0;
  uint64_t grants = 0;
  for (const auto& entry : entries_) {
    entry->target_connections = 0;
    if (!entry->live || entry->target.is_zero()) continue;
    rates += ToDouble(entry->target);
    ++grants;
  }
  if (spec_.connections == 0 || grants == 0) return;
  const auto known = static_cast<uint64_t>(spec_.connections * (1 - unknown_part));
  const auto rest = static_cast<double>(Above(known, sums.stuck_connections + grants));
  for (const auto& entry : entries_) {
    if (!entry->live || entry->target.is_zero()) continue;
    entry->target_connections = 1 + static_cast<uint32_t>(rest * ToDouble(entry->target) / rates);
  }
}

void BudgetLedger::SetGrants(const Sums& sums, units::BitRate unknown) {
  uint64_t wanted_connections = 0;
  for (const auto& entry : entries_) {
    if (!entry->can_be_told) continue;
    wanted_connections += Above(entry->target_connections, entry->believed_connections);
  }
  const double part_of_connections =
      PartOf(Above<uint64_t>(spec_.connections, sums.believed_connections), wanted_connections);
  for (const auto& entry : entries_) {
    if (!entry->live) {
      // It may be told of another budget, and what it is told is all.
      entry->grant = std::min(entry->sent_rate, entry->believed);
      entry->grant_connections = entry->sent_connections;
      continue;
    }
    // A grant up to what it is believed to have costs nothing.
    entry->grant = std::min(entry->target, entry->believed);
    entry->grant_connections =
        static_cast<uint32_t>(GrantOf(entry->target_connections, entry->believed_connections,
                                      entry->can_be_told ? part_of_connections : 0));
  }
  GrantFree(Above(Grantable(), unknown + sums.believed));
  for (const auto& entry : entries_) {
    if (!entry->live) continue;
    if (spec_.connections == 0 || entry->grant.is_zero()) entry->grant_connections = 0;
    if (spec_.connections > 0 && !entry->grant.is_zero() && entry->grant_connections == 0) {
      entry->grant_connections = 1;
    }
  }
}

// Grants to nodes that can be told now, since the others would only let it lie. Who has the least
// part of what it is to have comes first, until all have the same part: who asks for several times
// a little would else wait for those who ask for several times as much as they have already.
void BudgetLedger::GrantFree(units::BitRate free) {
  units::BitRate wanted;
  std::vector<LedgerEntry*> takers;
  for (const auto& entry : entries_) {
    if (!entry->live || entry->target <= entry->believed) continue;
    wanted += entry->target - entry->believed;
    if (entry->can_be_told) takers.push_back(entry.get());
  }
  waited_for_ = wanted > free;
  const double part = EqualPart(ToDouble(free), takers);
  for (LedgerEntry* entry : takers) {
    const units::BitRate grant(static_cast<uint64_t>(part * ToDouble(entry->target)));
    // The grant is never more than there is, however sums are rounded.
    const units::BitRate more =
        std::min(Above(std::min(grant, entry->target), entry->believed), free);
    entry->grant = entry->believed + more;
    free -= more;
  }
}

void BudgetLedger::ChooseDue(units::BitRate free, absl::Time now) {
  const units::BitRate least = FloorOfNode(spec_) / kPartsOfFloor;
  units::BitRate wanted;
  units::BitRate coming = free;
  for (const auto& entry : entries_) {
    if (!entry->live) continue;
    wanted += Above(entry->target, entry->believed);
    const double worthwhile = entry->held_back ? kWorthwhileHeldBack : kWorthwhile;
    const bool less = entry->target < entry->sent_rate &&
                      Differs(entry->target, entry->sent_rate, kWorthwhile) &&
                      entry->sent_rate - entry->target > least;
    const bool more = entry->grant > entry->sent_rate &&
                      Differs(entry->grant, entry->sent_rate, worthwhile) &&
                      entry->grant - entry->sent_rate > least;
    const bool more_connections =
        entry->refused_connections > 0 && entry->grant_connections > entry->sent_connections &&
        Differs(entry->grant_connections, entry->sent_connections, kWorthwhile);
    if (less || more || more_connections) SetDue(*entry->node, now);
    coming += Above(entry->believed, less ? entry->target : entry->sent_rate);
  }
  if (wanted > coming) TakeBack(wanted - coming, now);
}

// Takes small changes back, the largest first, since others wait for them.
void BudgetLedger::TakeBack(units::BitRate needed, absl::Time now) {
  std::vector<std::pair<units::BitRate, LedgerNode*>> found;
  for (const auto& entry : entries_) {
    if (!entry->live || entry->target >= entry->sent_rate || entry->node->due) continue;
    if (!Differs(entry->target, entry->sent_rate, kNegligible)) continue;
    found.emplace_back(entry->sent_rate - entry->target, entry->node);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second->number < b.second->number;
  });
  for (const auto& [rate, node] : found) {
    SetDue(*node, now);
    if (rate >= needed) return;
    needed -= rate;
  }
}

void BudgetLedger::SetDue(LedgerNode& node, absl::Time now) {
  if (CanBeTold(node, now)) node.due = true;
}

}  // namespace spoke::ipam
