// An agent that somebody else has taken over: it speaks the protocol, with the certificate of its
// node, and what it says is not so. What it does to its own node is its affair; no other may
// suffer.
#pragma once

#include <optional>

#include "lib/ip/prefix.h"
#include "lib/node_api/messages.h"
#include "tests/sim/schedule.h"

namespace spoke::sim {

// Changes what the agent would say. It speaks of addresses of `range`, whoever has them.
void Twist(node_api::AgentMessage& message, const ip::Prefix& range, Random& random);

// Returns what the agent would not say at all; nullopt: it leaves it at that.
std::optional<node_api::AgentMessage> MakeUp(const ip::Prefix& range, Random& random);

}  // namespace spoke::sim
