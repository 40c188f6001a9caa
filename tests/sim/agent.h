// One process of the agent: the real session machine, attachments, waiting ADDs and verbs of CNI,
// on a simulated machine and network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lib/telemetry/log.h"
#include "netagent/attach/attachments.h"
#include "netagent/cni/add_service.h"
#include "netagent/cni/cni_handler.h"
#include "netagent/policy/policy_keeper.h"
#include "netagent/session/server_link.h"
#include "netagent/session/session_machine.h"
#include "tests/sim/budget_load.h"
#include "tests/sim/machine.h"
#include "tests/sim/network.h"

namespace spoke::sim {

// A log that nobody reads.
class NoLog final : public telemetry::Log {
 public:
  void Write(telemetry::Level, std::string_view, std::initializer_list<telemetry::Field>) override {
  }
};

// Not thread-safe. Each entry may leave the process dead; its owner looks, and buries it.
class Agent final : public netagent::ServerLink, public netagent::ResponseChannel {
 public:
  struct Settings {
    std::vector<std::string> servers;
    absl::Duration cooldown = absl::Seconds(30);
  };
  struct Edges {
    Machine& machine;
    Schedule& schedule;
    Network& network;
    Trace& trace;
    MachineWatcher& watcher;
    const MachineFaults& faults;
    Random& random;
    // Answers a dial with Dialled(), later.
    std::function<void(size_t server)> dial;
    // Hears what became of a request of the runtime; no response: the plugin lost its agent.
    std::function<void(uint64_t client, const cni::Response& response)> answer;
  };

  // Borrows the edges.
  Agent(Settings settings, const Edges& edges);

  // Restores what the machine's journal says. Errors: what keeps it from serving; it must end.
  absl::Status Start();
  // Does what is due. Call it at NextWake().
  void Work();
  absl::Time NextWake() const;

  void Request(const cni::Request& request, os::UniqueFd netns, uint64_t client);
  // The plugin of `client` waits no longer.
  void HangUp(uint64_t client);
  // What the cloud announces for the machine is another.
  void SayMaintenance();

  void Dialled(size_t server, const absl::Status& outcome);
  void Hear(StreamId stream, v1::ServerMessage message);
  void Ended(StreamId stream, const absl::Status& why);

  Life& life() { return life_; }
  const netagent::Attachments& attachments() const { return *attachments_; }
  const netagent::Policy& policy() const { return policy_->policy(); }
  bool connected() const { return connected_; }

  // --- What its parts say to the server. ---
  void Report(const node_api::AssignmentReport& report) override { Say(report); }
  void Acknowledge(uint64_t version) override { Say(node_api::DesiredAck{version}); }
  // NOLINTNEXTLINE(misc-no-recursion)
  void AcknowledgePolicy(const node_api::PolicyAck& ack) override { Say(ack); }
  void Answer(const node_api::ReclaimAnswer& answer) override { Say(answer); }
  void Answer(const node_api::Inventory& inventory) override { Say(inventory); }
  void Answer(const node_api::AttachTracesAnswer& traces) override { Say(traces); }
  void Answer(const node_api::ProbeAnswer& probes) override { Say(probes); }
  void Answer(const node_api::PolicyTrialAnswer& trial) override { Say(trial); }
  void Answer(const node_api::NodeDataAnswer& data) override { Say(data); }
  void Ask(const node_api::Demand& demand) override { Say(demand); }
  void ReportTraffic(const node_api::TrafficReport& report) override { Say(report); }
  void ReportBudgets(const node_api::BudgetReport& report) override { Say(report); }
  void ReportConflict(const ip::Address& address,
                      const std::optional<ip::MacAddress>& other_mac) override {
    Say(node_api::ConflictReport{address, other_mac});
  }
  void BeginAnew(std::string_view why) override;

  // --- The answers to the runtime. ---
  absl::Status Send(uint64_t client, const cni::Response& response) override;
  void Close(uint64_t client) override;
  void OnHangUp(uint64_t client, std::function<void()> gone) override;

 private:
  using Machinery = netagent::SessionMachine;

  template <typename Message>
  // NOLINTNEXTLINE(misc-no-recursion)
  void Say(const Message& message) {
    CarryOut(session_.Say(message, Now()));
  }
  // The time that the session, the waiting ADDs and the journal measure by.
  absl::Time Now() const { return edges_.machine.clock->Now(); }
  void CarryOut(const Machinery::Effects& effects);
  void Greet();
  void ShareBudget();
  void Write(node_api::AgentMessage message);
  void Apply(const node_api::ServerMessage& message);
  void TakeUpTombstones();

  const Settings settings_;
  const Edges edges_;
  Life life_;
  NoLog log_;
  AgentLinks links_;
  BudgetLoad budget_;
  std::map<uint64_t, std::function<void()>> hang_ups_;  // Outlives those who wait.
  std::unique_ptr<netagent::Attachments> attachments_;
  std::unique_ptr<netagent::AddService> adds_;
  std::unique_ptr<netagent::CniHandler> handler_;
  std::unique_ptr<netagent::PolicyKeeper> policy_;
  Machinery session_;
  std::optional<StreamId> stream_;
  bool connected_ = false;
  absl::Time greet_at_ = absl::InfiniteFuture();
  // The message that is being written, and when that will have been done.
  std::optional<std::pair<absl::Time, StreamId>> writing_;
};

}  // namespace spoke::sim
