#include "ipam-server/enroll/review_pause.h"

#include <utility>

namespace spoke::ipam {

bool ReviewPause::MayAsk(absl::Time now) {
  if (!until_) return true;
  if (now < *until_) return false;
  return !std::exchange(trying_, true);
}

void ReviewPause::Answered() {
  until_.reset();
  trying_ = false;
}

void ReviewPause::Unanswered(absl::Duration took, absl::Time now) {
  if (took >= kLong) {
    until_ = now + kPause;
    trying_ = false;
  } else if (trying_) {
    // It fails fast now: everybody may find that out.
    Answered();
  }
}

}  // namespace spoke::ipam
