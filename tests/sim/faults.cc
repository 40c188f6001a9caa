// What goes wrong, and when.
#include <algorithm>

#include "tests/sim/simulation.h"

namespace spoke::sim {

// Each fault draws from a generator of its own, so that leaving one out changes no other.
void Simulation::NextFault() {
  if (faults_over_) return;
  const uint64_t number = ++last_fault_;
  chance_ = Random(options_.seed * 1'000'003 + number);
  const absl::Duration wait = chance_.Between(absl::ZeroDuration(), 2 * shape_.fault_pace);
  const bool left_out = options_.keep && !options_.keep->contains(number);
  if (!left_out && !nodes_.empty()) {
    basis_.trace.Tell("world", "fault {} is due", number);
    MakeFault();
  }
  basis_.schedule.After(wait, [this] { NextFault(); });
}

void Simulation::MakeFault() {
  switch (chance_.Below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return FaultOfNode();
    case 5:
      return FaultOfMachine();
    case 6:
    case 7:
    case 8:
      return FaultOfServer();
    case 9:
    case 10:
      return FaultOfStore();
    case 11:
    case 12:
    case 13:
      return FaultOfNetwork();
    case 14:
      return FaultOfClock();
    default:
      return RestoreBackup();
  }
}

void Simulation::FaultOfNode() {
  Node& node = *AnyNode();
  AgentProcess* agent = node.agent();
  const std::string& who = node.state().key.vm_id;
  switch (chance_.Below(6)) {
    case 0:
      if (agent == nullptr) return;
      basis_.Happened(Fault::kAgentKilled, who);
      return agent->Kill();
    case 1:
    case 2:
      if (agent == nullptr) return;
      basis_.Happened(Fault::kAgentKilledInAStep, who);
      return agent->DieAtStep(1 + static_cast<int>(chance_.Below(12)));
    case 3:
      if (agent == nullptr) return;
      basis_.Happened(Fault::kAgentPaused, who);
      return agent->PauseFor(chance_.Between(absl::Seconds(1), absl::Seconds(90)));
    case 4:
      return node.runtime().Kill();
    default:
      if (chance_.Chance(0.7) && node.runtime().GiveUpOne()) return;
      node.runtime().TakeLinkAway();
  }
}

void Simulation::FaultOfMachine() {
  Node& node = *AnyNode();
  const uint64_t which = chance_.Below(4);
  if (which < 2) return node.Reboot();
  const NodeKey key = node.state().key;
  const bool replaced = which == 2;
  basis_.Happened(replaced ? Fault::kVmReplaced : Fault::kVmGone, key.vm_id);
  RemoveMachine(key.name);
  // One that is gone for good makes room for another, so that the world does not end.
  const std::string name = replaced ? key.name : "node" + std::to_string(last_vm_ + 1);
  basis_.schedule.After(chance_.Between(absl::Seconds(10), absl::Minutes(3)),
                        [this, name, said = key.vm_id] {
                          AddNode(name);
                          const auto added = nodes_.find(name);
                          if (basis_.Has(Mutant::kReplacedVmIsTheSame) && added != nodes_.end()) {
                            added->second->state().said_vm_id = said;
                          }
                        });
}

void Simulation::RemoveMachine(const std::string& name) {
  auto former = nodes_.extract(name);
  former.mapped()->End();
  fabric_->RemoveMachine(former.mapped()->state().key);
  former_.push_back(std::move(former.mapped()));
}

void Simulation::FaultOfServer() {
  ServerHost& host = *AnyHost();
  ServerProcess* process = host.process();
  if (process == nullptr) return;
  switch (chance_.Below(4)) {
    case 0:
      basis_.Happened(Fault::kServerKilled, host.name());
      return process->Kill();
    case 1:
    case 2:
      if (process->leads()) process->DieAtStep(1 + static_cast<int>(chance_.Below(8)));
      return;
    default:
      basis_.Happened(Fault::kServerPaused, host.name());
      return process->PauseFor(chance_.Between(absl::Milliseconds(500), absl::Seconds(20)));
  }
}

void Simulation::FaultOfStore() {
  ServerHost& host = *AnyHost();
  const absl::Time until =
      basis_.schedule.now() + chance_.Between(absl::Seconds(1), absl::Seconds(30));
  if (chance_.Chance(0.5)) {
    if (ServerProcess* leader = host.leader(); leader != nullptr) leader->FailStoreUntil(until);
    return;
  }
  host.CutFromStoreUntil(until);
}

void Simulation::FaultOfNetwork() {
  switch (chance_.Below(4)) {
    case 0:
      if (network_.BreakOne(false)) basis_.Happened(Fault::kConnectionBroken, "network");
      return;
    case 1:
      if (network_.BreakOne(true)) basis_.Happened(Fault::kConnectionHalfOpen, "network");
      return;
    default: {
      const std::string node = AnyNode()->state().key.name;
      const std::string server = AnyHost()->name();
      basis_.Happened(Fault::kPartition, node);
      network_.Cut(node, server);
      basis_.schedule.After(chance_.Between(absl::Seconds(1), absl::Minutes(3)),
                            [this, node, server] { network_.Join(node, server); });
    }
  }
}

void Simulation::FaultOfClock() {
  const absl::Duration by = chance_.Between(-absl::Hours(1), absl::Hours(1));
  Machine& machine = chance_.Chance(0.5) ? AnyNode()->state().machine : AnyHost()->machine();
  basis_.Happened(Fault::kClockJumped, machine.name());
  machine.SetClock(by);
}

void Simulation::RestoreBackup() {
  if (!backup_ || chance_.Chance(0.6)) {
    KeepBackup();
    return;
  }
  for (const auto& host : servers_) {
    if (chance_.Chance(0.2)) host->Replace();
  }
  Restore();
}

// An operator puts an older copy of the store in the place of the present one.
void Simulation::Restore() {
  basis_.Happened(Fault::kBackupRestored, "operator");
  KeepServersDown(absl::Seconds(2));
  database_.records = backup_->records;
  ++database_.fence;
  database_.leader.clear();
  TellAll(database_, /*replaced=*/true, basis_.judge);
}

void Simulation::KeepServersDown(absl::Duration time) {
  for (const auto& host : servers_) {
    host->HoldUntil(basis_.schedule.now() + time);
    if (ServerProcess* process = host->process(); process != nullptr) process->Kill();
  }
}

void Simulation::EndFaults() {
  faults_over_ = true;
  basis_.faults = 0;
  basis_.trace.Tell("world", "faults end");
  fabric_->EndFaults();
  network_.JoinAll();
  for (const auto& host : servers_) host->CutFromStoreUntil(absl::InfinitePast());
}

}  // namespace spoke::sim
