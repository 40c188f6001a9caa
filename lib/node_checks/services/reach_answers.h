// Which of the targets that policy names a node could connect to: of the hub, which is to be
// reached, and of peer spokes, which are not. Values. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/endpoint.h"

namespace spoke::node_checks {

// What a node is to try; both empty: nothing.
struct ReachTargets {
  std::vector<ip::Endpoint> hub;
  std::vector<ip::Endpoint> peer_spoke;

  bool operator==(const ReachTargets&) const = default;
};

// What one look at a target found.
struct ReachAnswer {
  ip::Endpoint target;
  bool reached = false;  // Somebody answered; a refusal is an answer too.
  std::string how;       // How the attempt ended: "timed out".
  int looks = 0;         // How many looks in a row, this one among them, have ended so.
  absl::Time since;      // When the first of these looks was.

  bool operator==(const ReachAnswer&) const = default;
};

// All that one look found.
struct ReachAnswers {
  std::vector<ReachAnswer> hub;
  std::vector<ReachAnswer> peer_spoke;

  bool operator==(const ReachAnswers&) const = default;
};

// The looks in a row that have to agree before a check finds something: what lasts for one may be a
// restart, or a policy that is being put in force.
inline constexpr int kAgreeingLooks = 2;

// Puts into `now`, which was found at `at`, how many looks in a row have ended alike, by the look
// before.
void CountLooks(const ReachAnswers& before, absl::Time at, ReachAnswers& now);

// Returns whether a target is not as it is to be, and has not been so for kAgreeingLooks: another
// look soon says whether it lasts.
bool IsInDoubt(const ReachAnswers& answers);

}  // namespace spoke::node_checks
