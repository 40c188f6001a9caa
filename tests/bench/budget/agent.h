// One node of the simulation: pods of some teams that would like to use so much, and an agent that
// measures and reports as the real one does.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/core/budget/budget_book.h"
#include "tests/bench/budget/lease_holder.h"

namespace spoke::budget_sim {

// What an agent tells at once, not only each refresh.
struct AgentHabits {
  bool tells_less = true;   // It applies a lease that is less than it had.
  bool tells_more = true;   // Its leases have grown, when it has looked what that has changed.
  bool tells_falls = true;  // It needs less than half of what it has.
  size_t window = 2;        // Seconds whose most counts as what it needs; 3 at most.
};

struct TeamLoad {
  std::string team;
  size_t index = 0;  // Of the team in the spec.
  double wish = 0;   // What its pods would use.
  double rate = 0;   // What they may.
  uint64_t held = 0;
  double Use() const { return wish < rate ? wish : rate; }
  bool HeldBack() const { return wish > rate; }

  // As the agent has measured.
  std::array<double, 3> samples{};  // One a second.
  size_t next_sample = 0;
  double demand = 0;
  bool was_held_back = false;
  bool told_fall = false;
};

// Not thread-safe.
class Agent {
 public:
  Agent(double drift, absl::Duration offset) : drift_(drift), offset_(offset) { Restart(); }

  // The agent's process began anew and has forgotten its leases.
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

  // Measures; called each second. Returns whether to report at once.
  bool Look(const AgentHabits& habits);
  ipam::BudgetReport Report(absl::Duration elapsed);
  void OnStream();
  // Returns whether to report at once.
  bool OnLeases(const ipam::BudgetLeases& leases, const AgentHabits& habits,
                absl::Duration elapsed);

 private:
  double drift_;
  absl::Duration offset_;
  NodePolicy policy_;
  std::unique_ptr<LeaseHolder> holder_;
  uint64_t reports_ = 0;
  bool grown_ = false;  // Leases, since the last look.
  std::vector<TeamLoad> loads_;
  std::vector<std::string> here_;
  double use_ = 0;
};

}  // namespace spoke::budget_sim
