// A breadth-first search through all that can come of some worlds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/search/roots.h"
#include "tests/search/rules.h"

namespace spoke::search {

struct Bounds {
  uint64_t states = 1'000'000;
  absl::Duration time = absl::InfiniteDuration();
  uint32_t depth = 1000;
  bool symmetry = true;  // Worlds that differ only in which node is which are one state.
  Defect defect = Defect::kNone;
  bool stop_at_first = false;  // At the first violation, and not at the first of each kind.
};

// What came of one root.
struct RootFound {
  std::string name;
  uint64_t states = 0;    // Distinct ones that no root before it has led to.
  uint32_t depth = 0;     // All states that so many steps lead to have been found.
  bool complete = false;  // There are no more.
};

struct Violation {
  std::string what;
  std::string root;
  uint32_t depth = 0;
  std::string story;  // A line for each step, and how it ended.
};

struct Found {
  uint64_t states = 0;       // Distinct ones, with what may still happen in them.
  uint64_t worlds = 0;       // Distinct ones, whatever may still happen.
  uint64_t expanded = 0;     // States of which all that can follow was looked at.
  uint64_t transitions = 0;  // Steps that were tried and possible.
  uint64_t overflows = 0;    // States that were not looked into, since a queue was full.
  absl::Duration took;
  std::vector<RootFound> roots;
  std::vector<Violation> violations;  // The first of each kind.
};

// Goes from one root after the other; each has its share of what its predecessors have left of the
// states and of the time.
Found SearchFrom(const std::vector<Root>& roots, const Bounds& bounds);

}  // namespace spoke::search
