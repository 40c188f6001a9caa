// The way to the server, as the agent's loop sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/node_api/messages.h"

namespace spoke::netagent {

// Thread-safe; never blocks. What is said while there is no session is dropped: the greeting of the
// next one says everything that still matters.
class ServerLink {
 public:
  virtual ~ServerLink() = default;

  // Reports assignments. The session numbers reports, and merges those not sent yet.
  virtual void Report(const node_api::AssignmentReport& report) = 0;
  virtual void Acknowledge(uint64_t desired_version) = 0;
  virtual void AcknowledgePolicy(const node_api::PolicyAck& ack) = 0;

  // Answers a request. The answer counts only in its session: it is never carried into the next.
  virtual void Answer(const node_api::ReclaimAnswer& answer) = 0;
  virtual void Answer(const node_api::Inventory& inventory) = 0;
  virtual void Answer(const node_api::AttachTracesAnswer& traces) = 0;
  virtual void Answer(const node_api::ProbeAnswer& probes) = 0;
  virtual void Answer(const node_api::PolicyTrialAnswer& trial) = 0;
  virtual void Answer(const node_api::NodeDataAnswer& data) = 0;

  // Says who waits for addresses. It replaces what was said before and has not been sent yet. The
  // greeting of a session has it too.
  virtual void Ask(const node_api::Demand& demand) = 0;

  // Says what pods have sent and received, in place of what was said before and not sent yet.
  virtual void ReportTraffic(const node_api::TrafficReport& report) = 0;

  // Says what pods use of budgets, like ReportTraffic(). Durations of grants count from this call.
  virtual void ReportBudgets(const node_api::BudgetReport& report) = 0;

  // Says that another machine, `other_mac` if known, answers for `address`.
  virtual void ReportConflict(const ip::Address& address,
                              const std::optional<ip::MacAddress>& other_mac) = 0;

  // Says what still waits, ends the session and begins a new one, in which the server says
  // everything again. `why` is for the log.
  virtual void BeginAnew(std::string_view why) = 0;
};

}  // namespace spoke::netagent
