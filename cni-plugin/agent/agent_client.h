// Makes one exchange with the agent: a request packet, with the pod's namespace as a descriptor,
// and an answer packet, under a deadline.
#pragma once

#include <string>

#include "cni-plugin/agent/wire.h"
#include "cni-plugin/cni_error.h"

namespace spoke::cni {

// The times to try, in milliseconds; each is within the deadline too.
struct Patience {
  int deadline_ms = 0;  // The time for the whole exchange.
  int absent_ms = 0;    // The time while nobody listens on the socket: the agent may be starting.
  int hung_up_ms = 0;   // The time after the agent has first gone away without an answer.
  // The time beyond the deadline: the agent answers at it, and an answer says more.
  int grace_ms = 0;
};

// The most that a request may have: 5,000 attachments of a GC fit.
inline constexpr size_t kMaxRequestBytes = 1 << 20;

// Returns the milliseconds of CLOCK_MONOTONIC.
int64_t MonotonicMs();

// Asks the agent at `socket`, again under the same `attempt` where it goes away before it answers.
// Sets the request's deadline. `netns` is borrowed; negative: none. An error that the agent answers
// is a response like others.
// Errors: code 11 where it may work later (no agent, or none that answers in time: `message` says
// which and what to do); 100: the answer is none, or the request is too large.
Expected<AgentResponse> Ask(const std::string& socket, Request request, int netns,
                            const Patience& patience);

}  // namespace spoke::cni
