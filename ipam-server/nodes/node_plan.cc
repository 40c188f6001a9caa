#include "ipam-server/nodes/node_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kFirstRetry = absl::Seconds(1);
constexpr absl::Duration kLongestRetry = absl::Minutes(1);
constexpr int kMostDoublings = 6;

bool IsOurs(const kubernetes::Taint& taint) {
  return taint.key == kNoAddressesTaint || taint.key == kMaintenanceTaint ||
         (taint.key == kNotReadyTaint && taint.value == kUnfit);
}

// Has the node bear `due` in place of `present`, each of the same key and nullptr or nullopt for
// none.
void Replace(const kubernetes::Taint* present, const std::optional<kubernetes::Taint>& due,
             NodeWrite& write) {
  if (present != nullptr && due == *present) return;
  if (present != nullptr) write.remove.push_back(present->key);
  if (due) write.add.push_back(*due);
}

// Returns the facts with what the node's condition says of lost packets; nullopt: it says nothing.
// A server that has just become the leader, or cannot judge, takes nothing back.
std::optional<FitnessFacts> KeepPacketsLost(const kubernetes::Node& node,
                                            const FitnessFacts& facts) {
  const kubernetes::Condition* present = node.FindCondition(kReadyCondition);
  if (present == nullptr || present->status != "False" || present->reason != kPacketsLost) {
    return std::nullopt;
  }
  FitnessFacts kept = facts;
  kept.loses = present->message.substr(0, present->message.find_last_not_of('.') + 1);
  return kept;
}

// The most nodes that may get a taint in a minute, and have one at once, of so many.
uint64_t MostInAMinute(const WriteLimits& limits, size_t nodes) {
  const double share = limits.taints_share_a_minute * static_cast<double>(nodes);
  return std::max(limits.taints_floor, static_cast<uint64_t>(share));
}
uint64_t MostAtOnce(const WriteLimits& limits, size_t nodes) {
  return std::max<uint64_t>(
      1, static_cast<uint64_t>(limits.taints_share * static_cast<double>(nodes)));
}

uint64_t Left(uint64_t most, uint64_t used) { return most - std::min(most, used); }

// How many nodes of each fault domain may get a taint.
class DomainLimits {
 public:
  DomainLimits(const NodesSeen& seen, double share) {
    std::map<std::string_view, Count> counts;
    for (const auto& [name, node] : seen.nodes) {
      const auto facts = seen.facts.find(name);
      if (facts == seen.facts.end() || facts->second.domain.empty()) continue;
      Count& count = counts[facts->second.domain];
      ++count.nodes;
      if (std::any_of(node.taints.begin(), node.taints.end(), IsOurs)) ++count.tainted;
    }
    for (const auto& [domain, count] : counts) {
      const auto most = static_cast<uint64_t>(share * static_cast<double>(count.nodes));
      left_[domain] = Left(std::max<uint64_t>(1, most), count.tainted);
    }
  }

  // Takes one; false: there is none left. A node whose domain nobody knows has no such limit.
  bool Take(std::string_view domain) {
    const auto left = left_.find(domain);
    if (left == left_.end()) return true;
    if (left->second == 0) return false;
    --left->second;
    return true;
  }

 private:
  struct Count {
    uint64_t nodes = 0;
    uint64_t tainted = 0;
  };
  std::map<std::string_view, uint64_t> left_;  // By domain, whose names the facts own.
};

}  // namespace

bool NodePlanner::Candidate::counts() const {
  return !write.add.empty() &&
         (!is_tainted || std::any_of(write.add.begin(), write.add.end(), [](const auto& taint) {
           return taint.effect == NameOf(TaintEffect::kNoExecute);
         }));
}

NodePlanner::NodePlanner(const HoldTimes& times, const WriteLimits& limits)
    : times_(times),
      limits_(limits),
      joins_(limits.joins_per_second, limits.joins_per_second),
      others_(limits.writes_per_second, std::max(2.0, limits.writes_per_second / 4)) {}

std::optional<NodePlanner::Candidate> NodePlanner::Want(const kubernetes::Node& node,
                                                        const FitnessFacts* facts, NodePlan& plan,
                                                        absl::Time now) {
  const kubernetes::Taint* taint = node.FindTaint(kNotReadyTaint);
  const bool joining = taint != nullptr && !IsOurs(*taint);
  const bool ours = std::any_of(node.taints.begin(), node.taints.end(), IsOurs);
  if (joining) ++plan.joining;
  if (ours) ++plan.tainted;
  if (facts == nullptr && taint == nullptr && !ours) return std::nullopt;
  std::optional<FitnessFacts> as_said;
  if (facts != nullptr && facts->reach_unknown && facts->loses.empty()) {
    as_said = KeepPacketsLost(node, *facts);
    if (as_said) facts = &*as_said;
  }
  Memory& memory = memory_[node.name];
  const HeldFitness held = memory.hold.Observe(Judge(facts), joining, times_, now);
  if (held.ready == false) ++plan.unfit;
  if (memory.writing > 0 || now < memory.not_before) return std::nullopt;

  Candidate candidate{.write = {.node = node.name},
                      .since = held.since,
                      .joins = joining,
                      .is_tainted = ours,
                      .domain = facts == nullptr ? std::string() : facts->domain};
  WantTaints(node, facts != nullptr, held, candidate.write, now);
  if (held.ready) WantReady(node, facts, held, memory, candidate, now);
  if (facts != nullptr) WantMaintenance(node, *facts, memory, candidate.write, now);
  if (candidate.write.requests() == 0) return std::nullopt;
  return candidate;
}

// The change of taints that what is held calls for. `known`: an agent has spoken for the node; one
// that none ever spoke for may be none of ours.
void NodePlanner::WantTaints(const kubernetes::Node& node, bool known, const HeldFitness& held,
                             NodeWrite& write, absl::Time now) const {
  const kubernetes::Taint* const not_ready = node.FindTaint(kNotReadyTaint);
  if (not_ready != nullptr && !IsOurs(*not_ready)) {
    // It joins whatever its checks find besides; if that lasts, it gets a taint within the limits.
    const bool joins = !held.latest.ready && held.latest.may_join;
    if (held.ready == true || joins) write.remove.emplace_back(kNotReadyTaint);
  } else if (held.ready == true) {
    Replace(not_ready, std::nullopt, write);
  } else if (held.ready == false && known) {
    Replace(not_ready,
            DueTaint({.key = kNotReadyTaint,
                      .value = kUnfit,
                      .since = now - held.since - times_.unfit,
                      .may_evict = held.latest.hurts_pods},
                     remedies_.unfit, not_ready),
            write);
  }
  const kubernetes::Taint* const no_addresses = node.FindTaint(kNoAddressesTaint);
  if (held.exhausted == false) Replace(no_addresses, std::nullopt, write);
  if (held.exhausted == true && (no_addresses != nullptr || held.ready == true)) {
    Replace(no_addresses,
            DueTaint({.key = kNoAddressesTaint, .value = {}, .may_evict = false},
                     remedies_.no_addresses, no_addresses),
            write);
  }
}

// NOLINTNEXTLINE(readability-function-size): what is known of one node.
void NodePlanner::WantReady(const kubernetes::Node& node, const FitnessFacts* facts,
                            const HeldFitness& held, Memory& memory, Candidate& candidate,
                            absl::Time now) {
  NodeWrite& write = candidate.write;
  const kubernetes::Condition* present = node.FindCondition(kReadyCondition);
  kubernetes::Condition condition{.type = std::string(kReadyCondition),
                                  .status = *held.ready ? "True" : "False",
                                  .reason = std::string(held.latest.reason),
                                  .message = MessageOf(facts)};
  const bool status_changed = present == nullptr || present->status != condition.status;
  // Reasons come and go while the node stays what it is: one is written now and then.
  const bool is_steady =
      held.exhausted.has_value() &&
      (!write.add.empty() || !write.remove.empty() || now - memory.condition_at >= times_.unfit);
  const bool is_news = present != nullptr && present->reason != condition.reason && is_steady;
  // The first condition of a node belongs to its joining, but behind the taints of all.
  if (present == nullptr) candidate.joins = true;
  const bool lifts = node.FindTaint(kNotReadyTaint) != nullptr &&
                     !IsOurs(*node.FindTaint(kNotReadyTaint)) && !write.remove.empty();
  if (lifts || !(status_changed || is_news)) return;
  write.conditions.push_back({std::move(condition), status_changed});
}

// A source that announces and takes back by turns is written about each time that it announces, and
// no more often than each HoldTimes::fit for the rest.
void NodePlanner::WantMaintenance(const kubernetes::Node& node, const FitnessFacts& facts,
                                  Memory& memory, NodeWrite& write, absl::Time now) {
  const bool interrupts = facts.maintenance && facts.maintenance->interrupts;
  if (facts.maintenance && !interrupts) memory.interrupted_since = absl::InfiniteFuture();
  if (interrupts) memory.interrupted_since = std::min(memory.interrupted_since, now);
  const kubernetes::Condition* present = node.FindCondition(kMaintenanceCondition);
  const DesiredMaintenance desired =
      DesiredOf(facts.maintenance, node, remedies_.maintenance, now - memory.interrupted_since);
  if (desired.unknown) return;
  const kubernetes::Taint* taint = node.FindTaint(kMaintenanceTaint);
  const bool calm = now - memory.maintenance_at >= times_.fit;
  if (desired.taint || calm) Replace(taint, desired.taint, write);
  if (!desired.condition || (present != nullptr && *present == *desired.condition)) return;
  const bool announces = desired.condition->status == "True";
  const bool is_worse = announces && (present == nullptr || present->status != "True" ||
                                      present->reason != desired.condition->reason);
  if (!is_worse && !calm) return;
  write.conditions.push_back(
      {*desired.condition, present == nullptr || present->status != desired.condition->status});
  if (is_worse) write.event = desired.condition;
}

NodePlan NodePlanner::Plan(const NodesSeen& seen, absl::Time now) {
  NodePlan plan;
  remedies_ = seen.remedies;
  std::erase_if(memory_, [&](const auto& entry) { return !seen.nodes.contains(entry.first); });
  std::vector<Candidate> candidates;
  for (const auto& [name, node] : seen.nodes) {
    const auto facts = seen.facts.find(name);
    const FitnessFacts* known = facts == seen.facts.end() ? nullptr : &facts->second;
    if (auto candidate = Want(node, known, plan, now)) candidates.push_back(*std::move(candidate));
  }
  if (!seen.frozen.empty()) {
    plan.waiting = candidates.size();
    if (!candidates.empty()) {
      plan.problem = fmt::format("{} nodes keep their taints and conditions as they are: {}",
                                 candidates.size(), seen.frozen);
    }
    return plan;
  }
  HoldBack(candidates, seen, plan, now);
  Emit(candidates, seen.room, plan, now);
  return plan;
}

// Takes the taints that would be too many out of the candidates; the longest unfit come first.
void NodePlanner::HoldBack(std::vector<Candidate>& candidates, const NodesSeen& seen,
                           NodePlan& plan, absl::Time now) {
  while (!tainted_.empty() && now - tainted_.front() >= absl::Minutes(1)) tainted_.pop_front();
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.since, a.write.node) < std::pair(b.since, b.write.node);
  });
  if (std::none_of(candidates.begin(), candidates.end(),
                   [](const Candidate& candidate) { return candidate.counts(); })) {
    return;
  }
  const size_t nodes = seen.nodes.size();
  const uint64_t at_once = MostAtOnce(limits_, nodes);
  uint64_t left_in_minute = Left(MostInAMinute(limits_, nodes), tainted_.size());
  uint64_t left_at_once = Left(at_once, plan.tainted);
  DomainLimits domains(seen, limits_.taints_share_of_domain);
  for (Candidate& candidate : candidates) {
    if (!candidate.counts()) continue;
    const bool is_new = !candidate.is_tainted;
    if (left_in_minute > 0 && (!is_new || (left_at_once > 0 && domains.Take(candidate.domain)))) {
      --left_in_minute;
      if (is_new) --left_at_once;
      continue;
    }
    ++plan.held_back;
    // The taint whose place another would take stays.
    std::erase_if(candidate.write.remove, [&](const std::string& key) {
      return std::any_of(candidate.write.add.begin(), candidate.write.add.end(),
                         [&](const kubernetes::Taint& taint) { return taint.key == key; });
    });
    candidate.write.add.clear();
  }
  std::erase_if(candidates,
                [](const Candidate& candidate) { return candidate.write.requests() == 0; });
  if (plan.held_back == 0) return;
  plan.problem = fmt::format(
      "{} nodes are not fit for pods and get no taint: {} of {} nodes have one, and at most {} may "
      "at once, {} in a minute and {:.0f} % of a fault domain",
      plan.held_back, plan.tainted, nodes, at_once, MostInAMinute(limits_, nodes),
      100 * limits_.taints_share_of_domain);
}

// What lifts taints goes first, then what sets them, then conditions alone.
void NodePlanner::Emit(std::vector<Candidate>& candidates, size_t room, NodePlan& plan,
                       absl::Time now) {
  const auto rank = [](const Candidate& candidate) {
    if (!candidate.write.remove.empty()) return 0;
    return candidate.write.add.empty() ? 2 : 1;
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  size_t joins = joins_.Available(now);
  size_t others = others_.Available(now);
  for (Candidate& candidate : candidates) {
    const size_t requests = candidate.write.requests();
    size_t& available = candidate.joins ? joins : others;
    if (requests > room || requests > available) {
      ++plan.waiting;
      continue;
    }
    room -= requests;
    available -= requests;
    (candidate.joins ? joins_ : others_).Take(requests);
    Memory& memory = memory_[candidate.write.node];
    memory.writing = requests;
    for (const auto& [condition, status_changed] : candidate.write.conditions) {
      (condition.type == kReadyCondition ? memory.condition_at : memory.maintenance_at) = now;
    }
    if (candidate.counts()) tainted_.push_back(now);
    plan.writes.push_back(std::move(candidate.write));
  }
}

void NodePlanner::OnWritten(const std::string& node, const absl::Status& status, bool throttled,
                            absl::Time now) {
  if (throttled) {
    joins_.OnThrottled(now);
    others_.OnThrottled(now);
  }
  const auto it = memory_.find(node);
  if (it == memory_.end()) return;
  Memory& memory = it->second;
  if (memory.writing > 0) --memory.writing;
  if (status.ok()) {
    memory.failures = 0;
    return;
  }
  if (absl::IsAborted(status) || absl::IsNotFound(status)) return;
  const int doublings = std::min(memory.failures++, kMostDoublings);
  memory.not_before = now + std::min(kLongestRetry, kFirstRetry * std::exp2(doublings));
}

}  // namespace spoke::ipam
