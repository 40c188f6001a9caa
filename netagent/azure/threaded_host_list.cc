#include "netagent/azure/threaded_host_list.h"

#include <utility>

namespace spoke::netagent::azure {

ThreadedHostList::ThreadedHostList(Reader reader)
    : reader_(std::move(reader)), thread_([this] { Run(); }) {}

ThreadedHostList::~ThreadedHostList() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

bool ThreadedHostList::Read(Done done) {
  absl::MutexLock lock(&mutex_);
  if (stopped_ || wanted_) return false;
  wanted_ = std::move(done);
  return true;
}

void ThreadedHostList::Run() {
  while (true) {
    Done done;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopped_ || wanted_ != nullptr;
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopped_) return;
      done = wanted_;
    }
    auto addresses = reader_();
    {
      // The lock comes before `done`, so that whoever hears of the outcome can ask again.
      absl::MutexLock lock(&mutex_);
      wanted_ = nullptr;
    }
    done(std::move(addresses));
  }
}

}  // namespace spoke::netagent::azure
