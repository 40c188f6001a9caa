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

kubernetes::Taint TaintOf(std::string_view key) {
  return {.key = std::string(key),
          .value = key == kNotReadyTaint ? std::string(kUnfit) : std::string(),
          .effect = "NoSchedule"};
}

// The change of taints that what is held calls for.
void PlanTaints(const kubernetes::Node& node, const HeldFitness& held, bool known,
                NodeWrite& write) {
  const kubernetes::Taint* const taint = node.FindTaint(kNotReadyTaint);
  const bool not_ready = taint != nullptr;
  // It joins whatever its checks find besides; if that lasts, it gets a taint within the limits.
  const bool joins = not_ready && !IsOurs(*taint) && !held.latest.ready && held.latest.may_join;
  if (not_ready && (held.ready == true || joins)) write.remove.emplace_back(kNotReadyTaint);
  // A node that no agent ever spoke for may be none of ours.
  if (!not_ready && held.ready == false && known) write.add.push_back(TaintOf(kNotReadyTaint));
  const bool no_addresses = node.FindTaint(kNoAddressesTaint) != nullptr;
  if (no_addresses && held.exhausted == false) write.remove.emplace_back(kNoAddressesTaint);
  if (!no_addresses && held.exhausted == true && held.ready == true) {
    write.add.push_back(TaintOf(kNoAddressesTaint));
  }
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

}  // namespace

NodePlanner::NodePlanner(const HoldTimes& times, const WriteLimits& limits,
                         const MaintenanceRemedy& remedy)
    : times_(times),
      limits_(limits),
      remedy_(remedy),
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

  Candidate candidate{
      .write = {.node = node.name}, .since = held.since, .joins = joining, .is_tainted = ours};
  PlanTaints(node, held, facts != nullptr, candidate.write);
  if (held.ready) WantReady(node, facts, held, memory, candidate, now);
  if (facts != nullptr) WantMaintenance(node, *facts, memory, candidate.write, now);
  if (candidate.write.requests() == 0) return std::nullopt;
  return candidate;
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
      DesiredOf(facts.maintenance, present, remedy_, memory.interrupted_since, now);
  if (desired.unknown) return;
  const kubernetes::Taint* taint = node.FindTaint(kMaintenanceTaint);
  const bool calm = now - memory.maintenance_at >= times_.fit;
  if (taint != nullptr && desired.taint != *taint && (desired.taint || calm)) {
    write.remove.emplace_back(kMaintenanceTaint);
  }
  if (desired.taint && (taint == nullptr || *taint != *desired.taint)) {
    write.add.push_back(*desired.taint);
  }
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
  HoldBack(candidates, seen.nodes.size(), plan, now);
  Emit(candidates, seen.room, plan, now);
  return plan;
}

// Takes the taints that would be too many out of the candidates; the longest unfit come first.
void NodePlanner::HoldBack(std::vector<Candidate>& candidates, size_t nodes, NodePlan& plan,
                           absl::Time now) {
  while (!tainted_.empty() && now - tainted_.front() >= absl::Minutes(1)) tainted_.pop_front();
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.since, a.write.node) < std::pair(b.since, b.write.node);
  });
  const uint64_t at_once = MostAtOnce(limits_, nodes);
  uint64_t left =
      std::min(Left(MostInAMinute(limits_, nodes), tainted_.size()), Left(at_once, plan.tainted));
  for (Candidate& candidate : candidates) {
    if (candidate.write.add.empty() || candidate.is_tainted) continue;
    if (left > 0) {
      --left;
      continue;
    }
    ++plan.held_back;
    candidate.write.add.clear();
  }
  std::erase_if(candidates,
                [](const Candidate& candidate) { return candidate.write.requests() == 0; });
  if (plan.held_back == 0) return;
  plan.problem = fmt::format(
      "{} nodes are not fit for pods and get no taint: {} of {} nodes have one, and at most {} may "
      "at once and {} in a minute",
      plan.held_back, plan.tainted, nodes, at_once, MostInAMinute(limits_, nodes));
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
    if (!candidate.write.add.empty() && !candidate.is_tainted) tainted_.push_back(now);
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
