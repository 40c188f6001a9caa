// Decides when a status that is looked at again and again is told anew. Pure.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

namespace spoke::base {

// Not thread-safe. Times are milliseconds of a clock that is never set.
class StatusNews {
 public:
  // An error that stays of one kind is told anew after so long. Its words may differ from look to
  // look, and are no news.
  static constexpr int64_t kTellAgainMs = 60'000;

  // Returns whether `status` is to be told, since it is of another kind than told(), which it then
  // is, or is an error that was told too long ago. OK counts as told in the beginning.
  bool IsNews(absl::Status status, int64_t now_ms) {
    if (status.code() == told_.code() && (status.ok() || now_ms < told_ms_ + kTellAgainMs)) {
      return false;
    }
    told_ = std::move(status);
    told_ms_ = now_ms;
    return true;
  }
  const absl::Status& told() const { return told_; }

 private:
  absl::Status told_;
  int64_t told_ms_ = 0;
};

}  // namespace spoke::base
