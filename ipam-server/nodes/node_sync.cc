#include "ipam-server/nodes/node_sync.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/kubernetes/node_requests.h"

namespace spoke::ipam {
namespace {

// How often it is planned while writes wait for their turn.
constexpr absl::Duration kPlanPeriod = absl::Milliseconds(200);
// How often a text that only says other numbers is told anew.
constexpr absl::Duration kTellPeriod = absl::Seconds(30);

// How long the first list may take before that is a problem.
constexpr absl::Duration kFirstList = absl::Seconds(15);

constexpr std::string_view kApi = "api";
constexpr std::string_view kWrites = "writes";
constexpr std::string_view kFleet = "fleet";
constexpr std::string_view kLimits = "limits";

WriteResult ResultOf(const kubernetes::NodeClient::Written& end) {
  if (end.status.ok()) return WriteResult::kOk;
  if (end.throttled) return WriteResult::kThrottled;
  if (absl::IsAborted(end.status) || absl::IsNotFound(end.status)) return WriteResult::kConflict;
  if (absl::IsFailedPrecondition(end.status)) return WriteResult::kDenied;
  return WriteResult::kFailed;
}

}  // namespace

void NodeSync::RunOnce(absl::Duration wait) {
  begun_ = std::min(begun_, edges_.clock.Now());
  ReadFacts(edges_.clock.Now());
  TakeEnds(wait);
  const absl::Time now = edges_.clock.Now();
  if (now >= next_plan_) PlanAndWrite(now);
  Report(now);
}

void NodeSync::ReadFacts(absl::Time now) {
  if (now < next_facts_) return;
  facts_ = edges_.read_facts();
  // It counts from here: when the loop is slow it must not be asked all the time.
  next_facts_ = edges_.clock.Now() + settings_.period;
  next_plan_ = now;
}

void NodeSync::TakeEnds(absl::Duration wait) {
  const absl::Duration left = std::min(next_facts_, next_plan_) - edges_.clock.Now();
  const auto ends = edges_.client.Step(std::clamp(left, absl::ZeroDuration(), wait));
  const absl::Time now = edges_.clock.Now();
  for (const auto& end : ends) {
    const WriteResult result = ResultOf(end);
    ++writes_[static_cast<size_t>(result)];
    planner_.OnWritten(end.node, end.status, end.throttled, now);
    if (result == WriteResult::kOk) write_trouble_ = absl::OkStatus();
    if (result == WriteResult::kDenied || result == WriteResult::kFailed) {
      write_trouble_ = end.status;
    }
  }
}

void NodeSync::PlanAndWrite(absl::Time now) {
  const kubernetes::NodeMirror& mirror = edges_.client.mirror();
  next_plan_ = absl::InfiniteFuture();
  // What is old, or half known, is no ground for a decision.
  if (!facts_.ok() || !mirror.complete() || !mirror.Trouble(now).ok()) return;
  plan_ = planner_.Plan({.nodes = mirror.nodes(),
                         .facts = facts_->nodes,
                         .frozen = facts_->frozen,
                         .room = edges_.client.room(),
                         .remedies = facts_->remedies},
                        now);
  for (const NodeWrite& write : std::exchange(plan_.writes, {})) Write(write, now);
  if (plan_.waiting > 0 && facts_->frozen.empty()) next_plan_ = now + kPlanPeriod;
}

void NodeSync::Write(const NodeWrite& write, absl::Time now) {
  const kubernetes::Node& node = edges_.client.mirror().nodes().at(write.node);
  for (const kubernetes::Taint& taint : write.add) {
    edges_.log.Info("node_tainted",
                    {{"node", write.node}, {"taint", taint.key}, {"effect", taint.effect}});
  }
  for (const std::string& taint : write.remove) {
    if (std::any_of(write.add.begin(), write.add.end(),
                    [&](const kubernetes::Taint& added) { return added.key == taint; })) {
      continue;  // Another takes its place.
    }
    edges_.log.Info("node_taint_lifted", {{"node", write.node}, {"taint", taint}});
  }
  http::Request taints;
  const bool changes_taints = !write.add.empty() || !write.remove.empty();
  if (changes_taints) taints = kubernetes::TaintPatch(node, write.remove, write.add);
  if (changes_taints) edges_.client.Write(write.node, std::move(taints));
  const absl::Time time = now + edges_.clock.SetAhead();
  if (!write.conditions.empty()) {
    edges_.client.Write(write.node, kubernetes::ConditionPatch(write.node, write.conditions, time));
  }
  if (write.event) {
    edges_.client.Write(write.node,
                        kubernetes::NodeEventRequest(node, write.event->type + write.event->reason,
                                                     write.event->message, time));
  }
}

std::pair<std::string_view, std::string> NodeSync::Problem(absl::Time now) const {
  constexpr std::string_view kStay = "nodes keep their taints and conditions as they are";
  const kubernetes::NodeMirror& mirror = edges_.client.mirror();
  if (const absl::Status trouble = mirror.Trouble(now); !trouble.ok()) {
    // The first list takes its time.
    if (!mirror.complete() && now - begun_ < kFirstList) return {};
    return {kApi, fmt::format("the Kubernetes API tells nothing of nodes, and {}: {}", kStay,
                              base::MessageOf(trouble))};
  }
  if (!write_trouble_.ok()) {
    return {kWrites, fmt::format("taints and conditions of nodes cannot be written: {}",
                                 base::MessageOf(write_trouble_))};
  }
  if (!facts_.ok()) {
    return {kFleet, fmt::format("{}, since the server is busy: {}", kStay,
                                base::MessageOf(facts_.status()))};
  }
  if (!plan_.problem.empty()) return {kLimits, plan_.problem};
  return {};
}

void NodeSync::Report(absl::Time now) {
  auto [kind, text] = Problem(now);
  const auto& counters = edges_.client.mirror().counters();
  edges_.board.Set({.usable = edges_.client.mirror().complete() && kind != kApi && kind != kWrites,
                    .nodes = edges_.client.mirror().nodes().size(),
                    .unfit = plan_.unfit,
                    .tainted = plan_.tainted,
                    .joining = plan_.joining,
                    .held_back = plan_.held_back,
                    .waiting = plan_.waiting,
                    .writes = writes_,
                    .lists = counters.lists,
                    .watches = counters.watches,
                    .forgotten = counters.forgotten});
  if (text == told_ || (kind == told_kind_ && now - told_at_ < kTellPeriod)) return;
  if (kind != told_kind_) {
    if (kind.empty()) {
      edges_.log.Info("kubernetes_nodes_well", {{"was", told_}});
    } else {
      edges_.log.Warn("kubernetes_nodes_trouble", {{"kind", kind}, {"problem", text}});
    }
  }
  told_ = std::move(text);
  told_kind_ = kind;
  told_at_ = now;
  edges_.tell(told_);
}

}  // namespace spoke::ipam
