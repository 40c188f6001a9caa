#include "ipam-server/budget/budget_book.h"

#include <algorithm>

#include "ipam-server/budget/budget_ledger.h"

namespace spoke::ipam {
namespace {

// Grants are renewed when between these parts of them are over, by node.
constexpr double kRenewEarliest = 0.35;
constexpr double kRenewLatest = 0.4;
constexpr uint64_t kRenewSlots = 64;

double RenewPart(uint64_t node) {
  return kRenewEarliest + (kRenewLatest - kRenewEarliest) *
                              static_cast<double>(node % kRenewSlots) / (kRenewSlots - 1);
}

TeamStanding StandingOf(const LedgerTeam& team) {
  return {.team = team.spec.name,
          .weight = team.spec.weight,
          .min = team.spec.min,
          .max = team.spec.max,
          .fair = units::BitRate(static_cast<uint64_t>(team.fair.count()))};
}

}  // namespace

BudgetBook::BudgetBook(absl::Time started) : started_(started) {}
BudgetBook::~BudgetBook() = default;

void BudgetBook::ExpectNodes(std::vector<NodeNumber> nodes) {
  for (const auto& ledger : ledgers_) ledger->ExpectNodes(nodes);
  expected_ = std::move(nodes);
}

BudgetLedger* BudgetBook::Find(std::string_view budget) const {
  const auto found = std::find_if(ledgers_.begin(), ledgers_.end(), [budget](const auto& ledger) {
    return ledger->spec().name == budget;
  });
  return found == ledgers_.end() ? nullptr : found->get();
}

LedgerNode& BudgetBook::NodeOf(NodeNumber number) {
  std::unique_ptr<LedgerNode>& node = nodes_[number];
  if (node == nullptr) {
    node = std::make_unique<LedgerNode>();
    node->number = number;
  }
  return *node;
}

void BudgetBook::SetBudgets(std::vector<BudgetSpec> specs) {
  for (const auto& ledger : ledgers_) {
    const bool stays = std::any_of(specs.begin(), specs.end(), [&ledger](const BudgetSpec& spec) {
      return spec.name == ledger->spec().name;
    });
    if (!stays) ledger->Retire();
  }
  for (BudgetSpec& spec : specs) {
    if (BudgetLedger* known = Find(spec.name); known != nullptr) {
      known->SetSpec(std::move(spec));
      continue;
    }
    BudgetLedger::Learning learning{.started = started_, .unheard = std::nullopt};
    if (expected_) learning.unheard.emplace(expected_->begin(), expected_->end());
    ledgers_.push_back(std::make_unique<BudgetLedger>(std::move(spec), std::move(learning)));
  }
}

void BudgetBook::OnStream(NodeNumber number) {
  LedgerNode& node = NodeOf(number);
  node.stream_base = node.sent;
  node.applied = node.sent;
  node.reported = 0;
  node.answered = 0;
}

bool BudgetBook::OnReport(NodeNumber number, const node_api::BudgetReport& report, absl::Time now) {
  LedgerNode& node = NodeOf(number);
  if (report.sequence <= node.reported) return false;
  bool soon = false;
  node.reported = report.sequence;
  node.reported_at = now;
  // A number that we have not sent yet is nonsense.
  const uint64_t applied = std::max(node.applied, node.stream_base + report.applied);
  if (report.applied > 0 && report.applied <= node.sent - node.stream_base) {
    node.applied = applied;
    for (LedgerEntry* entry : node.entries) {
      if (entry->ledger->OnApplied(*entry, applied, now)) soon = true;
    }
  }
  for (const auto& ledger : ledgers_) {
    if (ledger->OnReport(node, report.uses, now)) soon = true;
  }
  return soon;
}

void BudgetBook::OnNodeGone(NodeNumber number) {
  LedgerNode gone{.number = number};
  const auto found = nodes_.find(number);
  LedgerNode& node = found == nodes_.end() ? gone : *found->second;
  for (const auto& ledger : ledgers_) ledger->OnNodeGone(node);
  if (found != nodes_.end()) nodes_.erase(found);
  if (expected_) std::erase(*expected_, number);
}

bool BudgetBook::MustHear(const LedgerNode& node, absl::Time now) const {
  if (node.reported <= node.answered || node.entries.empty()) return false;
  if (node.answered == 0) return true;
  absl::Duration grant = absl::InfiniteDuration();
  for (const LedgerEntry* entry : node.entries) {
    if (!entry->sent_rate.is_zero()) grant = std::min(grant, entry->ledger->spec().grant);
  }
  return now - node.granted_from >= grant * RenewPart(node.number);
}

node_api::BudgetGrants BudgetBook::Send(LedgerNode& node, absl::Time now) {
  ++node.sent;
  node.sent_at = now;
  node.answered = node.reported;
  node.granted_from = node.reported_at;
  node_api::BudgetGrants grants{.sequence = node.sent - node.stream_base, .answers = node.reported};
  for (LedgerEntry* entry : node.entries) {
    entry->ledger->OnSent(*entry);
    if (entry->grant.is_zero()) continue;
    const BudgetSpec& spec = entry->ledger->spec();
    grants.grants.push_back(
        {spec.name, entry->team->spec.name, entry->grant, entry->grant_connections, spec.grant});
  }
  return grants;
}

std::vector<std::pair<BudgetBook::NodeNumber, node_api::BudgetGrants>> BudgetBook::Decide(
    absl::Time now) {
  for (const auto& [number, node] : nodes_) node->due = false;
  for (const auto& ledger : ledgers_) ledger->Plan(now);
  std::vector<std::pair<NodeNumber, node_api::BudgetGrants>> messages;
  for (const auto& [number, node] : nodes_) {
    if (node->due || MustHear(*node, now)) messages.emplace_back(number, Send(*node, now));
  }
  std::erase_if(ledgers_, [](const auto& ledger) { return ledger->over(); });
  return messages;
}

units::BitRate BudgetBook::Committed(std::string_view budget, absl::Time now) const {
  const BudgetLedger* ledger = Find(budget);
  if (ledger == nullptr) return {};
  return ledger->BelievedAt(now) + ledger->UnknownAt(now) + ledger->Floors();
}

std::vector<BudgetStanding> BudgetBook::Standings(absl::Time now) const {
  std::vector<BudgetStanding> standings;
  for (const auto& ledger : ledgers_) {
    if (ledger->retired()) continue;
    BudgetStanding standing{.spec = ledger->spec(),
                            .unknown = ledger->UnknownAt(now),
                            .floors = ledger->Floors(),
                            .learning = ledger->LearningAt(now)};
    for (const auto& team : ledger->teams()) {
      if (!team->retired) standing.teams.push_back(StandingOf(*team));
    }
    for (const auto& entry : ledger->entries()) {
      const units::BitRate believed = ledger->BelievedOf(*entry, now);
      standing.usage += entry->usage;
      standing.granted += believed;
      if (entry->team->retired) continue;
      TeamStanding& team = standing.teams[entry->team->index];
      team.usage += entry->usage;
      team.demand += entry->demand;
      team.granted += believed;
      team.throttled += entry->throttled;
      team.connections += entry->connections;
      team.refused_connections += entry->refused_connections;
      team.nodes += entry->reported ? 1 : 0;
    }
    standings.push_back(std::move(standing));
  }
  return standings;
}

std::vector<NodeBudgetStanding> BudgetBook::NodesOf(std::string_view budget, std::string_view team,
                                                    absl::Time now) const {
  std::vector<NodeBudgetStanding> nodes;
  const BudgetLedger* ledger = Find(budget);
  if (ledger == nullptr) return nodes;
  for (const auto& entry : ledger->entries()) {
    if (!team.empty() && entry->team->spec.name != team) continue;
    nodes.push_back({.node = entry->node->number,
                     .budget = std::string(budget),
                     .team = entry->team->spec.name,
                     .usage = entry->usage,
                     .demand = entry->demand,
                     .granted = entry->sent_rate,
                     .believed = ledger->BelievedOf(*entry, now),
                     .age = now - entry->node->reported_at});
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return a.node != b.node ? a.node < b.node : a.team < b.team;
  });
  return nodes;
}

}  // namespace spoke::ipam
