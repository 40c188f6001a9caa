// The kind NodeRemedy: what becomes of pods on nodes that are not fit for them. Server-only: agents
// write nothing to Kubernetes. Pure.
#pragma once

#include "ipam-server/nodes/node_remedy.h"
#include "ipam-server/policy/objects/object_set.h"

namespace spoke::ipam {

// Returns the remedies that the set says, which has at most one such object, or the defaults.
NodeRemedies RemediesOf(const ObjectSet& set);

}  // namespace spoke::ipam
