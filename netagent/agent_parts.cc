#include "netagent/agent_parts.h"

#include <algorithm>

#include "netagent/attach/turn.h"

namespace spoke::netagent {

void AgentParts::Tick(absl::Time now, const std::function<void()>& before_each) const {
  absl::Time first = absl::InfiniteFuture();
  for (const AgentPart& part : parts_) {
    if (part.fairness == Fairness::kTakesTurns) first = std::min(first, part.next_wake());
  }
  Turn turn(now, first);
  for (const AgentPart& part : parts_) {
    if (part.fairness == Fairness::kTakesTurns && !turn.Admits(part.next_wake())) continue;
    before_each();
    part.tick(now);
  }
}

absl::Time AgentParts::NextWake() const {
  absl::Time next = absl::InfiniteFuture();
  for (const AgentPart& part : parts_) next = std::min(next, part.next_wake());
  return next;
}

}  // namespace spoke::netagent
