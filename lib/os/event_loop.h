// One thread that waits for descriptors and for work from other threads, over epoll(7).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/os/unique_fd.h"

namespace spoke::os {

// Post() and Stop() are thread-safe; everything else belongs to the loop's thread.
class EventLoop {
 public:
  // Errors: kResourceExhausted (out of descriptors).
  static absl::StatusOr<EventLoop> Create();
  EventLoop(EventLoop&&) = default;

  // Calls `on_readable` whenever `fd` has something to read, or its peer has closed. Borrows `fd`
  // until Remove(), which must come before it is closed. Errors: as epoll_ctl(2).
  absl::Status AddReader(int fd, std::function<void()> on_readable);
  void Remove(int fd);

  // Runs `work` on the loop's thread, in the order posted. What is posted after the loop has ended
  // never runs.
  void Post(std::function<void()> work);

  // Waits for up to `wait` and handles what is there. Returns false after Stop().
  bool RunOnce(absl::Duration wait);
  void Stop();

 private:
  struct Shared {
    absl::Mutex mutex;
    std::vector<std::function<void()>> posted ABSL_GUARDED_BY(mutex);
    bool stopped ABSL_GUARDED_BY(mutex) = false;
  };
  EventLoop(UniqueFd epoll, UniqueFd wake)
      : epoll_(std::move(epoll)), wake_(std::move(wake)), shared_(std::make_unique<Shared>()) {}
  bool RunPosted();
  void Wake() const;

  UniqueFd epoll_;
  UniqueFd wake_;
  std::map<int, std::function<void()>> readers_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace spoke::os
