// Whether the cluster's API server is asked at all: for a while after a question that took long and
// had no answer, it is not, since whoever asks would wait as long. So an outage of the API server,
// with strangers who show tokens of their own make, does not keep those out who need no answer of
// it. Pure: time is an argument.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace spoke::ipam {

// Not thread-safe. Times are of a clock that is never set.
class ReviewPause {
 public:
  // For so long nobody asks. Then one asks, and the others wait for what becomes of that.
  static constexpr absl::Duration kPause = absl::Seconds(10);
  // What fails sooner keeps nobody's place, and nothing is made of it.
  static constexpr absl::Duration kLong = absl::Seconds(1);

  // Whether one may ask now, who then has to call Answered() or Unanswered().
  bool MayAsk(absl::Time now);
  // Notes that an answer has come, whatever it was.
  void Answered();
  // Notes that none has, after so long.
  void Unanswered(absl::Duration took, absl::Time now);

 private:
  std::optional<absl::Time> until_;  // nullopt: the last question was answered.
  bool trying_ = false;              // One asks, though the last question was not answered.
};

}  // namespace spoke::ipam
