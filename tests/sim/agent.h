// An agent of the simulation: the real session machine, attachments, waiting ADDs, repair and lost
// DELs, as netagent/agent.cc ties them together, on a node, a network and clocks that the world has
// in its hands. It is woken by NextWake() alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cni_api/wire.h"
#include "lib/os/clock.h"
#include "netagent/agent_parts.h"
#include "netagent/attach/attachments.h"
#include "netagent/attach/lost_del_release.h"
#include "netagent/attach/nic_check.h"
#include "netagent/attach/repairer.h"
#include "netagent/cni/add_service.h"
#include "netagent/cni/cni_handler.h"
#include "netagent/session/server_link.h"
#include "netagent/session/session_machine.h"
#include "tests/sim/agent_edges.h"
#include "tests/sim/basis.h"
#include "tests/sim/network.h"
#include "tests/sim/node_state.h"
#include "tests/sim/process.h"

namespace spoke::sim {

// The servers, as a dial finds them.
class ServerPorts {
 public:
  virtual ~ServerPorts() = default;
  // Whether somebody listens for agents there now.
  virtual bool Listens(const std::string& server) const = 0;
  virtual void Accept(const std::string& server, const std::shared_ptr<Connection>& connection,
                      const std::string& node) = 0;
};

struct AgentSettings {
  std::vector<std::string> servers;
  absl::Duration cooldown = absl::Seconds(30);
  absl::Duration longest_wait = absl::Minutes(2);
  absl::Duration lost_del_after = absl::Minutes(1);
};

class AgentProcess final : public Process, public netagent::ServerLink {
 public:
  struct Edges {
    Basis& basis;
    NodeState& node;
    Network& network;
    ServerPorts& servers;
    std::function<void()> on_death;
  };
  AgentProcess(AgentSettings settings, Edges edges);
  ~AgentProcess() override;

  // Restores what the last one left, and begins. It may die of an error, or at a step.
  void Start();
  // The machine has no power any more: nobody hears of it.
  void Vanish();
  bool serves() const { return serves_; }
  // A plugin's request. The descriptor is a copy.
  void Request(const cni::Request& request, os::UniqueFd pod_netns, netagent::Responder responder);
  // Whether it would assign the address, now or after its cooldown.
  bool MayAssign(const ip::Address& address) const;
  const netagent::Assignments& assignments() const { return attachments_.assignments(); }

  // --- ServerLink. ---
  void Report(const node_api::AssignmentReport& report) override { Say(report); }
  void Acknowledge(uint64_t version) override { Say(node_api::DesiredAck{version}); }
  void AcknowledgePolicy(const node_api::PolicyAck& ack) override { Say(ack); }
  void Answer(const node_api::ReclaimAnswer& answer) override;
  void Answer(const node_api::Inventory& inventory) override { Say(inventory); }
  void Answer(const node_api::AttachTracesAnswer& traces) override { Say(traces); }
  void Answer(const node_api::ProbeAnswer& probes) override { Say(probes); }
  void Answer(const node_api::PolicyTrialAnswer& trial) override { Say(trial); }
  void ReportTraffic(const node_api::TrafficReport& report) override { Say(report); }
  void ReportBudgets(const node_api::BudgetReport& report) override { Say(report); }
  void Ask(const node_api::Demand& demand) override { Say(demand); }
  void ReportConflict(const ip::Address& address,
                      const std::optional<ip::MacAddress>& other_mac) override {
    Say(node_api::ConflictReport{address, other_mac});
  }
  void BeginAnew(std::string_view why) override;

 private:
  using Session = netagent::SessionMachine;

  void OnDeath() override;
  void ListParts();
  void TakeUpTombstones();
  bool TakeUpOne(const std::string& name);

  // --- The loop. ---
  void Post(std::function<void()> work);
  void WakeLoop(absl::Duration wait);
  void Turn();
  void SayHello();
  template <typename Message>
  void Take(const Message&) {}
  void Take(const node_api::DesiredState& desired);
  void Take(const node_api::ReclaimRequest& request);
  void Take(const node_api::PolicyUpdate& update);
  void Take(const node_api::InventoryRequest& request) { attachments_.OnInventory(request); }
  void Take(const node_api::EndAssignment& end) { attachments_.OnEndAssignment(end); }
  void Take(const node_api::Forecast& forecast) { adds_.OnForecast(forecast); }

  // --- The session. ---
  template <typename Message>
  void Say(const Message& message) {
    CarryOut(session_.Say(message, Uptime()));
  }
  absl::Time Uptime() const;
  void CarryOut(Session::Effects effects);
  void CarryOut(Session::Effect& effect);
  void Dial(size_t server);
  void Connect(size_t server);
  void Write(const node_api::AgentMessage& message);
  void Receive(const std::string& bytes);
  void OnStreamEnd(const absl::Status& why);
  void WakeSession();

  const AgentSettings settings_;
  const Edges edges_;
  NodeState& node_;
  os::SteadyClock clock_;
  TracedLog log_;
  SimLinks links_;
  netagent::SessionMachine session_;
  netagent::Attachments attachments_;
  netagent::NicCheck nic_check_;
  netagent::Repairer repairer_;
  netagent::LostDelRelease lost_dels_;
  netagent::AddService adds_;
  netagent::CniHandler handler_;
  netagent::AgentParts parts_;

  bool serves_ = false;
  absl::Time tombstones_at_ = absl::InfinitePast();
  std::vector<std::function<void()>> posted_;
  absl::Time turn_at_ = absl::InfiniteFuture();
  uint64_t turn_ = 0;
  absl::Time session_at_ = absl::InfiniteFuture();
  uint64_t session_wake_ = 0;
  std::vector<uint64_t> dials_;  // The number of the last dial of each server.
  uint64_t last_dial_ = 0;
  std::shared_ptr<Connection> connection_;
  uint64_t stream_ = 0;
  std::optional<node_api::ReclaimAnswer> kept_answer_;  // A mutant's.
};

}  // namespace spoke::sim
