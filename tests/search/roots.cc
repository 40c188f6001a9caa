#include "tests/search/roots.h"

#include <array>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "tests/search/actions.h"

namespace spoke::search {
namespace {

void AllowAll(World& world) {
  world.left.fill(7);
  world.faults_left = 7;
}

void Do(World& world, Act act, uint8_t node = 0, uint8_t pod = 0) {
  AllowAll(world);
  auto outcome = Apply(world, {act, node, pod}, Defect::kNone);
  CHECK(outcome && outcome->broken.empty() && !outcome->world.overflow,
        "the way to a root is clear");
  world = outcome->world;
}

// All that is on its way arrives, and all that is due is done, until nothing is.
void Settle(World& world) {
  constexpr std::array<Act, 6> kQuiet = {Act::kListen,    Act::kHear,   Act::kCarryOut,
                                         Act::kHearCloud, Act::kReview, Act::kLook};
  AllowAll(world);
  for (bool moved = true; moved;) {
    moved = false;
    for (const Act act : kQuiet) {
      for (uint8_t node = 0; node < kNodes; ++node) {
        const auto outcome = Apply(world, {act, node, 0}, Defect::kNone);
        if (!outcome || outcome->world == world) continue;
        CHECK(outcome->broken.empty(), "the way to a root is clear");
        world = outcome->world;
        moved = true;
      }
    }
  }
}

World Connected(size_t nodes) {
  World world;
  Normalise(world);
  for (uint8_t node = 0; node < nodes; ++node) Do(world, Act::kConnect, node);
  Settle(world);
  return world;
}

// Where one node's only address was given up since the backup was made, and another has it.
// `cut_off`: the node has not heard that it has it no more.
World MovedSince(bool cut_off) {
  World world = Connected(3);
  Do(world, Act::kBackUp);
  Do(world, Act::kChangeMode, 0);
  if (cut_off) {
    Do(world, Act::kHear, 0);
    Do(world, Act::kListen, 0);
    Do(world, Act::kDisconnect, 0);
    Do(world, Act::kNotice, 0);
  }
  Settle(world);
  Do(world, Act::kTick);
  Settle(world);
  Do(world, Act::kAddPod, 1, 1);
  Settle(world);
  return world;
}

World Drained() {
  World world = Connected(3);
  Do(world, Act::kAddPod, 1, 1);
  Do(world, Act::kChangeMode, 0);
  return world;
}

World Replaced() {
  World world = Connected(3);
  Do(world, Act::kAddPod, 0, 1);
  Do(world, Act::kAddPod, 1, 1);
  Settle(world);
  Do(world, Act::kReplace, 0);
  return world;
}

World CameSince() {
  World world = Connected(2);
  Do(world, Act::kBackUp);
  Do(world, Act::kConnect, 2);
  Settle(world);
  return world;
}

}  // namespace

void Allow(World& world, uint8_t faults, const std::vector<Share>& shares) {
  world.left = {};
  world.faults_left = faults;
  for (const Share& share : shares) world.left[static_cast<size_t>(share.rare)] = share.times;
}

World WorldOf(Start start) {
  switch (start) {
    case Start::kNothing:
      return Connected(0);
    case Start::kSettled:
      return Connected(3);
    case Start::kDrained:
      return Drained();
    case Start::kReplaced:
      return Replaced();
    case Start::kCameSince:
      return CameSince();
    case Start::kMovedSince:
      return MovedSince(false);
    case Start::kMovedCutOff:
      return MovedSince(true);
  }
  return {};
}

std::vector<Root> AllRoots() {
  using enum Rare;
  std::vector<Root> roots;
  const auto add = [&](Start start, uint8_t faults, const std::vector<Share>& shares) {
    Root root{.name = std::string(NameOf(start)), .world = WorldOf(start)};
    for (const Share& share : shares)
      root.name += fmt::format(", {} {}", NameOf(share.rare), share.times);
    Allow(root.world, faults, shares);
    roots.push_back(std::move(root));
  };
  add(Start::kCameSince, 1, {{kRestore, 1}});
  add(Start::kMovedSince, 1, {{kRestore, 1}});
  add(Start::kMovedCutOff, 1, {{kRestore, 1}});
  add(Start::kCameSince, 1, {{kAdd, 1}, {kRestore, 1}});
  add(Start::kMovedSince, 1, {{kAdd, 1}, {kRestore, 1}});
  add(Start::kNothing, 1, {{kAdd, 1}, {kCut, 1}, {kLeaderChange, 1}});
  add(Start::kDrained, 1, {{kAdd, 1}, {kTick, 1}, {kLeaderChange, 1}});
  add(Start::kDrained, 1, {{kAdd, 1}, {kMode, 1}, {kCut, 1}});
  add(Start::kDrained, 1, {{kAdd, 1}, {kTick, 1}, {kAgentRestart, 1}, {kReboot, 1}});
  add(Start::kReplaced, 1, {{kAdd, 1}, {kTick, 1}, {kListing, 2}, {kLeaderChange, 1}});
  add(Start::kCameSince, 2, {{kAdd, 1}, {kRestore, 1}, {kReboot, 1}, {kLeaderChange, 1}});
  add(Start::kMovedSince, 2, {{kAdd, 1}, {kRestore, 1}, {kTick, 1}, {kLeaderChange, 1}});
  add(Start::kMovedCutOff, 1, {{kAdd, 1}, {kRestore, 1}, {kTick, 1}});
  add(Start::kSettled, 2, {{kAdd, 1}, {kMode, 2}, {kLeaderChange, 2}, {kCut, 1}});
  add(Start::kSettled, 2, {{kAdd, 2}, {kMode, 1}, {kTick, 1}, {kReboot, 1}, {kAgentRestart, 1}});
  add(Start::kSettled, 2,
      {{kAdd, 2},
       {kCut, 1},
       {kAgentRestart, 1},
       {kReboot, 1},
       {kReplace, 1},
       {kMode, 2},
       {kTick, 2},
       {kLeaderChange, 1},
       {kListing, 2},
       {kBackup, 1},
       {kRestore, 1}});
  return roots;
}

}  // namespace spoke::search
