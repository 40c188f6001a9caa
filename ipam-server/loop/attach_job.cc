#include "ipam-server/loop/attach_job.h"

#include <utility>

namespace spoke::ipam {

AttachJob::AttachJob(Cloud& cloud, Answer answer)
    : cloud_(cloud), answer_(std::move(answer)), thread_([this] { Run(); }) {}

AttachJob::~AttachJob() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void AttachJob::Request(NicRequest desired) {
  absl::MutexLock lock(&mutex_);
  const NodeKey node = desired.node;
  waiting_.insert_or_assign(node, std::move(desired));
}

void AttachJob::Run() {
  while (true) {
    NicRequest desired;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopped_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopped_) return;
      desired = std::move(waiting_.extract(waiting_.begin()).mapped());
    }
    answer_(desired.node, cloud_.Apply(desired));
  }
}

}  // namespace spoke::ipam
