// A HostList whose readings block: they are done on a thread of its own.
#pragma once

#include <functional>
#include <set>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/ip/address.h"
#include "netagent/verification/host_list.h"

namespace spoke::netagent::azure {

// Thread-safe.
class ThreadedHostList final : public HostList {
 public:
  // Reads once; may take its time. Called on the thread of the list.
  using Reader = std::function<absl::StatusOr<std::set<ip::Address>>()>;

  explicit ThreadedHostList(Reader reader);
  ThreadedHostList(const ThreadedHostList&) = delete;
  ThreadedHostList& operator=(const ThreadedHostList&) = delete;
  // Waits for the reading that is under way, if one is.
  ~ThreadedHostList() override;

  bool Read(Done done) override;

 private:
  void Run();

  const Reader reader_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Done wanted_ ABSL_GUARDED_BY(mutex_);  // Stays until its reading is done.
  std::thread thread_;
};

}  // namespace spoke::netagent::azure
