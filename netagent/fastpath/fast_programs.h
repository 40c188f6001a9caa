// The programs of the fast path.
#pragma once

#include "netagent/bpf/programs.h"

namespace spoke::netagent {

// The programs' names.
inline constexpr const char* kFromPod = "spoke_from_pod";
inline constexpr const char* kFromWire = "spoke_from_wire";
inline constexpr const char* kLeaving = "spoke_leaving";

// Returns the programs; those that sit at an ingress hold all maps.
ProgramSet FastPrograms();

}  // namespace spoke::netagent
