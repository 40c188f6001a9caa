// The way to the server, as the agent's loop sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "netagent/session/server_messages.h"

namespace spoke::netagent {

// Thread-safe; never blocks. What is said while there is no session is dropped: the greeting of the
// next one says everything that still matters.
class ServerLink {
 public:
  virtual ~ServerLink() = default;

  virtual void Report(const AssignmentReport& report) = 0;
  virtual void Acknowledge(uint64_t desired_version) = 0;
  virtual void AcknowledgePolicy(const PolicyAck& ack) = 0;

  // An answer counts only in the session of its request: it is never carried into the next.
  virtual void Answer(const ReclaimAnswer& answer) = 0;
  virtual void Answer(const Inventory& inventory) = 0;
  virtual void Answer(const AttachTracesAnswer& traces) = 0;
  virtual void Answer(const ProbeAnswer& probes) = 0;
  virtual void Answer(const PolicyTrialAnswer& trial) = 0;

  // Who waits for addresses: what was said before, and has not been sent yet, is replaced. The
  // greeting of a session has it too.
  virtual void Ask(const Demand& demand) = 0;

  // What pods have sent and received: what was said before, and has not been sent yet, is replaced.
  virtual void ReportTraffic(const TrafficReport& report) = 0;

  // What pods use of budgets: as ReportTraffic(). Durations of grants count from this call.
  virtual void ReportBudgets(const BudgetReport& report) = 0;

  // Another machine, `other_mac` if known, answers for `address`.
  virtual void ReportConflict(const ip::Address& address,
                              const std::optional<ip::MacAddress>& other_mac) = 0;

  // Says what still waits, ends the session and begins a new one, in which the server says
  // everything again. `why` is for the log.
  virtual void BeginAnew(std::string_view why) = 0;
};

}  // namespace spoke::netagent
