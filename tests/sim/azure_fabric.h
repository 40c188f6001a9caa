// Azure in the simulated world: the simulated Resource Manager (tests/azure-sim) for all, and in
// each server the real client's machine.
#pragma once

#include <memory>

#include "lib/ip/prefix.h"
#include "tests/sim/fabric.h"

namespace spoke::sim {

// A scale set in the subnet `pods`, whose faults are drawn here.
std::unique_ptr<Fabric> NewAzureFabric(Basis& basis, const ip::Prefix& pods);

}  // namespace spoke::sim
