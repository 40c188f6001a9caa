// Steps that all modes take: waiting for the whole swarm, and saying how far it is.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "tests/bench/swarm/measures.h"
#include "tests/bench/swarm/modes.h"
#include "tests/bench/swarm/swarm.h"

namespace spoke::swarm {

// Prints an event on standard output, one a line.
void Print(const Json& event);

// Looks until `done`, and says on standard error how far it is: once a second, later every ten.
// Errors: kDeadlineExceeded; kDataLoss as soon as the server has done wrong, unless the plan has
// faults counted.
absl::Status Await(const Swarm& swarm, const Plan& plan, std::string_view what,
                   const std::function<bool()>& done);

// Waits until all have their addresses.
absl::Status AwaitSynced(const Swarm& swarm, const Plan& plan, std::string_view what);

// Waits until nothing waits to be said or acknowledged.
absl::Status AwaitSettled(Swarm& swarm, const Plan& plan, std::string_view what);

// Assigns what the plan wants assigned first. The first nodes take one more when it does not come
// out even. Errors, besides: kFailedPrecondition (a node has too few addresses).
absl::Status Assign(Swarm& swarm, const Plan& plan);

}  // namespace spoke::swarm
