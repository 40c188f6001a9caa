#include "ipam-server/jobs/mailbox.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spoke::ipam {

void Mailbox::Post(OperatorEvent event) {
  absl::MutexLock lock(&mutex_);
  operators_.push_back(std::move(event));
}

void Mailbox::Post(AgentEvent event) {
  absl::MutexLock lock(&mutex_);
  agents_.push_back(std::move(event));
}

void Mailbox::Post(HelloEvent event) {
  absl::MutexLock lock(&mutex_);
  hellos_.push_back(std::move(event));
}

void Mailbox::PostClosed(SessionId session) {
  absl::MutexLock lock(&mutex_);
  const auto waiting = std::find_if(hellos_.begin(), hellos_.end(), [&](const HelloEvent& hello) {
    return hello.session == session;
  });
  if (waiting != hellos_.end()) {
    hellos_.erase(waiting);
    return;
  }
  agents_.emplace_back(ClosedEvent{session});
}

std::optional<Mailbox::Taken> Mailbox::Take(absl::Duration wait, const Lanes& lanes) {
  absl::MutexLock lock(&mutex_);
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || !operators_.empty() ||
           (lanes.agents && (!agents_.empty() || !hellos_.empty()));
  };
  mutex_.AwaitWithTimeout(absl::Condition(&ready), wait);
  if (stopped_) return std::nullopt;
  Taken taken;
  taken.operators.swap(operators_);
  if (!lanes.agents) return taken;
  taken.agents.swap(agents_);
  const auto count = static_cast<ptrdiff_t>(std::min(lanes.most_hellos, hellos_.size()));
  taken.hellos.assign(std::make_move_iterator(hellos_.begin()),
                      std::make_move_iterator(hellos_.begin() + count));
  hellos_.erase(hellos_.begin(), hellos_.begin() + count);
  return taken;
}

void Mailbox::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

size_t Mailbox::waiting_agents() const {
  absl::MutexLock lock(&mutex_);
  return agents_.size();
}

size_t Mailbox::waiting_hellos() const {
  absl::MutexLock lock(&mutex_);
  return hellos_.size();
}

}  // namespace spoke::ipam
