#include "ipam-server/budget/budget_spec.h"

namespace spoke::ipam {

uint64_t FloorOfNode(const BudgetSpec& spec) {
  if (spec.floor_nodes == 0 || spec.floor_part <= 0) return 0;
  // Rounded down: the floors of all nodes together are never more than their part.
  const double part = static_cast<double>(spec.capacity) * spec.floor_part;
  return static_cast<uint64_t>(part) / spec.floor_nodes;
}

}  // namespace spoke::ipam
