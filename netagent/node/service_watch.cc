#include "netagent/node/service_watch.h"

namespace spoke::netagent {

ServiceWatch::~ServiceWatch() {
  {
    const absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  edges_.interrupt();
  if (thread_.joinable()) thread_.join();
}

void ServiceWatch::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ServiceWatch::Run() {
  while (true) {
    Look();
    const absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stop_), kPause)) return;
  }
}

void ServiceWatch::Look() {
  Latest now;
  now.services = edges_.probe();
  now.clock = latest().clock;
  if (!now.clock || ++looks_ >= kLooksAClock) {
    now.clock = edges_.ask_clock();
    looks_ = 0;
  }
  const absl::MutexLock lock(&mutex_);
  latest_ = std::move(now);
}

ServiceWatch::Latest ServiceWatch::latest() const {
  const absl::MutexLock lock(&mutex_);
  return latest_;
}

}  // namespace spoke::netagent
