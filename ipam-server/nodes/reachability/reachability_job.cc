#include "ipam-server/nodes/reachability/reachability_job.h"

#include <sys/prctl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/loop/loop_call.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kLoopPatience = absl::Seconds(10);
// Questions of a round go out in so many portions, so that neither the loop nor the network has
// them all at once, within this share of it.
constexpr int kPortions = 50;
constexpr double kAskingShare = 0.7;
// The share of a round that one probe may take, and how long an agent may need besides. What was
// lost is known last: answers that were not waited for would be those that matter.
constexpr double kTimeoutShare = 0.2;
constexpr absl::Duration kAnswerTime = absl::Seconds(1);
// Half of what the loop keeps: operators ask as well.
constexpr size_t kMostUnderWay = PendingAnswers<node_api::ProbeAnswer>::kMost / 2;
constexpr size_t kSuspectsTold = 5;

}  // namespace

ProbedNode ProbedNodeOf(const NodeRecord& record, const Session& session,
                        const std::string& group) {
  const auto label = record.labels.find(group);
  return {
      .node = {.name = record.key.name, .group = label == record.labels.end() ? "" : label->second},
      .addresses = session.own_addresses,
      .mtu = session.nic_mtu};
}

absl::StatusOr<std::vector<ProbedNode>> ReadProbedNodes(FleetLoop& loop, const std::string& group,
                                                        absl::Duration patience) {
  std::vector<ProbedNode> nodes;
  RETURN_IF_ERROR(VisitNodes(loop, patience, [&](const FleetView& view, const NodeRecord& record) {
    const auto session = view.sessions.find(record.key);
    if (session == view.sessions.end() || record.mode == NodeMode::kRetired) return;
    nodes.push_back(ProbedNodeOf(record, session->second, group));
  }));
  return nodes;
}

// A round under way. It is shared, since an answer that comes too late still has to find it.
struct ReachabilityJob::Round {
  struct Inbox {
    absl::Mutex mutex;
    std::vector<std::pair<size_t, absl::StatusOr<node_api::ProbeAnswer>>> come
        ABSL_GUARDED_BY(mutex);
  };
  std::vector<ProbeQuestion> questions;
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  size_t asked = 0;
  size_t answered = 0;
};

ReachabilityJob::ReachabilityJob(const Edges& edges)
    : edges_(edges),
      rounds_({.peers = edges.board.settings().peers, .window = edges.board.settings().window}) {}

void ReachabilityJob::Start() {
  thread_ = std::thread([this] {
    ::prctl(PR_SET_NAME, "reachability");
    const absl::Duration interval = edges_.board.settings().interval;
    do {
      const absl::Time next = edges_.clock.Now() + interval;
      const absl::Status done = RunOnce(interval);
      if (!done.ok()) edges_.log.Warn("reachability_round_failed", {{"error", done}});
      if (WaitUntil(next)) return;
    } while (true);
  });
}

void ReachabilityJob::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

// Returns whether it is to stop.
bool ReachabilityJob::WaitUntil(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&stopped_), deadline - edges_.clock.Now());
}

absl::Status ReachabilityJob::RunOnce(absl::Duration length) {
  ASSIGN_OR_RETURN(
      std::vector<ProbedNode> nodes,
      ReadProbedNodes(edges_.loop, edges_.board.settings().group_label, kLoopPatience));
  Round round{.questions = rounds_.Begin(std::move(nodes), edges_.clock.Now())};
  for (ProbeQuestion& question : round.questions) {
    question.request.timeout = std::min(kReachTimeout, length * kTimeoutShare);
  }
  Ask(round, length);
  const Reachability& judged = rounds_.End(edges_.clock.Now());
  edges_.board.Set(std::make_shared<const Reachability>(judged));
  Tell(judged);
  return absl::OkStatus();
}

// Asks all questions, a portion at a time, and takes the answers that come until all have or the
// time is over.
void ReachabilityJob::Ask(Round& round, absl::Duration length) {
  const size_t all = round.questions.size();
  const size_t portion = all / kPortions + 1;
  const absl::Time began = edges_.clock.Now();
  const absl::Time until = began + length + kAnswerTime;
  absl::Time next = began;
  while (round.answered < all && edges_.clock.Now() < until) {
    if (edges_.clock.Now() >= next) {
      AskSome(round, portion);
      next = round.asked < all ? next + length * kAskingShare / kPortions : until;
    }
    std::vector<std::pair<size_t, absl::StatusOr<node_api::ProbeAnswer>>> come;
    {
      absl::MutexLock lock(&round.inbox->mutex);
      const auto any = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(round.inbox->mutex) {
        return !round.inbox->come.empty();
      };
      round.inbox->mutex.AwaitWithTimeout(absl::Condition(&any),
                                          std::min(next, until) - edges_.clock.Now());
      come.swap(round.inbox->come);
    }
    for (const auto& [number, answer] : come) {
      ++round.answered;
      // An agent that does not answer says nothing about the network; its peers do.
      if (answer.ok()) rounds_.Take(round.questions[number], *answer);
    }
    if (WaitUntil(absl::InfinitePast())) return;
  }
}

void ReachabilityJob::AskSome(Round& round, size_t portion) {
  const size_t end = std::min(round.asked + portion, round.questions.size());
  while (round.asked < end && round.asked - round.answered < kMostUnderWay) {
    const size_t number = round.asked++;
    const ProbeQuestion& question = round.questions[number];
    edges_.loop.PostAskProbe(
        question.node, question.request,
        [inbox = round.inbox, number](absl::StatusOr<node_api::ProbeAnswer> answer) {
          absl::MutexLock lock(&inbox->mutex);
          inbox->come.emplace_back(number, std::move(answer));
        });
  }
}

void ReachabilityJob::Tell(const Reachability& judged) {
  std::set<std::string> suspects;
  std::string problem;
  for (const NodeReach& node : judged.nodes) {
    if (node.suspicion.empty()) continue;
    suspects.insert(node.node.name);
    if (suspects.size() <= kSuspectsTold) {
      problem += fmt::format("{}{}", problem.empty() ? "" : ", ", node.node.name);
    }
    if (told_.contains(node.node.name)) continue;
    edges_.log.Warn("reachability_suspect", {{"node", node.node.name},
                                             {"group", node.node.group},
                                             {"lost", node.tally.lost},
                                             {"probes", node.tally.probes},
                                             {"what", node.suspicion}});
  }
  for (const std::string& node : told_) {
    if (!suspects.contains(node)) edges_.log.Info("reachability_suspect_over", {{"node", node}});
  }
  told_ = std::move(suspects);
  if (!judged.unjudged.empty() && !told_unjudged_) {
    edges_.log.Warn("reachability_unjudged", {{"what", judged.unjudged}});
  }
  told_unjudged_ = !judged.unjudged.empty();
  if (!problem.empty()) {
    problem = fmt::format(
        "the network of {} {} loses packets: {}{}; see: spokectl reachability show", told_.size(),
        told_.size() == 1 ? "node" : "nodes", problem, told_.size() > kSuspectsTold ? ", ..." : "");
  } else if (!judged.pairs.empty()) {
    problem = fmt::format(
        "{} of nodes do not reach each other, {} and {} among them; see: spokectl "
        "reachability show",
        judged.pairs.size() == 1 ? "1 pair" : fmt::format("{} pairs", judged.pairs.size()),
        judged.pairs.front().a, judged.pairs.front().b);
  }
  edges_.loop.PostProblem("reachability", problem);
}

}  // namespace spoke::ipam
