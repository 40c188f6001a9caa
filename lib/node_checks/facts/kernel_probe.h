// Which features that Spoke asks of the kernel it has: found out by doing it, since versions and
// build options differ.
#pragma once

#include <map>

#include "lib/node_checks/facts/facts.h"

namespace spoke::node_checks {

// Tries every feature, in a network namespace that exists for that alone and goes with everything
// in it: nothing of the node's is touched, and nothing stays. Trying loads the kernel's modules.
// Takes some milliseconds. Where the caller may not make a namespace (CAP_SYS_ADMIN) every answer
// is kUnknown. Thread-safe; the calling thread stays where it is.
std::map<KernelFeature, FeatureState> ProbeKernel();

}  // namespace spoke::node_checks
