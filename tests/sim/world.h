// A fleet on one clock: machines with their runtimes and agents, servers of which one leads, the
// store, the cloud and the network between them, and the events of a plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/agent.h"
#include "tests/sim/cloud/fabric.h"
#include "tests/sim/cloud/provider.h"
#include "tests/sim/laws.h"
#include "tests/sim/machine.h"
#include "tests/sim/network.h"
#include "tests/sim/plan.h"
#include "tests/sim/runtime.h"
#include "tests/sim/schedule.h"
#include "tests/sim/server.h"
#include "tests/sim/sim_store.h"
#include "tests/sim/trace.h"

namespace spoke::sim {

struct WorldSettings {
  uint64_t seed = 1;
  int nodes = 6;
  int servers = 1;
  std::string pool = "10.1.0.0/22";
  uint8_t block_length = 0;  // The prefix length of the blocks that nodes get; 0: single addresses.
  bool ipv6 = false;         // Whether pods get an address of IPv6, too.
  bool team_pool = false;    // Whether some pods have a pool of their own; not on Azure.
  bool azure = false;        // Whether the cloud is Azure, which chooses the addresses.
  bool budget = false;       // Whether pods use a budget that all machines share.
  double drift = 0.0003;     // How much a machine's clock may gain or lose, at most.
  bool keep_trace = false;
};

// Returns the pools of the servers' configuration. Operators make up to kMorePools others within
// kMorePoolsCidr.
std::vector<ipam::PoolSpec> PoolsOf(const WorldSettings& settings);
// Returns the subnets of NICs on Azure, where a pool covers each.
std::vector<ip::Prefix> SubnetsOf(const WorldSettings& settings);
inline constexpr uint64_t kMorePools = 2;
inline constexpr std::string_view kMorePoolsCidr = "10.3.0.0/16";

LawSettings LawSettingsOf(const WorldSettings& settings);

// Returns the keys and specs of all objects, to compare them.
std::string TextOf(const ipam::ObjectSet& objects);

// Not thread-safe.
class World final : public StreamEnds {
 public:
  explicit World(const WorldSettings& settings);
  ~World() override;

  // Lets time pass until `until` after the beginning, or until a law is broken.
  void Run(absl::Duration until);
  // Has the events of the plan happen at their times.
  void Follow(const Plan& plan);
  // Ends all faults, and has the operators undo what they did.
  void Heal();
  // What operators do once nothing fails any more: they undrain, lift, unfreeze and confirm.
  void Tidy();
  // Whether addresses that have left their NICs are given up still, as fast as releases may go.
  bool GivesUpLost();
  // Compares everything with everything, once all is to be as it should be (law 10).
  void CheckSettled();

  const Laws& laws() const { return laws_; }
  const Trace& trace() const { return trace_; }
  const Schedule& schedule() const { return schedule_; }
  double node_hours() const {
    return absl::ToDoubleHours(schedule_.now() - schedule_.began()) * settings_.nodes;
  }

  // --- For the plan. ---
  void Do(const PlannedEvent& event);

  // --- What streams bring. ---
  void OnOpened(StreamId stream, size_t server) override;
  void OnAgentMessage(StreamId stream, size_t server, v1::AgentMessage message) override;
  void OnAgentEnded(StreamId stream, size_t server) override;
  void OnServerMessage(StreamId stream, size_t node, v1::ServerMessage message) override;
  void OnServerEnded(StreamId stream, size_t node, const absl::Status& why) override;

 private:
  struct Node {
    Machine machine;
    std::unique_ptr<Agent> agent;  // nullptr: it does not run.
    uint64_t agents = 0;           // How many processes of it there have been.
    std::unique_ptr<Runtime> runtime;
    std::unique_ptr<Alarm> alarm;  // Goes off when its agent is due.
    std::unique_ptr<Random> random;
    std::vector<std::string> former;  // The ids of the machines that had its name before.
    bool starting = false;
  };
  struct Host {
    size_t index = 0;
    std::unique_ptr<Server> server;  // nullptr: it stands by, or does not run.
    std::unique_ptr<Alarm> alarm;    // Goes off when its server is due.
    std::unique_ptr<Random> random;
    StoreFaults store_faults;
    absl::Duration ahead;
    double drift = 0;
    int boots = 0;
    absl::Time down_until;
    absl::Time leads_until;  // It is sure to lead until then.
  };

  // --- Machines (world_machines.cc). ---
  Node& AddNode(std::string name);
  void Boot(Node& node, bool disk_is_new = false);
  void StartAgent(Node& node);
  void StartAgentLater(Node& node, absl::Duration least, absl::Duration most);
  void Tend(Node& node);
  void GoRound(Node& node);
  void BuryAgent(Node& node);
  void EndMachine(Node& node);
  void Reboot(Node& node);
  void Delete(Node& node);
  void ScaleIn(Node& node, absl::Duration lasts);
  void Announce(Node& node, absl::Duration lasts, bool is_deleted);
  void Lie(Node& node, absl::Duration lasts);
  void Replace(Node& node);
  void Reimage(Node& node);
  void AddDouble(const Node& node, const PlannedEvent& event);
  void Dial(Node& node, size_t server);

  // --- Servers (world_servers.cc). ---
  void AddHost(size_t index);
  void Campaign(Host& host);
  void Lead(Host& host);
  void Tend(Host& host);
  void GoRound(Host& host);
  void BuryServer(Host& host, bool silent, absl::Duration least_pause);
  Host* Leader();
  ipam::ServerSettings ServerSettingsOf() const;

  // --- Operators (world_operators.cc). ---
  Node& TargetNode(const PlannedEvent& event) {
    return *nodes_[event.target % static_cast<uint64_t>(settings_.nodes)];
  }
  void DoToMachine(Node& node, const PlannedEvent& event);
  void DoToServer(const PlannedEvent& event);
  void DoToEdges(const PlannedEvent& event);
  void DoAsOperator(const PlannedEvent& event);
  void DoToNodeAsOperator(const Node& target, const PlannedEvent& event);
  void SetMode(const std::string& node, ipam::NodeMode mode, std::string what);
  void Release(const Node& node, bool by_force);
  void Change(std::string what,
              std::function<absl::StatusOr<ipam::Effects>(ipam::ServerState&, absl::Time)> change);
  void ForgetFormer(const Node& node);
  void QuarantineOneOf(const std::string& node, int64_t which);
  void ApplyPolicy(const PlannedEvent& event);
  void ResizePool(const PlannedEvent& event);
  void AuditAndRepair();
  void Unfreeze();
  void ConfirmRecovery(bool once_all_spoke);
  void ChangeObjects(const std::string& file, const std::vector<ipam::ObjectKey>& gone,
                     const std::string& what);
  void Restore(bool on_other_machines);
  void OnChangedByOthers(const std::string& vm, const std::vector<ip::Prefix>& lost);
  void CheckMended(const std::string& vm);
  void For(absl::Duration lasts, double& share, double value);

  void CheckPods();
  void CheckLeftovers(const Node& node);
  void CheckAudit();
  void CheckGivenUp(const ipam::FleetView& view);
  void CheckPolicies(const ipam::FleetView& view);
  void CheckRecords(const ipam::FleetView& view);
  bool IsCutOff(const std::string& vm, const ip::Address& address) const;

  const WorldSettings settings_;
  Schedule schedule_;
  Trace trace_{schedule_, settings_.keep_trace};
  Random network_random_;
  NetworkFaults network_faults_;
  Network network_{schedule_, network_random_, trace_, network_faults_, *this};
  Fabric fabric_;
  StoreDisks disks_;
  CloudFaults cloud_faults_;
  std::unique_ptr<Provider> provider_;
  MachineFaults machine_faults_;
  RuntimeFaults runtime_faults_;
  Laws laws_;
  std::string directory_;  // For what lies beside the stores.
  uint64_t stores_ = 0;
  absl::Time lease_until_;  // Nobody else may lead before.
  absl::Time leads_since_;  // The present leader, or the last one.
  std::optional<StoreDisks::Records> backup_;
  bool confirmed_ = false;  // An operator has ended a recovery since the last restore.
  // Those of the settings come first; behind them are the doubles, gone or not.
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Host>> hosts_;
  Random operators_;
};

}  // namespace spoke::sim
