// Answers that are kept for a while, so that ten who look cost the server as much as one.
// Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"

namespace spoke::ctl {

// What a path below "api/" is answered with.
struct PageAnswer {
  int status = 200;  // HTTP's.
  std::string body;  // JSON.
};

class AnswerCache {
 public:
  // The most answers that are kept at a time; the oldest go first.
  static constexpr size_t kMostAnswers = 64;

  // An answer that took long to get is kept longer: of what is asked again and again, no more than
  // one part in so many of the time goes into asking. No answer is kept for more than a minute.
  static constexpr int kTimesItTook = 200;
  static constexpr absl::Duration kLongest = absl::Minutes(1);

  // Keeps answers for so long at least. Borrows the clock.
  AnswerCache(const os::Clock& clock, absl::Duration kept) : clock_(clock), kept_(kept) {}

  // Returns the answer under `key`, from `ask` when none is kept. Of several threads that want the
  // same one, the first asks and the others wait for it; those that want others go on.
  std::shared_ptr<const PageAnswer> Of(const std::string& key,
                                       const std::function<PageAnswer()>& ask);

 private:
  struct Kept {
    absl::Mutex mutex;
    absl::Time at ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
    absl::Duration lasts ABSL_GUARDED_BY(mutex);
    std::shared_ptr<const PageAnswer> answer ABSL_GUARDED_BY(mutex);
  };
  struct Place {
    std::shared_ptr<Kept> kept;  // Shared with the threads that are asking.
    absl::Time used;
  };

  // Returns the place of `key`, and makes room for it.
  std::shared_ptr<Kept> PlaceOf(const std::string& key, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  const os::Clock& clock_;
  const absl::Duration kept_;
  absl::Mutex mutex_;
  std::map<std::string, Place> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ctl
