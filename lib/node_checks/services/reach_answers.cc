#include "lib/node_checks/services/reach_answers.h"

#include <algorithm>

namespace spoke::node_checks {
namespace {

void CountLooks(const std::vector<ReachAnswer>& before, absl::Time at,
                std::vector<ReachAnswer>& now) {
  for (ReachAnswer& answer : now) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const ReachAnswer& other) {
      return other.target == answer.target && other.reached == answer.reached;
    });
    answer.looks = same == before.end() ? 1 : same->looks + 1;
    answer.since = same == before.end() ? at : same->since;
  }
}

}  // namespace

void CountLooks(const ReachAnswers& before, absl::Time at, ReachAnswers& now) {
  CountLooks(before.hub, at, now.hub);
  CountLooks(before.peer_spoke, at, now.peer_spoke);
}

bool IsInDoubt(const ReachAnswers& answers) {
  const auto is_new = [](bool wrong) {
    return [wrong](const ReachAnswer& answer) {
      return answer.reached == wrong && answer.looks < kAgreeingLooks;
    };
  };
  return std::any_of(answers.hub.begin(), answers.hub.end(), is_new(false)) ||
         std::any_of(answers.peer_spoke.begin(), answers.peer_spoke.end(), is_new(true));
}

}  // namespace spoke::node_checks
