// The node's side of a budget's grants, as the simulation needs it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/budget/budget_book.h"

namespace spoke::budget_sim {

inline constexpr char kBudget[] = "internet";

// The part of the policy that a node knows of the budget.
struct NodePolicy {
  uint64_t floor = 0;
  absl::Duration hold;
  absl::Duration half_life;
};

struct TeamHold {
  std::string team;
  uint64_t rate = 0;  // The grant, or the part of the floor if that is more.
  uint64_t held = 0;  // The grant alone.
  uint32_t connections = 0;
};

// The holder. Times are the node's. Not thread-safe.
class GrantHolder {
 public:
  virtual ~GrantHolder() = default;
  virtual void OnStream() = 0;
  virtual void OnReportSent(uint64_t sequence, absl::Time now) = 0;
  virtual bool OnGrants(const node_api::BudgetGrants& grants, absl::Time now) = 0;
  virtual uint64_t applied() const = 0;
  // Returns the hold for each team of `here`, and for each other that has a grant.
  virtual std::vector<TeamHold> At(absl::Time now, const NodePolicy& policy,
                                   const std::vector<std::string>& here) const = 0;
  // Returns when At() says something else; InfiniteFuture: never.
  virtual absl::Time NextChange(absl::Time now, const NodePolicy& policy) const = 0;
};

std::unique_ptr<GrantHolder> MakeSimHolder();

}  // namespace spoke::budget_sim
