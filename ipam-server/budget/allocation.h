// Who gets what of one budget: weighted max-min over teams, then, within a team, over nodes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ipam-server/budget/budget_spec.h"

namespace spoke::ipam {

// Demands of all nodes for one team: bits a second as floats, which are precise to one in ten
// million. Dense and bare, since the whole of it is passed over for each allocation.
struct TeamDemands {
  std::vector<float> by_node;
};

struct TeamAllocation {
  units::FractionalBitRate share;  // The team's share.
  // No node of the team gets more than this; those that want less get what they want.
  units::FractionalBitRate level;
};

// `pool` is what may be granted now. A team's weight, min and max are those of `spec.teams`, in the
// same order as `demands`. Without `spec.borrow` nobody gets more than its weighted part of the
// pool (or its min, where that is more). Σ over teams and nodes of min(demand, level) <= pool.
std::vector<TeamAllocation> Allocate(const BudgetSpec& spec, units::FractionalBitRate pool,
                                     std::span<const TeamDemands> demands);

// The most that each team can get of `pool`, in the order of `spec.teams`; infinity: no such bound.
std::vector<units::FractionalBitRate> TeamBounds(const BudgetSpec& spec,
                                                 units::FractionalBitRate pool);

// The level at which Σ min(demand, level) is `share`, or the highest demand when all fit.
units::FractionalBitRate NodeLevel(units::FractionalBitRate share,
                                   const std::vector<float>& demands);

}  // namespace spoke::ipam
