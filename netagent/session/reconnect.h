// Decides when to try the server again, so that thousands of agents that lost one server come back
// spread out. Pure: the caller measures time and draws the random numbers, each uniform in [0, 1).
#pragma once

#include "absl/time/time.h"
#include "lib/base/backoff.h"

namespace spoke::netagent {

struct ReconnectSettings {
  // The time within which the first attempt comes. Zero is right where nodes start spread out.
  absl::Duration first_connect;
  // The time within which agents come back: a server that restarts loses all its agents in one
  // moment, and they have nothing to wait for but each other.
  absl::Duration after_session = absl::Seconds(3);
  // The least time of a session that proves that the server is well.
  absl::Duration settled = absl::Seconds(3);
  base::Backoff backoff;
};

// The way an attempt went.
struct StreamEnd {
  bool welcomed = false;  // Whether the server took the hello.
  absl::Duration lasted;
  // Whether the versions do not work together: no attempt will do better before an upgrade.
  bool skewed = false;
};

// Not thread-safe.
class Reconnect {
 public:
  explicit Reconnect(const ReconnectSettings& settings) : settings_(settings) {}

  // The wait before the first attempt.
  absl::Duration BeforeFirst(double jitter) const { return settings_.first_connect * jitter; }

  // Notes within which time the server wants its agents back; zero: it does not say.
  void SetWithin(absl::Duration within) { within_ = within; }

  // The wait after an attempt or session that ended so. It is uniform within what the server has
  // said, or else `after_session`, when a session is lost, exponential with full jitter when
  // attempts fail one after the other or sessions break as soon as they begin. A server of a
  // version that does not fit is asked again after one to two times the longest of these.
  absl::Duration After(const StreamEnd& end, double jitter);

 private:
  ReconnectSettings settings_;
  absl::Duration within_;
  int failures_ = 0;  // Failures since the last session that settled.
};

}  // namespace spoke::netagent
