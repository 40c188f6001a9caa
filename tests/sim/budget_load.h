// One budget of bandwidth that all machines share: what servers and agents know of it, what the
// pods of a machine would use of it, and what its agent lets them, by the grants that it holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/budget/budget_spec.h"
#include "lib/node_api/budgets.h"
#include "netagent/shaping/budget_holder.h"

namespace spoke::sim {

ipam::BudgetSpec SharedBudget();

// One process of an agent, as far as the budget goes: the real holder of grants, and reports as
// often as the budget says. It measures nothing: what pods would use is a function of the machine
// and the time. Not thread-safe.
class BudgetLoad {
 public:
  // `machine`: its index.
  explicit BudgetLoad(size_t machine);

  void OnStream(absl::Time now);
  void OnStreamEnd() { streaming_ = false; }
  void OnGrants(const node_api::BudgetGrants& grants, absl::Time now);
  // Returns the report that is due, if one is.
  std::optional<node_api::BudgetReport> TakeReport(absl::Time now);
  // Returns what pods here may use.
  units::BitRate RateAt(absl::Time now) const;
  // When the rate changes by itself, or a report is due.
  absl::Time NextWake(absl::Time now) const;

 private:
  units::BitRate DemandAt(absl::Time now) const;

  const size_t machine_;
  const std::vector<netagent::ResolvedBudget> budgets_;
  const std::vector<std::pair<std::string, std::string>> here_;
  netagent::BudgetHolder holder_;
  uint64_t sequence_ = 0;
  bool streaming_ = false;
  absl::Time next_report_ = absl::InfiniteFuture();
};

}  // namespace spoke::sim
