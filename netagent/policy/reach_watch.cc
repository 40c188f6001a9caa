#include "netagent/policy/reach_watch.h"

#include <algorithm>
#include <string>

#include "netagent/claims.h"
#include "netagent/policy/policy_prober.h"

namespace spoke::netagent {
namespace {

using node_api::ProbeOutcome;
using node_api::ProbeResult;
using node_checks::ReachAnswer;
using node_checks::ReachAnswers;
using node_checks::ReachTargets;

std::string HowOf(const ProbeResult& result) {
  if (result.outcome == ProbeOutcome::kReached) return "it takes connections";
  return result.detail.empty() ? "timed out" : result.detail;
}

const ReachAnswer* Find(const std::vector<ReachAnswer>& answers, const ip::Endpoint& target) {
  const auto found = std::find_if(answers.begin(), answers.end(), [&](const ReachAnswer& answer) {
    return answer.target == target;
  });
  return found == answers.end() ? nullptr : &*found;
}

// Tries all of `targets`. What could not be tried stays as it was `before`.
std::vector<ReachAnswer> TryAll(const std::vector<ip::Endpoint>& targets,
                                const ReachWatch::Try& how, const std::atomic<bool>& stop) {
  std::vector<ReachAnswer> answers;
  if (targets.empty()) return answers;
  std::vector<node_api::ProbeTarget> wanted;
  for (const ip::Endpoint& target : targets) {
    wanted.push_back({.address = target.address, .port = target.port});
  }
  for (const ProbeResult& result : how(wanted, stop)) {
    if (result.outcome == ProbeOutcome::kNotTried) continue;
    answers.push_back({.target = {result.target.address, result.target.port},
                       .reached = result.outcome == ProbeOutcome::kReached ||
                                  result.outcome == ProbeOutcome::kRefused,
                       .how = HowOf(result)});
  }
  return answers;
}

// Puts what was found `before` of targets that are still tried, and could not be now, into `now`.
void Keep(const std::vector<ReachAnswer>& before, const std::vector<ip::Endpoint>& targets,
          std::vector<ReachAnswer>& now) {
  for (const ReachAnswer& answer : before) {
    if (Find(now, answer.target) != nullptr) continue;
    if (std::find(targets.begin(), targets.end(), answer.target) == targets.end()) continue;
    now.push_back(answer);
  }
}

}  // namespace

std::vector<ProbeResult> TryHub(const std::vector<node_api::ProbeTarget>& targets,
                                const std::atomic<bool>& stop) {
  return ProbeAll(targets, ReachWatch::kPatience, stop);
}

std::vector<ProbeResult> TryPeerSpokes(const std::vector<node_api::ProbeTarget>& targets,
                                       const std::atomic<bool>& stop) {
  return ProbeAll(targets, ReachWatch::kPatience, stop, claims::kReachProbeMark);
}

ReachWatch::~ReachWatch() {
  {
    const absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  stop_trying_ = true;
  if (thread_.joinable()) thread_.join();
}

void ReachWatch::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ReachWatch::SetTargets(ReachTargets targets) {
  const absl::MutexLock lock(&mutex_);
  if (targets_ == targets) return;
  targets_ = std::move(targets);
  changed_ = true;
  if (!latest_) return;
  const ReachAnswers before = *std::move(latest_);
  latest_ = ReachAnswers();
  Keep(before.hub, targets_->hub, latest_->hub);
  Keep(before.peer_spoke, targets_->peer_spoke, latest_->peer_spoke);
}

absl::Duration ReachWatch::Pause() const {
  const double random = edges_.random();
  const absl::MutexLock lock(&mutex_);
  return (latest_ && IsInDoubt(*latest_) ? kSoon : kPause) * (0.9 + 0.2 * random);
}

void ReachWatch::Run() {
  while (true) {
    Look();
    const absl::Duration pause = Pause();
    const absl::MutexLock lock(&mutex_);
    // Targets that are new are tried soon, and not at once: all nodes have got them now.
    if (mutex_.AwaitWithTimeout(absl::Condition(this, &ReachWatch::IsWoken), pause)) {
      if (stop_) return;
      if (mutex_.AwaitWithTimeout(absl::Condition(&stop_), kSoon * edges_.random())) return;
    }
  }
}

void ReachWatch::Look() {
  ReachTargets targets;
  {
    const absl::MutexLock lock(&mutex_);
    changed_ = false;
    if (!targets_) return;
    targets = *targets_;
  }
  ReachAnswers now{.hub = TryAll(targets.hub, edges_.try_hub, stop_trying_),
                   .peer_spoke = TryAll(targets.peer_spoke, edges_.try_peer_spokes, stop_trying_)};
  const absl::Time at = edges_.clock.Now();
  const absl::MutexLock lock(&mutex_);
  if (stop_ || targets_ != targets) return;  // What was tried is not what is asked for now.
  const ReachAnswers before = latest_.value_or(ReachAnswers());
  CountLooks(before, at, now);
  Keep(before.hub, targets.hub, now.hub);
  Keep(before.peer_spoke, targets.peer_spoke, now.peer_spoke);
  latest_ = std::move(now);
}

std::optional<ReachAnswers> ReachWatch::latest() const {
  const absl::MutexLock lock(&mutex_);
  return latest_;
}

}  // namespace spoke::netagent
