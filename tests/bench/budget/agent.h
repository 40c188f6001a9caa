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

// The things that an agent tells at once, not only each refresh.
struct AgentHabits {
  bool tells_first = true;  // Whether it tells of the first grants of a stream.
  bool tells_less = true;   // Whether it tells of a grant that is less than it had.
  // Whether it tells that a grant has grown, once it has looked what that has changed.
  bool tells_more = true;
  bool tells_falls = true;  // Whether it tells that it needs much less than it has.
  absl::Duration window = absl::Seconds(2);  // The time whose highest use counts as what it needs.
};

// The habits of an agent that tells at once only what is held back, and remembers a peak for
// longer.
inline constexpr AgentHabits kQuietHabits{.tells_first = false,
                                          .tells_less = false,
                                          .tells_more = false,
                                          .tells_falls = false,
                                          .window = absl::Seconds(3)};

// The part of a rate from which on it counts as full, as in netagent/shaping/shaping_meter.cc.
inline constexpr double kFull = 0.997;

struct TeamLoad {
  std::string team;
  size_t index = 0;    // The index of the team in the spec.
  double options = 0;  // The rate that its pods would use.
  double rate = 0;     // The rate that they may use.
  uint64_t held = 0;
  double Use() const { return options < rate ? options : rate; }
  // Returns whether pods are held back, as the agent can tell: also when next to nothing of the
  // rate is left.
  bool HeldBack() const { return options > rate * kFull; }

  // The values that the agent has measured.
  struct Sample {
    absl::Duration at;
    double use = 0;
  };
  std::vector<Sample> samples;
  double last_use = 0;  // The use at the look before.
  double demand = 0;
  double told = 0;  // The demand that was last reported.
  bool was_held_back = false;
};

// The agent. Not thread-safe.
class Agent {
 public:
  Agent(double drift, absl::Duration offset) : drift_(drift), offset_(offset) { Restart(); }

  // Begins the agent's process anew, which has forgotten its grants.
  void Restart();
  // Returns the node's own clock.
  absl::Time Local(absl::Duration elapsed) const;

  void AddTeam(std::string team, size_t index);
  std::vector<TeamLoad>& loads() { return loads_; }
  const std::vector<TeamLoad>& loads() const { return loads_; }
  NodePolicy& policy() { return policy_; }

  // Sets what pods may use from now on. Returns what all could use at most, including those with no
  // grant here.
  uint64_t Refresh(absl::Duration elapsed);
  absl::Duration UntilChange(absl::Duration elapsed) const;
  double use() const { return use_; }

  // Measures. Returns whether to report soon.
  bool Look(const AgentHabits& habits, absl::Duration elapsed);
  // Returns when to look again, after Look(), and after OnGrants(), which may have changed it.
  absl::Duration next_look() const { return next_look_; }
  node_api::BudgetReport Report(absl::Duration elapsed);
  void OnStream();
  // Takes grants. Returns whether to report at once.
  bool OnGrants(const node_api::BudgetGrants& grants, const AgentHabits& habits,
                absl::Duration elapsed);

 private:
  static void Estimate(TeamLoad& load, absl::Duration window, absl::Duration elapsed);

  double drift_;
  absl::Duration offset_;
  NodePolicy policy_;
  std::unique_ptr<GrantHolder> holder_;
  uint64_t reports_ = 0;
  int looks_at_growth_ = 0;  // The looks still to come, since a grant has grown.
  absl::Duration next_look_;
  std::vector<TeamLoad> loads_;
  std::vector<std::string> here_;
  double use_ = 0;
};

}  // namespace spoke::budget_sim
