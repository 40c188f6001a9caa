#include "tests/bench/swarm/pod_arrivals.h"

#include "absl/time/time.h"

namespace spoke::swarm {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(5);

}  // namespace

void PodArrivals::SetRate(uint32_t pods_a_second) {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
  if (pods_a_second == 0) return;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = false;
  }
  thread_ = std::thread([this, pods_a_second] { Run(pods_a_second); });
}

void PodArrivals::Run(uint32_t pods_a_second) {
  const int64_t started = NowNs();
  const auto rate = static_cast<double>(pods_a_second);
  for (uint64_t sent = 0;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), kTick)) return;
    }
    const auto due = static_cast<uint64_t>(static_cast<double>(NowNs() - started) / 1e9 * rate);
    for (; sent < due; ++sent) {
      const bool runs = swarm_.RunPod(next_);
      next_ = (next_ + 1) % swarm_.size();
      ++(runs ? arrived_ : failed_);
    }
  }
}

}  // namespace spoke::swarm
