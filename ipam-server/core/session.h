// What one connected agent has been told, and what it has to be told next. Pure.
#pragma once

#include <cstdint>
#include <set>

#include "absl/time/time.h"
#include "ipam-server/core/agent_messages.h"
#include "ipam-server/core/fleet.h"

namespace spoke::ipam {

using SessionId = uint64_t;

struct Session {
  SessionId id = 0;
  uint64_t desired_version = 0;  // Of the last DesiredState sent; 0: none yet.
  uint64_t acked_version = 0;
  std::set<ip::Address> told;
};

// The next DesiredState for the node behind `session`, which is moved on to it. The first one of a
// session is full; later ones hold the difference.
DesiredState NextDesired(const Fleet& fleet, const NodeRecord& record, absl::Time now,
                         Session& session);

}  // namespace spoke::ipam
