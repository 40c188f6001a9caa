// The parts that the agent's loop looks after, in their order, and when it has to wake for the
// first of them. Pure, apart from what the parts themselves do.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace spoke::netagent {

enum class Fairness {
  kEveryTurn,   // It is looked after in each turn of the loop: it is quick, or pods wait for it.
  kTakesTurns,  // It takes milliseconds on a full node: one that is due is admitted a turn (Turn).
};

struct AgentPart {
  Fairness fairness = Fairness::kEveryTurn;
  // Does what is due at `now`; called after each turn of the loop, whatever `next_wake` says.
  std::function<void(absl::Time now)> tick;
  // When the loop has to come by without an event; InfiniteFuture: never.
  std::function<absl::Time()> next_wake;
};

// Not thread-safe; the agent's loop owns it.
class AgentParts {
 public:
  void Add(AgentPart part) { parts_.push_back(std::move(part)); }

  // Borrows `part`, which says by its own Tick() and NextWake() what it needs.
  template <typename T>
  void Add(Fairness fairness, T& part) {
    Add({.fairness = fairness,
         .tick =
             [&part]([[maybe_unused]] absl::Time now) {
               if constexpr (requires { part.Tick(now); }) {
                 part.Tick(now);
               } else {
                 part.Tick();
               }
             },
         .next_wake = [&part] { return OrNever(part.NextWake()); }});
  }
  // Adds a part like the function above; adds nothing where this agent has no such part.
  template <typename T>
  void Add(Fairness fairness, std::optional<T>& part) {
    if (part) Add(fairness, *part);
  }

  // Takes one turn at `now`: looks after all that are admitted, in the order in which they were
  // added. Calls `before_each` before each of them.
  void Tick(absl::Time now, const std::function<void()>& before_each) const;

  // The earliest of all; InfiniteFuture: none needs to be woken.
  absl::Time NextWake() const;

 private:
  static absl::Time OrNever(std::optional<absl::Time> wake) {
    return wake.value_or(absl::InfiniteFuture());
  }

  std::vector<AgentPart> parts_;
};

}  // namespace spoke::netagent
