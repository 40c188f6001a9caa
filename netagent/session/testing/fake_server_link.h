// A link that keeps what was said, for a test to look at.
#pragma once

#include <string>
#include <vector>

#include "netagent/session/server_link.h"

namespace spoke::netagent {

// Not thread-safe.
class FakeServerLink final : public ServerLink {
 public:
  void Report(const AssignmentReport& report) override { reports.push_back(report); }
  void Acknowledge(uint64_t version) override { acknowledged.push_back(version); }
  void AcknowledgePolicy(const PolicyAck& ack) override { policy_acks.push_back(ack); }
  void Answer(const ReclaimAnswer& answer) override { reclaim_answers.push_back(answer); }
  void Answer(const Inventory& inventory) override { inventories.push_back(inventory); }
  void Answer(const AttachTracesAnswer& traces) override { trace_answers.push_back(traces); }
  void Answer(const ProbeAnswer& probes) override { probe_answers.push_back(probes); }
  void Answer(const PolicyTrialAnswer& trial) override { trial_answers.push_back(trial); }
  void ReportTraffic(const TrafficReport& report) override { traffic_reports.push_back(report); }
  void ReportBudgets(const BudgetReport& report) override { budget_reports.push_back(report); }
  void Ask(const Demand& demand) override { demands.push_back(demand); }
  void ReportConflict(const ip::Address& address,
                      const std::optional<ip::MacAddress>& other_mac) override {
    conflicts.push_back({address, other_mac});
  }
  void BeginAnew(std::string_view why) override { begun_anew.emplace_back(why); }

  std::vector<AssignmentReport> reports;
  std::vector<uint64_t> acknowledged;
  std::vector<PolicyAck> policy_acks;
  std::vector<ReclaimAnswer> reclaim_answers;
  std::vector<Inventory> inventories;
  std::vector<AttachTracesAnswer> trace_answers;
  std::vector<ProbeAnswer> probe_answers;
  std::vector<PolicyTrialAnswer> trial_answers;
  std::vector<TrafficReport> traffic_reports;
  std::vector<BudgetReport> budget_reports;
  std::vector<Demand> demands;
  std::vector<ConflictNoted> conflicts;
  std::vector<std::string> begun_anew;
};

}  // namespace spoke::netagent
