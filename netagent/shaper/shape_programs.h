// The programs that lead packets by way of queues.
#pragma once

#include "netagent/bpf/programs.h"

namespace spoke::netagent {

// By name: at the ingress of the node's end of a pod's link (what comes from the pod), at its
// egress, behind either, and at the root of the queues' devices.
inline constexpr const char* kShapeOut = "spoke_shape_out";
inline constexpr const char* kShapeIn = "spoke_shape_in";
inline constexpr const char* kDivert = "spoke_divert";
inline constexpr const char* kClassify = "spoke_classify";

// kClassify holds all maps.
ProgramSet ShapePrograms();

}  // namespace spoke::netagent
