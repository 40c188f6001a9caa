// All that can happen in a world, one step at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/search/rules.h"
#include "tests/search/world.h"

namespace spoke::search {

enum class Act : uint8_t {
  kListen,        // The leader hears the next message of an agent.
  kListenAndDie,  // It stores what it decides, and dies before it says so. Another one leads.
  kHear,          // An agent hears the next message of the leader.
  kCarryOut,      // The cloud does what it was asked.
  kHearCloud,     // The leader hears of that.
  kHearCloudAndDie,
  kReview,
  kReviewAndDie,
  kConnect,
  kLook,  // The agent looks at its cooldowns.
  kAddPod,
  kDeletePod,
  kDeletePodLate,  // A DEL of an earlier pod of the same key comes after the next one's ADD.
  kDisconnect,     // The agent notices, or takes it, that its stream has ended.
  kNotice,         // The leader notices that an agent has left.
  kChangeMode,     // An operator drains a node, or ends that.
  kTick,           // Cooldowns end.
  kList,           // The cloud lists the machines that there are.
  kRestartAgent,
  kReboot,
  kReplace,        // The machine is gone, with its pods; another one has its name.
  kRestartLeader,  // It finds its own mark.
  kChangeLeader,
  kBackUp,
  kRestore,           // The store is what it was in the backup; the leader has a newer mark.
  kRestoreElsewhere,  // The same, and the leader has no mark.
};
inline constexpr size_t kActs = 26;

struct Action {
  Act act = Act::kTick;
  uint8_t node = 0;
  uint8_t pod = 0;

  uint16_t Pack() const {
    return static_cast<uint16_t>((static_cast<unsigned>(act) << 4U) | (node * 4U) | pod);
  }
  static Action Unpack(uint16_t packed) {
    return {static_cast<Act>(packed >> 4U), static_cast<uint8_t>((packed >> 2U) & 3U),
            static_cast<uint8_t>(packed & 3U)};
  }
};

struct Outcome {
  World world;
  std::string_view broken;  // As in invariants.h.
};

// Every action that could be thought of.
const std::vector<Action>& AllActions();

// Returns what comes of it, normalised; nullopt: it cannot happen here.
std::optional<Outcome> Apply(const World& before, const Action& action, Defect defect);

// Returns the action in words, before it is done. `names`: what the nodes are called.
std::string Describe(const World& before, const Action& action, std::string_view names);
// Returns what there is in a few lines.
std::string Describe(const World& world, std::string_view names);

}  // namespace spoke::search
