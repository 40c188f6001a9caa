// A node: the machine with its kernel and files, its runtime, and its agent, which is started again
// whenever it has ended.
#pragma once

#include <memory>
#include <string>

#include "tests/sim/agent.h"
#include "tests/sim/node_state.h"
#include "tests/sim/runtime.h"

namespace spoke::sim {

class Node {
 public:
  struct Edges {
    Basis& basis;
    Network& network;
    ServerPorts& servers;
  };
  Node(const CloudMachine& machine, int64_t drift, const AgentSettings& settings, Edges edges)
      : edges_(edges),
        settings_(settings),
        state_(edges.basis.schedule, machine, drift),
        runtime_({.basis = edges.basis, .node = state_, .agent = [this] { return agent(); }}) {
    StartAgentIn(absl::ZeroDuration());
  }

  NodeState& state() { return state_; }
  Runtime& runtime() { return runtime_; }
  // The agent that listens; nullptr: none does.
  AgentProcess* agent() {
    return agent_ != nullptr && agent_->alive() && agent_->serves() ? agent_.get() : nullptr;
  }

  // The machine loses its power, and boots again.
  void Reboot() {
    edges_.basis.Happened(Fault::kNodeRebooted, state_.key.vm_id);
    LosePods();
    PowerOff();
    runtime_.Reboot();
    state_.machine.CountBoot();
    state_.Boot();
    StartAgentIn(edges_.basis.random.Between(absl::Seconds(3), absl::Seconds(20)));
  }
  // The machine is no more.
  void End() {
    over_ = true;
    PowerOff();
    runtime_.End();
  }
  bool over() const { return over_; }

 private:
  void LosePods() {
    for (const auto& [path, netns] : state_.namespaces) {
      const std::string link = state_.kernel->HostLinkIn(netns.descriptor->get());
      const auto attached = state_.kernel->Attached(link);
      if (!attached) continue;
      for (const ip::Address& address : attached->addresses) {
        edges_.basis.judge.PodLoses(state_.key, link, address);
      }
    }
  }
  void PowerOff() {
    ++starts_;
    if (agent_ == nullptr) return;
    agent_->Vanish();
    agent_->Kill();
    // The runtime hears no more of it.
    agent_.reset();
    ++starts_;
  }
  // Its objects are destroyed in an event of their own: the death may be in the middle of a call.
  void OnAgentDeath() {
    const uint64_t start = ++starts_;
    edges_.basis.schedule.After(absl::ZeroDuration(), [this, start] {
      if (start != starts_) return;
      agent_.reset();
      StartAgentIn(edges_.basis.random.Between(absl::Milliseconds(100), absl::Seconds(8)));
    });
  }
  void StartAgentIn(absl::Duration wait) {
    edges_.basis.schedule.After(wait, [this, start = ++starts_] {
      if (start != starts_ || over_) return;
      agent_ = std::make_unique<AgentProcess>(
          settings_, AgentProcess::Edges{.basis = edges_.basis,
                                         .node = state_,
                                         .network = edges_.network,
                                         .servers = edges_.servers,
                                         .on_death = [this] { OnAgentDeath(); }});
      AgentProcess* agent = agent_.get();
      agent->Enter([agent] { agent->Start(); });
    });
  }

  const Edges edges_;
  const AgentSettings settings_;
  NodeState state_;
  Runtime runtime_;
  std::unique_ptr<AgentProcess> agent_;
  uint64_t starts_ = 0;  // Rises with each start that is planned, and each that is off.
  bool over_ = false;
};

}  // namespace spoke::sim
