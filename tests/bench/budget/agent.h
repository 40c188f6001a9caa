// One node of the simulation: pods of some teams that would like to use so much, and an agent that
// measures and reports as the real one does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/budget/budget_book.h"
#include "tests/bench/budget/grant_holder.h"

namespace spoke::budget_sim {

// What an agent tells at once, not only each refresh.
struct AgentHabits {
  bool tells_less = true;   // It applies a grant that is less than it had.
  bool tells_more = true;   // A grant has grown, and it has looked what that has changed.
  bool tells_falls = true;  // It needs much less than it has.
  absl::Duration window = absl::Seconds(2);  // Whose most counts as what it needs.
};

// Of a rate: from there on it counts as full. As in netagent/shaping/shaping_meter.cc.
inline constexpr double kFull = 0.997;

struct TeamLoad {
  std::string team;
  size_t index = 0;    // Of the team in the spec.
  double options = 0;  // What its pods would use.
  double rate = 0;     // What they may.
  uint64_t held = 0;
  double Use() const { return options < rate ? options : rate; }
  // As its agent can tell: also when next to nothing of the rate is left.
  bool HeldBack() const { return options > rate * kFull; }

  // As the agent has measured.
  struct Sample {
    absl::Duration at;
    double use = 0;
  };
  std::vector<Sample> samples;
  double last_use = 0;  // At the look before.
  double demand = 0;
  double told = 0;  // The demand that was last reported.
  bool was_held_back = false;
};

// Not thread-safe.
class Agent {
 public:
  Agent(double drift, absl::Duration offset) : drift_(drift), offset_(offset) { Restart(); }

  // The agent's process began anew and has forgotten its grants.
  void Restart();
  // The node's own clock.
  absl::Time Local(absl::Duration elapsed) const;

  void AddTeam(std::string team, size_t index);
  std::vector<TeamLoad>& loads() { return loads_; }
  const std::vector<TeamLoad>& loads() const { return loads_; }
  NodePolicy& policy() { return policy_; }

  // What pods may use from now on. Returns what all could use at most, held by nobody here
  // included.
  uint64_t Refresh(absl::Duration elapsed);
  absl::Duration UntilChange(absl::Duration elapsed) const;
  double use() const { return use_; }

  // Measures. Returns whether to report soon.
  bool Look(const AgentHabits& habits, absl::Duration elapsed);
  // When to look again, after Look(), and after OnGrants(), which may have changed it.
  absl::Duration next_look() const { return next_look_; }
  node_api::BudgetReport Report(absl::Duration elapsed);
  void OnStream();
  // Returns whether to report at once.
  bool OnGrants(const node_api::BudgetGrants& grants, const AgentHabits& habits,
                absl::Duration elapsed);

 private:
  static void Estimate(TeamLoad& load, absl::Duration window, absl::Duration elapsed);

  double drift_;
  absl::Duration offset_;
  NodePolicy policy_;
  std::unique_ptr<GrantHolder> holder_;
  uint64_t reports_ = 0;
  int looks_at_growth_ = 0;  // Still to come, since a grant has grown.
  absl::Duration next_look_;
  std::vector<TeamLoad> loads_;
  std::vector<std::string> here_;
  double use_ = 0;
};

}  // namespace spoke::budget_sim
