#include "tests/search/actions.h"

#include <algorithm>
#include <utility>

#include "tests/search/agent.h"
#include "tests/search/invariants.h"
#include "tests/search/leader.h"

namespace spoke::search {
namespace {

bool IsOfNode(Act act) {
  switch (act) {
    case Act::kTick:
    case Act::kList:
    case Act::kRestartLeader:
    case Act::kChangeLeader:
    case Act::kBackUp:
    case Act::kRestore:
    case Act::kRestoreElsewhere:
      return false;
    default:
      return true;
  }
}

bool IsOfPod(Act act) {
  return act == Act::kAddPod || act == Act::kDeletePod || act == Act::kDeletePodLate;
}

// What the action uses up, if anything.
std::optional<Rare> CostOf(const World& world, const Action& action) {
  switch (action.act) {
    case Act::kAddPod:
      return Rare::kAdd;
    case Act::kDisconnect:
      // A stream that is over anyway ends for nothing.
      if (world.nodes[action.node].agent.stream == Stream::kDead) return std::nullopt;
      return Rare::kCut;
    case Act::kChangeMode:
      return Rare::kMode;
    case Act::kTick:
      return Rare::kTick;
    case Act::kList:
      return Rare::kListing;
    case Act::kRestartAgent:
      return Rare::kAgentRestart;
    case Act::kReboot:
      return Rare::kReboot;
    case Act::kReplace:
      return Rare::kReplace;
    case Act::kListenAndDie:
    case Act::kHearCloudAndDie:
    case Act::kReviewAndDie:
    case Act::kRestartLeader:
    case Act::kChangeLeader:
      return Rare::kLeaderChange;
    case Act::kBackUp:
      return Rare::kBackup;
    case Act::kRestore:
    case Act::kRestoreElsewhere:
      return Rare::kRestore;
    default:
      return std::nullopt;
  }
}

bool IsFault(Rare rare) {
  return rare != Rare::kAdd && rare != Rare::kMode && rare != Rare::kTick &&
         rare != Rare::kListing && rare != Rare::kBackup;
}

// Returns false where nothing is left of what it costs.
bool Pay(World& world, const Action& action) {
  const std::optional<Rare> cost = CostOf(world, action);
  if (!cost) return true;
  uint8_t& left = world.left[static_cast<size_t>(*cost)];
  if (left == 0) return false;
  --left;
  if (!IsFault(*cost)) return true;
  if (world.faults_left == 0) return false;
  --world.faults_left;
  return true;
}

bool CarryOut(Node& node) {
  if (!node.asked.there || node.answer.there) return false;
  node.answer = std::exchange(node.asked, NicCall());
  node.nic = node.answer.on_nic;
  return true;
}

// What of the stream had not been heard yet is lost.
bool Notice(Node& node) {
  if (node.agent.stream != Stream::kNone || (node.up.size == 0 && !node.session.open)) return false;
  node.session = Session();
  node.up.Clear();
  return true;
}

void EndPods(Node& node) {
  for (uint8_t& pod : node.agent.pods) {
    if (pod != 0) node.ended |= BitOf(pod - 1U);
  }
}

// A boot ends all pods and the journal; what the server has told of its store is on the disk.
bool Reboot(Node& node) {
  if (node.agent.boot == 3) return false;
  EndPods(node);
  node.rebooted = true;
  const Agent before = node.agent;
  Disconnect(node);
  node.agent = {.vm = before.vm,
                .boot = static_cast<uint8_t>(before.boot + 1),
                .epoch = before.epoch,
                .nodes = before.nodes};
  return true;
}

bool Replace(Node& node) {
  if (node.agent.vm + 1U >= kVms) return false;
  EndPods(node);
  node.rebooted = false;
  Disconnect(node);
  node.agent = {.vm = static_cast<uint8_t>(node.agent.vm + 1)};
  node.nic = 0;
  node.asked = NicCall();
  return true;
}

bool BackUp(World& world) {
  world.has_backup = true;
  world.backup = world.store;
  for (Node& node : world.nodes) node.saved = node.stored;
  return true;
}

bool Restore(World& world, Mark mark, Defect defect) {
  if (!world.has_backup) return false;
  const uint8_t newer = world.store.epoch;
  const uint8_t nodes = NodesWithAddresses(world);
  world.store = world.backup;
  world.has_backup = false;
  for (Node& node : world.nodes) node.stored = std::exchange(node.saved, {});
  world.restored = true;
  Begin(world, mark, defect, newer, nodes);
  return true;
}

bool Lead(World& world, Mark mark, Defect defect) {
  Begin(world, mark, defect);
  return true;
}

template <typename Decide>
bool AndDie(World& world, const Decide& decide, Defect defect) {
  return decide(Ending::kDies) && Lead(world, Mark::kOfOther, defect);
}

bool Do(World& world, const Action& action, Defect defect) {
  const size_t number = action.node;
  Node& node = world.nodes[number];
  const auto with = [&](auto decide) {
    return [&world, decide, number, defect](Ending ending) {
      return decide(world, Step{.node = number, .defect = defect, .ending = ending});
    };
  };
  switch (action.act) {
    case Act::kListen:
      return with(Listen)(Ending::kGoesOn);
    case Act::kListenAndDie:
      return AndDie(world, with(Listen), defect);
    case Act::kHear:
      return Hear(world, number, defect);
    case Act::kCarryOut:
      return CarryOut(node);
    case Act::kHearCloud:
      return with(HearCloud)(Ending::kGoesOn);
    case Act::kHearCloudAndDie:
      return AndDie(world, with(HearCloud), defect);
    case Act::kReview:
      return with(Review)(Ending::kGoesOn);
    case Act::kReviewAndDie:
      return AndDie(world, with(Review), defect);
    case Act::kConnect:
      return Connect(world, number, defect);
    case Act::kLook:
      return LookAtCooldowns(world, number, defect);
    case Act::kAddPod:
      return AddPod(world, number, action.pod, defect);
    case Act::kDeletePod:
      return DeletePod(world, number, action.pod, defect);
    case Act::kDeletePodLate:
      return DeletePodLate(world, number, action.pod, defect);
    case Act::kDisconnect:
      if (node.agent.stream == Stream::kNone) return false;
      Disconnect(node);
      return true;
    case Act::kNotice:
      return Notice(node);
    case Act::kChangeMode:
      return with(ChangeMode)(Ending::kGoesOn);
    case Act::kTick:
      return with(PassTime)(Ending::kGoesOn);
    case Act::kList:
      return with(ListMachines)(Ending::kGoesOn);
    case Act::kRestartAgent:
      Restart(world, number, defect);
      return true;
    case Act::kReboot:
      return Reboot(node);
    case Act::kReplace:
      return Replace(node);
    case Act::kRestartLeader:
      // One that has not opened has left no mark of this store yet.
      return world.phase == Phase::kOpen && Lead(world, Mark::kOwn, defect);
    case Act::kChangeLeader:
      return Lead(world, Mark::kOfOther, defect);
    case Act::kBackUp:
      return BackUp(world);
    case Act::kRestore:
      return Restore(world, Mark::kNewer, defect);
    case Act::kRestoreElsewhere:
      return Restore(world, Mark::kOfOther, defect);
  }
  return false;
}

}  // namespace

const std::vector<Action>& AllActions() {
  static const std::vector<Action> actions = [] {
    std::vector<Action> all;
    for (size_t act = 0; act < kActs; ++act) {
      const Act kind = static_cast<Act>(act);
      for (uint8_t node = 0; node < (IsOfNode(kind) ? kNodes : 1); ++node) {
        if (!IsOfPod(kind)) {
          all.push_back({kind, node, 0});
          continue;
        }
        for (uint8_t pod = 1; pod <= kPods; ++pod) all.push_back({kind, node, pod});
      }
    }
    return all;
  }();
  return actions;
}

std::optional<Outcome> Apply(const World& before, const Action& action, Defect defect) {
  std::optional<Outcome> outcome(Outcome{before, ""});
  World& world = outcome->world;
  world.overflow = false;
  world.unstored = false;
  if (!Pay(world, action) || !Do(world, action, defect)) return std::nullopt;
  outcome->broken = CheckWorld(world);
  if (outcome->broken.empty() && action.act == Act::kAddPod) {
    outcome->broken = CheckNewPod(before, world, action.node, action.pod);
  }
  Normalise(world);
  return outcome;
}

}  // namespace spoke::search
