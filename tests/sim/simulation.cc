#include "tests/sim/simulation.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "fmt/ranges.h"
#include "ipam-server/audit/audit.h"
#include "tests/sim/azure_fabric.h"
#include "tests/sim/told_fabric.h"

namespace spoke::sim {
namespace {

constexpr absl::Duration kSettling = absl::Minutes(40);

int64_t DrawDrift(Random& random) { return static_cast<int64_t>(random.Below(401)) - 200; }

Shape DrawShape(Random& random) {
  Shape shape;
  shape.azure = random.Chance(0.4);
  shape.servers = random.Chance(0.4) ? 1 : 2 + random.Below(2);
  shape.nodes = 2 + random.Below(4);
  shape.most_pods = 2 + random.Below(8);
  const bool tight = !shape.azure && random.Chance(0.3);
  ipam::ServerSettings& settings = shape.settings;
  settings.pools = {{.name = "default",
                     .cidr = ip::Prefix::Parse(tight ? "10.1.0.0/27" : "10.1.0.0/25").value()}};
  settings.fleet.target = {.min = 1 + static_cast<uint32_t>(random.Below(3)),
                           .batch = 1 + static_cast<uint32_t>(random.Below(3)),
                           .spare = 0.5,
                           .max = 16};
  settings.fleet.cooldown = absl::Seconds(30);
  settings.fleet.cloud_chooses = shape.azure;
  settings.fleet.release = {.idle_time = absl::Seconds(30 + random.Below(60)),
                            .jitter_spread = absl::Seconds(30),
                            .hysteresis = 1 + static_cast<uint32_t>(random.Below(2)),
                            .denial_backoff = absl::Seconds(30)};
  settings.fleet.breaker = {
      .share = 0.1, .floor = 6, .source_floor = 2, .window = absl::Minutes(1)};
  settings.new_store_id = fmt::format("store-{}", random.Below(1'000'000));
  shape.agents.cooldown = absl::Seconds(10 + random.Below(30));
  shape.agents.lost_del_after = absl::Seconds(30 + random.Below(60));
  shape.agents.longest_wait = absl::Seconds(40);
  shape.pod_pace = absl::Seconds(5 + random.Below(40));
  shape.fault_pace = absl::Seconds(5 + random.Below(60));
  for (size_t i = 0; i < shape.servers; ++i) {
    shape.agents.servers.push_back(fmt::format("server{}", i + 1));
  }
  return shape;
}

}  // namespace

Outcome RunSimulation(const RunOptions& options) { return Simulation(options).Run(); }

Shape SmallShape() {
  Random random(0);
  Shape shape = DrawShape(random);
  shape.azure = false;
  shape.servers = 1;
  shape.nodes = 3;
  shape.settings.pools[0].cidr = ip::Prefix::Parse("10.1.0.0/26").value();
  shape.settings.fleet.cloud_chooses = false;
  shape.settings.fleet.target = {.min = 2, .batch = 2, .spare = 0.5, .max = 16};
  shape.settings.fleet.release.idle_time = absl::Seconds(30);
  shape.agents.servers = {"server1"};
  return shape;
}

Simulation::Simulation(const RunOptions& options)
    : options_(options),
      basis_(options.seed, options.mutant, options.print),
      shape_(options.shape ? *options.shape : DrawShape(basis_.random)),
      network_(basis_),
      fabric_(shape_.azure ? NewAzureFabric(basis_, shape_.settings.pools[0].cidr)
                           : std::make_unique<ToldFabric>(basis_)) {
  const ipam::FleetPolicy& policy = shape_.settings.fleet;
  basis_.judge.SetPromises(
      {.agent_cooldown = shape_.agents.cooldown,
       .server_cooldown = shape_.azure ? absl::ZeroDuration() : policy.cooldown,
       .breaker_window = policy.breaker.window,
       .breaker_floor = policy.breaker.floor,
       .breaker_share = policy.breaker.share});
  basis_.judge.SetMayAssign([this](const NodeKey& machine, const ip::Address& address) {
    const auto node = nodes_.find(machine.name);
    if (node == nodes_.end() || node->second->state().key != machine) return false;
    const AgentProcess* agent = node->second->agent();
    return agent != nullptr && agent->MayAssign(address);
  });
  database_.fenced = shape_.servers > 1;
  if (database_.fenced && basis_.random.Chance(0.7)) {
    database_.most_writes = 2 + basis_.random.Below(3);
  }
  MakeServers();
  for (size_t i = 0; i < shape_.nodes; ++i) AddNode(fmt::format("node{}", i + 1));
  basis_.schedule.After(absl::Seconds(15), [this] { LookAfterAlarms(); });
  if (options.shape) {
    // What goes wrong is up to the script.
    basis_.faults = 0;
    return;
  }
  basis_.schedule.After(shape_.fault_pace, [this] { NextFault(); });
  basis_.schedule.After(absl::Seconds(60), [this] { NextOperation(); });
}

void Simulation::MakeServers() {
  ipam::ServerSettings settings = shape_.settings;
  if (basis_.Has(Mutant::kServerCooldownSkipped)) settings.fleet.cooldown = absl::Milliseconds(1);
  const auto has_ended = [this](const std::string& server) {
    const auto host = std::find_if(servers_.begin(), servers_.end(),
                                   [&](const auto& other) { return other->name() == server; });
    return host != servers_.end() && (*host)->has_ended();
  };
  for (const std::string& name : shape_.agents.servers) {
    servers_.push_back(std::make_unique<ServerHost>(
        name, DrawDrift(basis_.random), settings,
        ServerHost::Edges{
            .basis = basis_, .database = database_, .fabric = *fabric_, .has_ended = has_ended}));
  }
}

// --- The world. ---

void Simulation::AddNode(const std::string& name) {
  const auto machine = fabric_->AddMachine(name, ++last_vm_);
  if (!machine) {
    // The cloud has no room for it now.
    basis_.schedule.After(absl::Minutes(1), [this, name] { AddNode(name); });
    return;
  }
  auto node =
      std::make_unique<Node>(*machine, DrawDrift(basis_.random), shape_.agents,
                             Node::Edges{.basis = basis_, .network = network_, .servers = *this});
  Node& added = *node;
  nodes_[name] = std::move(node);
  if (options_.shape) return;
  basis_.schedule.After(basis_.random.Between(absl::Seconds(1), absl::Seconds(20)),
                        [this, &added] { ChangePods(added); });
}

Node* Simulation::AnyNode() {
  if (nodes_.empty()) return nullptr;
  auto node = nodes_.begin();
  std::advance(node, static_cast<int64_t>(chance_.Below(nodes_.size())));
  return node->second.get();
}

ServerHost* Simulation::AnyHost() { return servers_[chance_.Below(servers_.size())].get(); }

ServerProcess* Simulation::Leader() {
  for (const auto& host : servers_) {
    if (ServerProcess* leader = host->leader(); leader != nullptr && !leader->paused()) {
      return leader;
    }
  }
  return nullptr;
}

void Simulation::ChangePods(Node& node) {
  if (node.over() || faults_over_) return;
  Runtime& runtime = node.runtime();
  const bool full = runtime.wanted() >= shape_.most_pods;
  if (!full && basis_.random.Chance(0.05)) {
    basis_.Happened(Fault::kBurst, node.state().key.vm_id);
    while (runtime.wanted() < shape_.most_pods) runtime.StartPod();
  } else if (!full && basis_.random.Chance(0.55)) {
    runtime.StartPod();
  } else {
    runtime.StopPod();
  }
  basis_.schedule.After(basis_.random.Between(absl::ZeroDuration(), 2 * shape_.pod_pace),
                        [this, &node] { ChangePods(node); });
}

bool Simulation::Listens(const std::string& server) const {
  return std::any_of(servers_.begin(), servers_.end(), [&](const auto& host) {
    return host->name() == server && host->leader() != nullptr;
  });
}

void Simulation::Accept(const std::string& server, const std::shared_ptr<Connection>& connection,
                        const std::string& node) {
  for (const auto& host : servers_) {
    if (host->name() != server) continue;
    if (ServerProcess* leader = host->leader(); leader != nullptr) leader->Accept(connection, node);
  }
}

// --- The run. ---

void Simulation::RunFor(absl::Duration time) {
  const absl::Time end = basis_.schedule.now() + time;
  while (!basis_.judge.violation() && basis_.schedule.Step(end)) {
  }
}

Outcome Simulation::Run() {
  RunFor(options_.faults_for);
  return Finish();
}

Outcome Simulation::Finish() {
  EndFaults();
  if (!basis_.judge.violation() && !Settle()) basis_.judge.Broken(8, WhyNotSettled());
  Outcome outcome{
      .violation = basis_.judge.violation(),
      .end_of_story = basis_.trace.End(),
      .trace_hash = basis_.trace.hash(),
      .trace_lines = basis_.trace.lines(),
      .events = basis_.schedule.events(),
      .node_time = (basis_.schedule.now() - begun_) * static_cast<int64_t>(nodes_.size()),
      .coverage = basis_.coverage,
      .faults = last_fault_};
  return outcome;
}

// Waits until all is well, for as long as that may take.
bool Simulation::Settle() {
  const absl::Time end = basis_.schedule.now() + kSettling;
  RunFor(absl::Minutes(3));
  while (!basis_.judge.violation() && basis_.schedule.now() < end) {
    if (WhyNotSettled().empty()) return true;
    RunFor(absl::Minutes(1));
  }
  return false;
}

std::string Simulation::WhyNotSettled() {
  for (const auto& [name, node] : nodes_) {
    if (!node->runtime().Settled()) return name + ": " + node->runtime().Explain();
  }
  if (Leader() == nullptr) return "no server leads";
  if (const std::string difference = Compare(); !difference.empty()) return difference;
  const std::vector<std::string> differences = Audited();
  if (!differences.empty()) return fmt::format("audit: {}", fmt::join(differences, "; "));
  return "";
}

// What the fabric delivers is what the store has, and what the store has is used or available.
std::string Simulation::Compare() {
  std::map<ip::Address, NodeKey> stored;
  for (const auto& [key, record] : basis_.judge.stored()) {
    for (const auto& [base, configuration] : record.configurations) {
      if (configuration.state == ipam::AddressState::kAttached) stored[base] = key;
    }
  }
  for (const auto& [address, machine] : basis_.judge.on_nics()) {
    const auto held = stored.find(address);
    if (held == stored.end() || held->second != machine) {
      return fmt::format("{} is on the NIC of {}, and the store says otherwise", address.ToString(),
                         machine.vm_id);
    }
  }
  for (const auto& [address, key] : stored) {
    if (!basis_.judge.on_nics().contains(address)) {
      return fmt::format("the store has {} on {}, and the fabric has not", address.ToString(),
                         key.vm_id);
    }
  }
  return "";
}

// Runs the server's own audit, with what each answers within ten seconds.
std::vector<std::string> Simulation::Audited() {
  auto snapshot = std::make_shared<ipam::AuditSnapshot>();
  auto now = std::make_shared<absl::Time>();
  ServerProcess* leader = Leader();
  leader->ListCloud([snapshot](const ipam::CloudListing& listing) {
    if (listing.ok()) snapshot->listing = *listing;
  });
  leader->Query([snapshot, now](const ipam::FleetView& view) {
    *now = view.now;
    for (const ipam::PoolEntry& entry : view.fleet.ledger.pools()) snapshot->Add(entry);
    for (const auto& [key, record] : view.fleet.ledger.nodes()) snapshot->Add(record);
  });
  leader->AskInventories([snapshot](const NodeKey& key, node_api::Inventory inventory) {
    snapshot->inventories.insert_or_assign(key, std::move(inventory));
  });
  RunFor(absl::Seconds(10));
  std::vector<std::string> differences;
  if (snapshot->inventories.size() < nodes_.size()) {
    differences.push_back(fmt::format("only {} of {} agents have answered",
                                      snapshot->inventories.size(), nodes_.size()));
  }
  for (const ipam::AuditDifference& difference :
       ipam::Audit(snapshot->Finish(), {}, *now + absl::Minutes(10))) {
    differences.push_back(
        fmt::format("{} {} {}: {}", ipam::NameOf(difference.kind), difference.node.vm_id,
                    difference.address ? difference.address->ToString() : "", difference.cause));
  }
  return differences;
}

}  // namespace spoke::sim
