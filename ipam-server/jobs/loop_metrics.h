// The state of the loop as metrics.
#pragma once

#include <map>

#include "ipam-server/core/node_record.h"
#include "ipam-server/core/session.h"
#include "ipam-server/jobs/mailbox.h"
#include "ipam-server/jobs/server_state.h"
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

// Sets every gauge. Looks at all nodes: some milliseconds at 7,500. For the loop's thread.
void PublishState(const LoopState& loop, absl::Time now, ServerMetrics& metrics);

}  // namespace spoke::ipam
