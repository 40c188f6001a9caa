// Owner of everything that shapes: keeps queues as policy, pods, leases and DNS say, reads what
// they count, tells the server what budgets' teams use, and repairs what somebody has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/core/budget_holder.h"
#include "netagent/core/policy_bundle.h"
#include "netagent/core/shaping_meter.h"
#include "netagent/core/shaping_plan.h"
#include "netagent/core/shaping_rules.h"
#include "netagent/core/traffic_class.h"
#include "netagent/core/traffic_pod.h"
#include "netagent/kernel/shaper.h"

namespace spoke::netagent {

// What metrics and people see of it.
struct ShapingState {
  struct Lease {
    LeaseInForce lease;
    TrafficDirection direction = TrafficDirection::kIngress;
    bool shadow = false;
    uint64_t demand = 0;
    uint64_t usage = 0;
  };
  std::string missing;  // Why nothing is shaped; empty: it is, where there is something to.
  std::vector<Lease> leases;
  std::map<std::pair<std::string, TrafficDirection>, ShapingTotals> totals;
  uint64_t repaired = 0;
  size_t flows = 0;
  size_t learned_addresses = 0;
  size_t shared_addresses = 0;  // Learned for two groups, or for a group and the Internet's others.
};

// Not thread-safe; the agent's one loop owns it.
class Shaping {
 public:
  struct Edges {
    Shaper& shaper;
    const os::Clock& clock;
    telemetry::Log& log;
    std::function<void(BudgetReport)> report;  // To the server, when there is a stream.
  };
  explicit Shaping(const Edges& edges);

  // A policy whose limits cannot be resolved is refused, and the one before stays in force. Errors:
  // kInvalidArgument, naming the object. What the kernel refuses is no error of the policy: it is
  // logged, shown in state().missing and tried again.
  absl::Status OnPolicy(const Policy& policy, const ClassMap& classes);

  // The pod's flows are shaped when this returns, as far as they are. Never fails an ADD: an error
  // of the kernel is logged, and tried again.
  void Attach(const TrafficPod& pod);
  void Detach(const std::string& host_link);

  void OnStream();
  void OnLeases(const BudgetLeases& leases);
  // What DNS says now of names of groups: replaces what it said before.
  void OnLearned(std::map<ip::Address, ClassNumber> learned);

  // Reads and replans every kLook while there are flows, reports each budget's refresh (with
  // jitter) and repairs every kRepair. Call after each round of the loop, and at NextWake().
  static constexpr absl::Duration kLook = absl::Seconds(1);
  static constexpr absl::Duration kRepair = absl::Seconds(10);
  void Tick();
  absl::Time NextWake() const;

  const ShapingRules& rules() const { return rules_; }
  ShapingState state() const;
};

}  // namespace spoke::netagent
