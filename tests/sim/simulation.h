// One run of the whole system in one process, on one thread and one clock: servers, a store, a
// cloud, a network, nodes with their agents and runtimes, operators, and faults in all of them.
//
// A seed says everything: how large the world is, which faults come how often, and when. The same
// seed gives the same run, line by line.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ipam-server/audit/audit_snapshot.h"
#include "tests/sim/basis.h"
#include "tests/sim/fabric.h"
#include "tests/sim/network.h"
#include "tests/sim/node.h"
#include "tests/sim/server_host.h"
#include "tests/sim/sim_store.h"

namespace spoke::sim {

// How large a world is, and how it is set.
struct Shape {
  bool azure = false;
  size_t servers = 1;
  size_t nodes = 3;
  size_t most_pods = 6;
  ipam::ServerSettings settings;
  AgentSettings agents;
  absl::Duration pod_pace = absl::Seconds(20);    // Between two changes of a node's pods.
  absl::Duration fault_pace = absl::Seconds(30);  // Between two faults.
};

struct RunOptions {
  uint64_t seed = 1;
  // A script brings about faults, pods and what operators do, in a world of this shape; nullopt:
  // the seed decides it, and all else.
  std::optional<Shape> shape = std::nullopt;
  std::optional<Mutant> mutant = std::nullopt;
  // How long faults come. Afterwards they stop, and all has to become well.
  absl::Duration faults_for = absl::Minutes(40);
  bool print = false;
  // The numbers of the faults that happen; nullopt: all.
  std::optional<std::set<uint64_t>> keep = std::nullopt;
};

// A world for scripts: one server, three nodes.
Shape SmallShape();

struct Outcome {
  std::optional<std::string> violation;
  std::string end_of_story;  // The last lines before it.
  uint64_t trace_hash = 0;
  uint64_t trace_lines = 0;
  uint64_t events = 0;
  absl::Duration node_time;  // The sum over nodes.
  Coverage coverage;
  uint64_t faults = 0;  // The number of the last.
};

Outcome RunSimulation(const RunOptions& options);

class Simulation final : public ServerPorts {
 public:
  explicit Simulation(const RunOptions& options);
  // What was to happen refers to those that it would have happened to.
  ~Simulation() override { basis_.schedule.Clear(); }

  // Lets faults come, then all become well, and judges that.
  Outcome Run();
  // Does the latter half of that.
  Outcome Finish();
  void RunFor(absl::Duration time);

  // --- For scripts. ---

  Node& node(const std::string& name) { return *nodes_.at(name); }
  Network& network() { return network_; }
  // nullptr: nobody leads.
  ServerProcess* Leader();
  void RemoveMachine(const std::string& name);
  void AddNode(const std::string& name);
  void KeepBackup() { backup_ = database_; }
  void Restore();
  void KeepServersDown(absl::Duration time);
  void SetMode(const std::string& node, ipam::NodeMode mode);

  // --- ServerPorts. ---

  bool Listens(const std::string& server) const override;
  void Accept(const std::string& server, const std::shared_ptr<Connection>& connection,
              const std::string& node) override;

 private:
  void MakeServers();

  // --- The world. ---
  Node* AnyNode();
  ServerHost* AnyHost();
  void ChangePods(Node& node);

  // --- Faults (faults.cc). ---
  void NextFault();
  void MakeFault();
  void FaultOfNode();
  void FaultOfMachine();
  void FaultOfServer();
  void FaultOfStore();
  void FaultOfNetwork();
  void FaultOfClock();
  void RestoreBackup();
  void EndFaults();

  // --- Operators (operators.cc). ---
  void NextOperation();
  void Operate(std::string what, std::string key, ServerProcess::Change change);
  void Drain(Node& node);
  void Reserve();
  void PutIntoQuarantine();
  bool MayConfirm(const ipam::ServerState& state) const;
  void LookAfterAlarms();

  // --- The end. ---
  bool Settle();
  std::string WhyNotSettled();
  std::string Compare();
  std::vector<std::string> Audited();

  const RunOptions options_;
  Basis basis_;
  const Shape shape_;
  Network network_;
  const std::unique_ptr<Fabric> fabric_;
  Database database_;
  std::optional<Database> backup_;
  std::vector<std::unique_ptr<ServerHost>> servers_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;  // By name.
  std::vector<std::unique_ptr<Node>> former_;           // Machines that are no more.
  const absl::Time begun_ = basis_.schedule.now();
  uint64_t last_vm_ = 0;
  uint64_t last_operation_ = 0;
  uint64_t last_fault_ = 0;
  Random chance_{0};  // The present fault's.
  bool faults_over_ = false;
};

}  // namespace spoke::sim
