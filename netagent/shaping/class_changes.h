// The fewest steps from the classes that a tree has to those it shall have. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

struct ClassChange {
  ShapeClass wanted;
  bool set_class = false;
  bool set_queue = false;

  bool operator==(const ClassChange&) const = default;
};

// The steps, in this order, with the flows in between: no flow names a class that is not there.
struct ClassChanges {
  // The changes to make now; parents before their children.
  std::vector<ClassChange> first;
  // The classes to remove when no flow names them any more; children before their parents.
  std::vector<ShapeClassId> removed;
  // The changes to make then, before flows name them: of what has another place in the tree than it
  // had, for the kernel can move no class; parents before their children.
  std::vector<ClassChange> again;

  // The number of classes and queues that are not as they shall be.
  size_t differences = 0;
};

// Plans the changes; `wanted` is what CheckShapingTables() accepts. A class that is there has the
// queue 0 when it has none of ours. What only the kernel's leaves have (the quantum) is compared
// for those alone.
ClassChanges PlanClassChanges(const std::vector<ShapeClass>& there,
                              const std::vector<ShapeClass>& wanted);

}  // namespace spoke::netagent
