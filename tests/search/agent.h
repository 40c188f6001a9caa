// The agents' side of a step: the real Attachments, made from what a world has of one node, over a
// kernel that never refuses.
#pragma once

#include <cstddef>

#include "tests/search/rules.h"
#include "tests/search/world.h"

namespace spoke::search {

// Each returns false where the step does not apply; then the world may be anything.

// The agent hears the next message of the server.
bool Hear(World& world, size_t node, Defect defect);
// A pod comes, or goes, of that number from 1.
bool AddPod(World& world, size_t node, uint8_t pod, Defect defect);
bool DeletePod(World& world, size_t node, uint8_t pod, Defect defect);
// The DEL of an earlier pod with the same key comes, while there is a pod.
bool DeletePodLate(World& world, size_t node, uint8_t pod, Defect defect);
// The agent looks at its cooldowns.
bool LookAtCooldowns(World& world, size_t node, Defect defect);
bool Connect(World& world, size_t node, Defect defect);
// The agent notices that its stream has ended.
void Disconnect(Node& node);
// The agent ends and begins again.
void Restart(World& world, size_t node, Defect defect);

}  // namespace spoke::search
