// The use that one simulated node makes of the budgets that its policy has, and what it holds of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "proto/spoke/v1/node.pb.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::swarm {

// The budgets. Not thread-safe; its SimNode's. One to three teams of each budget have pods on the
// node, always the same ones for a node's number; what they want changes now and then, and is some
// of 50 times the node's floor, of which 20 would be a fair share of the usual budget.
class SimBudgets {
 public:
  explicit SimBudgets(uint32_t node) : node_(node), random_(node) {}

  // Takes a bundle that fits on the one before.
  void TakePolicy(const v1::PolicyBundle& policy);
  // Begins sequences anew. Grants stay: streams are not away for long.
  void BeginStream() { sequence_ = applied_ = 0; }
  // Takes the grants. Returns what is wrong with them, for people; empty: nothing.
  std::string TakeGrants(const v1::BudgetGrants& grants);
  // Returns the next report; false, and nothing is changed, when the policy has no budget.
  bool FillReport(v1::BudgetReport& out);

 private:
  struct Use {
    std::string team;
    uint64_t demand = 0;
    uint64_t held = 0;
    uint32_t held_connections = 0;
  };
  struct Budget {
    uint64_t floor = 0;
    std::vector<Use> uses;
  };
  static constexpr size_t kMostTeams = 3;

  void TakeBudget(const std::string& name, const v1::BandwidthBudgetPolicy& policy);

  const uint32_t node_;
  std::mt19937_64 random_;
  std::map<std::string, Budget> budgets_;  // The budgets by name.
  uint64_t sequence_ = 0;                  // The sequence of the last report of this stream.
  uint64_t applied_ = 0;                   // The sequence of the last grants.
};

}  // namespace spoke::swarm
