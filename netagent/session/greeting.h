// How the agent begins a session. Pure.
#pragma once

#include <vector>

#include "lib/node_api/messages.h"

namespace spoke::netagent {

// The facts that the server has to know to begin a session.
struct Greeting {
  node_api::Hello hello;
  // Those that are there now: an earlier session's report may have been lost.
  std::vector<node_api::ConflictReport> conflicts = {};
  node_api::Demand demand = {};

  bool operator==(const Greeting&) const = default;
};

}  // namespace spoke::netagent
