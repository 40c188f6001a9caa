// The real state of a server, made from a world's, and read back.
#pragma once

#include <set>

#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/recovery.h"
#include "ipam-server/loop/server_state.h"
#include "ipam-server/session/agent_session.h"
#include "tests/search/rules.h"
#include "tests/search/world.h"

namespace spoke::search {

// Which cooldowns a fleet goes on with: those that go on, or, as a server that begins does, each
// whose end is not certain anew.
enum class Loading : uint8_t { kGoesOn, kBegins };

// Returns the fleet of the leader. `changed`: the records that are to be stored anew.
ipam::Fleet FleetOf(const World& world, Defect defect, Loading loading,
                    std::set<ipam::NodeKey>* changed = nullptr);
ipam::Recovery RecoveryOf(const World& world);
ipam::Session SessionOf(const Session& session);

// Writes down what the fleet has now; `only`: of these records, if given. Returns whether others
// have changed too.
bool WriteRecords(const ipam::Fleet& fleet, const std::set<ipam::NodeKey>& only, World& world);
// Writes down what no store has.
void Remember(const ipam::Fleet& fleet, const ipam::Recovery& recovery, World& world);

}  // namespace spoke::search
