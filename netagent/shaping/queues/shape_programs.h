// The programs that lead packets by way of queues.
#pragma once

#include "netagent/bpf/programs.h"

namespace spoke::netagent {

// The programs' names: at the ingress of the node's end of a pod's link (what comes from the pod),
// at its egress, at the ingress and the egress of a link that leads out of the node, behind any of
// these, and at the root of the queues' devices.
inline constexpr const char* kShapeOut = "spoke_shape_out";
inline constexpr const char* kShapeIn = "spoke_shape_in";
inline constexpr const char* kEntersNode = "spoke_enters_node";
inline constexpr const char* kLeavesNode = "spoke_leaves_node";
inline constexpr const char* kDivert = "spoke_divert";
inline constexpr const char* kClassify = "spoke_classify";

// Returns the programs; kClassify holds all maps.
ProgramSet ShapePrograms();

}  // namespace spoke::netagent
