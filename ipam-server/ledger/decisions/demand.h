// Pods that wait for addresses: what their node gets for them, and what it is told. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/assignments.h"
#include "lib/node_api/desired.h"

namespace spoke::ipam {

// Which pods wait there now. What the node lacks for all of them is assigned in one step; of an
// unknown node it is ignored.
Effects OnDemand(Fleet& fleet, const NodeKey& key, node_api::Demand demand, absl::Time now);

// Counts the pods that have addresses since as served, so that they wait no more.
void ServeWaiting(Fleet& fleet, const NodeKey& key,
                  const std::vector<const node_api::Assignment*>& in_use, absl::Time now);
// Takes what the agents last said for what is so, some time after pods were served: if they still
// say so, others have come.
void ForgetServed(Fleet& fleet, Effects& effects, absl::Time now);

// Returns the waiting pods of all nodes.
uint64_t WaitingPods(const Fleet& fleet);

// How it stands with the change of one node's NIC.
struct CloudStanding {
  std::optional<absl::Time> eta;  // nullopt: nothing is under way, or nothing can be said.
  std::string waits_for;          // What holds it up, in words.
  std::string failure;            // What became of the last attempt, a clause; empty: nothing bad.
  std::optional<absl::Time> retry_at;  // The next try; nullopt: it is being tried now.
};

// Returns how it stands with what the node's pods wait for, for its agent to say. The text holds no
// time that passes, so that it changes only with what it tells.
node_api::Forecast ForecastOf(const Fleet& fleet, const NodeRecord& record,
                              const CloudStanding& cloud, absl::Time now);

}  // namespace spoke::ipam
