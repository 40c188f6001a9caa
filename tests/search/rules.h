// What may happen in a search, and which defect is put in for it to find.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tests/search/world.h"

namespace spoke::search {

// A defect of the harness's own: what it does with what was decided, or lets decide.
enum class Defect : uint8_t {
  kNone,
  kForgetsWithdrawal,  // The agent agrees to give an address up, and does not write that down.
  kDetachesUnasked,    // The server takes it that an agent agrees to what it is asked for.
  kFreesEarly,         // The server frees what is given up before the cloud has taken it off.
  kNoAgentCooldown,    // The agent's cooldowns have no length.
  kNoServerCooldown,   // The server's have none.
  kTrustsMark,         // A server takes a restored store for the newest there is.
  kNamesWithdrawn,     // An inventory names what was given up.
  kOldAnswers,         // Agents carry agreements into the next session, and the server takes them.
  kStoresLess,         // The records of retired nodes are not stored.
  kForgetsBoot,        // An agent takes it that no pod had an address before its machine's boot.
  // None that is put in: after a restore without a mark the leader opens once those have spoken
  // whom its store knows, though others may have addresses.
  kOpensEarly,
};
inline constexpr size_t kDefects = 12;

constexpr std::string_view NameOf(Defect defect) {
  constexpr std::array<std::string_view, kDefects> kNames = {
      "none",        "forgets-withdrawal", "detaches-unasked",
      "frees-early", "no-agent-cooldown",  "no-server-cooldown",
      "trusts-mark", "names-withdrawn",    "old-answers",
      "stores-less", "forgets-boot",       "opens-early"};
  return kNames[static_cast<size_t>(defect)];
}

}  // namespace spoke::search
