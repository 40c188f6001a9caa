// The state of the loop as metrics.
#pragma once

#include <map>

#include "absl/time/time.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/loop/mailbox.h"
#include "ipam-server/loop/server_state.h"
#include "ipam-server/session/agent_session.h"
#include "ipam-server/store/store.h"
#include "ipam-server/telemetry/server_metrics.h"

namespace spoke::ipam {

struct LoopState {
  const ServerState& state;
  const std::map<NodeKey, Session>& sessions;
  const Mailbox& mailbox;
  const Store& store;
  bool writable = true;
};

// Sets every gauge, every ten seconds. What is counted over all nodes is counted for some of them
// at a time, so these figures are not of one moment. For the loop's thread.
class StatePublisher {
 public:
  // Publishes, and is to be called in each turn.
  void Step(const LoopState& loop, absl::Time now, ServerMetrics& metrics);

  // Returns whether there are nodes left to count: then the next turn should not wait.
  bool counting() const { return counting_; }

 private:
  bool CountSome(const Fleet& fleet);

  absl::Time begun_ = absl::InfinitePast();
  bool counting_ = false;
  NodeKey counted_;  // The last one; the next step goes on behind it.
  NodeMetrics nodes_;
};

}  // namespace spoke::ipam
