// Measures the kernel's own time for an attachment: the agent's router against a program that does
// nothing but send the same messages.
#pragma once

#include "absl/status/statusor.h"
#include "tests/bench/cni/modes.h"

namespace spoke::cni_bench {

// Measures "router" and "floor", in turn, in the calling thread's namespace. Errors: what the
// kernel says.
absl::StatusOr<Samples> MeasureFloor(size_t rounds, PodMaker& pods);

}  // namespace spoke::cni_bench
