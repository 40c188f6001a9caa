// Which one-line defect of tests/sim/mutants.txt the programs have in this run. Only the simulation
// is linked with sources that ask.
#pragma once

namespace spoke::sim {

inline int present_mutant = 0;  // 0: none, as users run it.

inline bool Mutant(int number) { return present_mutant == number; }

}  // namespace spoke::sim
