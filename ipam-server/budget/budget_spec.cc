#include "ipam-server/budget/budget_spec.h"

namespace spoke::ipam {

units::BitRate FloorOfNode(const BudgetSpec& spec) {
  if (spec.floor_nodes == 0 || spec.floor_part <= 0) return {};
  // The floor is rounded down: the floors of all nodes together are never more than their part.
  const double part = static_cast<double>(spec.capacity.count()) * spec.floor_part;
  return units::BitRate(static_cast<uint64_t>(part) / spec.floor_nodes);
}

}  // namespace spoke::ipam
