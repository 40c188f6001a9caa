// Machines: they boot, are replaced, and run an agent that dies and comes back.
#include <algorithm>
#include <filesystem>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/sim/world.h"

namespace spoke::sim {

World::Node& World::AddNode(std::string name) {
  const size_t index = nodes_.size();
  nodes_.push_back(std::make_unique<Node>());
  Node& node = *nodes_.back();
  node.random = std::make_unique<Random>(RandomFor(settings_.seed, fmt::format("node {}", index)));
  node.alarm = std::make_unique<Alarm>(schedule_, [this, &node] { GoRound(node); });
  node.machine.index = index;
  node.machine.name = std::move(name);
  node.machine.exists = false;
  node.machine.shares_budget = settings_.budget;
  node.machine.policy_file = fmt::format("{}/policy-{}", directory_, index);
  node.runtime = std::make_unique<Runtime>(Runtime::Edges{
      .machine = node.machine,
      .schedule = schedule_,
      .random = *node.random,
      .trace = trace_,
      .laws = laws_,
      .faults = runtime_faults_,
      .agent = [&node] { return node.agent.get(); },
      .after_call = [this, &node] { Tend(node); },
  });
  Replace(node);
  return node;
}

// The machine begins anew: nothing of what was in its memory is there any more.
void World::Boot(Node& node, bool disk_is_new) {
  Machine& machine = node.machine;
  ++machine.boots;
  machine.exists = true;
  machine.boot_id = fmt::format("{}-boot-{}", machine.vm_id, machine.boots);
  machine.kernel = std::make_unique<netagent::FakeKernel>(netagent::FakeKernel::Identity::kNumber);
  machine.kernel->SetNic({.name = "eth0", .mac = machine.mac, .mtu = 1500, .addresses = {}});
  const double drift = settings_.drift * (2 * node.random->Fraction() - 1);
  const absl::Duration ahead = node.random->Between(-absl::Minutes(5), absl::Minutes(5));
  machine.clock = std::make_unique<MachineClock>(schedule_, ahead, drift);
  machine.booted = machine.clock->Now();
  machine.journal.clear();
  machine.tombstones.clear();
  std::filesystem::remove(machine.policy_file);
  laws_.OnMachine(machine);
  node.runtime->OnBoot(disk_is_new);
  StartAgentLater(node, absl::Milliseconds(500), absl::Seconds(4));
}

// The cloud lists it a little longer.
void World::Delete(Node& node) {
  EndMachine(node);
  node.machine.exists = false;
  node.former.push_back(node.machine.vm_id);
  const absl::Duration wait = node.random->Between(absl::ZeroDuration(), absl::Minutes(1));
  schedule_.After(wait, [this, vm = node.machine.vm_id] { provider_->RemoveVm(vm); });
}

void World::ScaleIn(Node& node, absl::Duration lasts) {
  Delete(node);
  trace_.Count("machine scaled in");
  schedule_.After(lasts, [this, &node] {
    if (!node.machine.exists) Replace(node);
  });
}

// What is announced may be taken back.
void World::Announce(Node& node, absl::Duration lasts, bool is_deleted) {
  const auto say = [&node](bool is_ending) {
    node.machine.is_ending = is_ending;
    if (node.agent) node.agent->SayMaintenance();
  };
  say(true);
  Tend(node);
  trace_.Count("deletion announced");
  schedule_.After(lasts, [this, &node, say, is_deleted, vm = node.machine.vm_id] {
    if (!node.machine.exists || node.machine.vm_id != vm) return;
    if (is_deleted) return ScaleIn(node, absl::Minutes(1));
    say(false);
    Tend(node);
  });
}

// In the end somebody finds out.
void World::Lie(Node& node, absl::Duration lasts) {
  node.machine.lies_about = ip::Prefix::Parse(settings_.pool).value();
  laws_.OnLiar(node.machine);
  trace_.Count("agent that lies");
  schedule_.After(lasts, [this, &node, vm = node.machine.vm_id] {
    if (node.machine.exists && node.machine.vm_id == vm) Replace(node);
  });
}

// The former machine is deleted, if it is still there.
void World::Replace(Node& node) {
  Machine& machine = node.machine;
  machine.lies_about.reset();
  machine.is_ending = false;
  if (machine.exists) {
    Delete(node);
    trace_.Count("machine replaced");
  }
  const Vm vm = provider_->AddVm(machine.name, machine.index, *node.random);
  machine.vm_id = vm.id;
  machine.mac = vm.mac;
  machine.instance = vm.instance;
  if (settings_.azure) machine.subnets = SubnetsOf(settings_);
  machine.token.clear();
  Boot(node);
}

void World::Reboot(Node& node) {
  EndMachine(node);
  trace_.Count("machine booted");
  if (node.random->Chance(0.3)) node.machine.token.clear();
  Boot(node);
}

// The VM gets a new disk, and its NIC may lose the addresses for pods.
void World::Reimage(Node& node) {
  EndMachine(node);
  trace_.Count("machine reimaged");
  node.machine.token.clear();
  provider_->Reimage(node.machine.vm_id);
  Boot(node, /*disk_is_new=*/true);
}

// Somebody has given two machines one name, and deletes one of them after a while.
void World::AddDouble(const Node& node, const PlannedEvent& event) {
  Node& other = AddNode(node.machine.name);
  other.runtime->Start(static_cast<uint64_t>(std::max<int64_t>(1, event.amount)));
  trace_.Say("another machine is {} as well: {}", node.machine.name, other.machine.vm_id);
  trace_.Count("two machines of one name");
  schedule_.After(event.lasts, [this, &other] {
    EndMachine(other);
    other.machine.exists = false;
    provider_->RemoveVm(other.machine.vm_id);
  });
}

void World::EndMachine(Node& node) {
  network_.EndNode(node.machine.index, /*silent=*/true);
  if (node.agent) {
    node.agent->life().Die();
    node.agent.reset();
  }
  laws_.OnMachineDown(node.machine);
}

void World::StartAgentLater(Node& node, absl::Duration least, absl::Duration most) {
  if (std::exchange(node.starting, true)) return;
  schedule_.After(node.random->Between(least, most), [this, &node] {
    node.starting = false;
    StartAgent(node);
  });
}

void World::StartAgent(Node& node) {
  if (node.agent || !node.machine.exists) return;
  std::vector<std::string> servers;
  for (const auto& host : hosts_) servers.push_back(fmt::format("server-{}", host->index));
  ++node.agents;
  node.agent = std::make_unique<Agent>(
      Agent::Settings{.servers = std::move(servers)},
      Agent::Edges{.machine = node.machine,
                   .schedule = schedule_,
                   .network = network_,
                   .trace = trace_,
                   .watcher = laws_,
                   .faults = machine_faults_,
                   .random = *node.random,
                   .dial = [this, &node](size_t server) { Dial(node, server); },
                   .answer =
                       [&node](uint64_t client, const cni::Response& response) {
                         node.runtime->OnAnswer(client, response);
                       }});
  const absl::Status started = node.agent->Start();
  trace_.Say("{} agent starts: {}", node.machine.name, base::MessageOf(started));
  if (!started.ok()) node.agent->life().Die();
  Tend(node);
}

// The agent has done something: its loop goes round once more at once, and then when it is due. One
// that has died is buried. It is not done here, since it may be one of those who call.
void World::Tend(Node& node) {
  if (!node.agent) return;
  node.alarm->Set(schedule_.now());
}

void World::GoRound(Node& node) {
  if (!node.agent) return;
  node.agent->Work();
  if (node.agent->life().dead()) return BuryAgent(node);
  node.alarm->Set(node.machine.clock->When(node.agent->NextWake()));
}

void World::BuryAgent(Node& node) {
  trace_.Say("{} agent is dead", node.machine.name);
  trace_.Count("agent died");
  network_.EndNode(node.machine.index, /*silent=*/false);
  node.agent.reset();
  node.runtime->OnAgentGone();
  StartAgentLater(node, absl::Milliseconds(300), absl::Seconds(5));
}

void World::Dial(Node& node, size_t server) {
  const size_t index = node.machine.index;
  const uint64_t caller = node.agents;
  const absl::Time blocked = network_.BlockedUntil(index, server);
  const bool answers = blocked <= schedule_.now();
  const absl::Duration wait = answers ? 2 * network_.Delay() : absl::Seconds(5);
  schedule_.After(wait, [this, &node, server, answers, caller] {
    if (!node.agent || node.agents != caller) return;
    const Host& host = *hosts_[server];
    absl::Status outcome;
    if (!answers) {
      outcome = absl::DeadlineExceededError("no answer");
    } else if (!host.server || schedule_.now() > host.leads_until) {
      outcome = absl::UnavailableError("connection refused");
    }
    node.agent->Dialled(server, outcome);
    Tend(node);
  });
}

}  // namespace spoke::sim
