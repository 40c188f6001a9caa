// A link that keeps what was said, for a test to look at.
#pragma once

#include <string>
#include <vector>

#include "netagent/session/server_link.h"

namespace spoke::netagent {

// Not thread-safe.
class FakeServerLink final : public ServerLink {
 public:
  void Report(const node_api::AssignmentReport& report) override { reports.push_back(report); }
  void Acknowledge(uint64_t version) override { acknowledged.push_back(version); }
  void AcknowledgePolicy(const node_api::PolicyAck& ack) override { policy_acks.push_back(ack); }
  void Answer(const node_api::ReclaimAnswer& answer) override { reclaim_answers.push_back(answer); }
  void Answer(const node_api::Inventory& inventory) override { inventories.push_back(inventory); }
  void Answer(const node_api::AttachTracesAnswer& traces) override {
    trace_answers.push_back(traces);
  }
  void Answer(const node_api::ProbeAnswer& probes) override { probe_answers.push_back(probes); }
  void Answer(const node_api::PolicyTrialAnswer& trial) override { trial_answers.push_back(trial); }
  void Answer(const node_api::NodeDataAnswer& data) override { data_answers.push_back(data); }
  void ReportTraffic(const node_api::TrafficReport& report) override {
    traffic_reports.push_back(report);
  }
  void ReportBudgets(const node_api::BudgetReport& report) override {
    budget_reports.push_back(report);
  }
  void Ask(const node_api::Demand& demand) override { demands.push_back(demand); }
  void ReportConflict(const ip::Address& address,
                      const std::optional<ip::MacAddress>& other_mac) override {
    conflicts.push_back({address, other_mac});
  }
  void BeginAnew(std::string_view why) override { begun_anew.emplace_back(why); }

  std::vector<node_api::AssignmentReport> reports;
  std::vector<uint64_t> acknowledged;
  std::vector<node_api::PolicyAck> policy_acks;
  std::vector<node_api::ReclaimAnswer> reclaim_answers;
  std::vector<node_api::Inventory> inventories;
  std::vector<node_api::AttachTracesAnswer> trace_answers;
  std::vector<node_api::ProbeAnswer> probe_answers;
  std::vector<node_api::PolicyTrialAnswer> trial_answers;
  std::vector<node_api::NodeDataAnswer> data_answers;
  std::vector<node_api::TrafficReport> traffic_reports;
  std::vector<node_api::BudgetReport> budget_reports;
  std::vector<node_api::Demand> demands;
  std::vector<node_api::ConflictReport> conflicts;
  std::vector<std::string> begun_anew;
};

}  // namespace spoke::netagent
