#include "admin-cli/dashboard/answer_cache.h"

#include <algorithm>

namespace spoke::ctl {

std::shared_ptr<AnswerCache::Kept> AnswerCache::PlaceOf(const std::string& key, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = places_.find(key);
  if (found != places_.end()) {
    found->second.used = now;
    return found->second.kept;
  }
  if (places_.size() >= kMostAnswers) {
    places_.erase(std::min_element(
        places_.begin(), places_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  return places_.emplace(key, Place{.kept = std::make_shared<Kept>(), .used = now})
      .first->second.kept;
}

std::shared_ptr<const PageAnswer> AnswerCache::Of(const std::string& key,
                                                  const std::function<PageAnswer()>& ask) {
  const std::shared_ptr<Kept> kept = PlaceOf(key, clock_.Now());
  absl::MutexLock lock(&kept->mutex);
  // The clock may have been set back while an answer was kept.
  const absl::Duration age = clock_.Now() - kept->at;
  if (kept->answer == nullptr || age >= kept->lasts || age < absl::ZeroDuration()) {
    const absl::Time asked = clock_.Now();
    kept->answer = std::make_shared<const PageAnswer>(ask());
    kept->at = clock_.Now();
    kept->lasts = std::max(kept_, std::min(kLongest, kTimesItTook * (kept->at - asked)));
  }
  return kept->answer;
}

}  // namespace spoke::ctl
