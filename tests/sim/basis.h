// What everything in the simulated world shares: time, chance, the story, and the judge of it.
#pragma once

#include <optional>

#include "tests/sim/coverage.h"
#include "tests/sim/invariants.h"
#include "tests/sim/mutants.h"
#include "tests/sim/random.h"
#include "tests/sim/schedule.h"
#include "tests/sim/trace.h"

namespace spoke::sim {

struct Basis {
  Basis(uint64_t seed, std::optional<Mutant> mutant_of, bool print)
      : random(seed), trace(schedule, print), judge(schedule, trace), mutant(mutant_of) {}
  Basis(const Basis&) = delete;
  Basis& operator=(const Basis&) = delete;

  // Whether this one-line defect is switched on.
  bool Has(Mutant one) const { return mutant == one; }
  // Notes that a fault has happened, and tells it.
  void Happened(Fault fault, std::string_view to_whom) {
    coverage.Count(fault);
    trace.Tell(to_whom, "FAULT {}", NameOf(fault));
  }

  Schedule schedule;
  Random random;
  Trace trace;
  Coverage coverage;
  Invariants judge;
  const std::optional<Mutant> mutant;
  // How likely a fault is, against the usual: 0 once faults have ended.
  double faults = 1;
};

}  // namespace spoke::sim
