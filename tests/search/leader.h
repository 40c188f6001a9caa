// The server's side of a step: the real fleet and its decisions, made from what a world has of
// store and memory. What follows from a decision is carried out as ipam-server/loop does it.
#pragma once

#include <cstddef>

#include "tests/search/rules.h"
#include "tests/search/world.h"

namespace spoke::search {

// How a server's step ends.
enum class Ending : uint8_t {
  kGoesOn,
  kDies,  // It has stored what it decided, and dies before it has said or done anything of it.
};

struct Step {
  size_t node = 0;
  Defect defect = Defect::kNone;
  Ending ending = Ending::kGoesOn;
};

// Each returns false where the step does not apply; then the world may be anything. After a step
// with kDies a next server has to begin: see Begin().

// The leader hears the next message of an agent.
bool Listen(World& world, const Step& step);
// The leader hears what the cloud has done.
bool HearCloud(World& world, const Step& step);
bool Review(World& world, const Step& step);
// An operator drains the node, or ends that.
bool ChangeMode(World& world, const Step& step);
bool ListMachines(World& world, const Step& step);
// Time passes for the leader, and its store: see World.
bool PassTime(World& world, const Step& step);

// What a server finds beside its store when it begins.
enum class Mark : uint8_t {
  kOwn,      // What it wrote itself, in this boot of the machine.
  kOfOther,  // Nothing that it can go by: it has moved, or another one has led.
  kNewer,    // What it wrote itself, after the backup was made.
};
// Another server leads, or the same one anew, with what the store says. The epoch of `kNewer` is
// `newer`, when so many `nodes` had addresses.
void Begin(World& world, Mark mark, Defect defect, uint8_t newer = 0, uint8_t nodes = 0);
// How many nodes have addresses by the store.
uint8_t NodesWithAddresses(const World& world);

}  // namespace spoke::search
