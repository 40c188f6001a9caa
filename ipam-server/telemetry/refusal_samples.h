// Whom the server's ports have refused, as metrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/rpc/peer_gate.h"
#include "lib/rpc/refusal_counter.h"
#include "lib/telemetry/samples.h"

namespace spoke::ipam {

struct ListenerRefusals {
  std::string listener;  // The name in the table of metrics.
  std::shared_ptr<const rpc::RefusalCounter> refusals;
};

// Thread-safe, as the counters are.
std::vector<telemetry::Samples> RefusalSamples(const std::vector<ListenerRefusals>& listeners);

}  // namespace spoke::ipam
