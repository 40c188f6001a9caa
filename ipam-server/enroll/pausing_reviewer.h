// Asks another reviewer, and for a while nobody after that one has long been without an answer
// (review_pause.h).
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/enroll/review_pause.h"
#include "ipam-server/enroll/token_reviewer.h"
#include "lib/os/clock.h"

namespace spoke::ipam {

// Thread-safe. Keeps what TokenReviewer promises; kUnavailable at once stands for an answer that
// would not come.
class PausingReviewer final : public TokenReviewer {
 public:
  // Borrows both. `uptime` is never set.
  PausingReviewer(TokenReviewer& asked, const os::Clock& uptime) : asked_(asked), uptime_(uptime) {}

  absl::StatusOr<TokenFacts> Review(const std::string& token,
                                    const std::string& audience) override {
    return Ask([&] { return asked_.Review(token, audience); });
  }
  absl::StatusOr<PodFacts> ReadPod(const std::string& k8s_namespace,
                                   const std::string& name) override {
    return Ask([&] { return asked_.ReadPod(k8s_namespace, name); });
  }
  absl::StatusOr<NodeFacts> ReadNode(const std::string& name) override {
    return Ask([&] { return asked_.ReadNode(name); });
  }

 private:
  template <typename Call>
  auto Ask(const Call& call) -> decltype(call()) {
    const absl::Time begun = uptime_.Now();
    {
      absl::MutexLock lock(&mutex_);
      if (!pause_.MayAsk(begun)) {
        return absl::UnavailableError(
            "the cluster's API server has not answered lately, and is asked again within seconds");
      }
    }
    auto answer = call();
    const absl::Time now = uptime_.Now();
    const bool unanswered =
        absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status());
    absl::MutexLock lock(&mutex_);
    if (unanswered) {
      pause_.Unanswered(now - begun, now);
    } else {
      pause_.Answered();
    }
    return answer;
  }

  TokenReviewer& asked_;
  const os::Clock& uptime_;
  absl::Mutex mutex_;
  ReviewPause pause_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
