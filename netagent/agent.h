// The parts of the agent, tied together: restores what the last agent left, and runs the loop until
// a signal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/nft/tables.h"
#include "lib/os/clock.h"
#include "lib/os/event_loop.h"
#include "lib/os/heartbeat.h"
#include "lib/os/signals.h"
#include "lib/telemetry/log.h"
#include "netagent/agent_parts.h"
#include "netagent/attach/attachments.h"
#include "netagent/attach/lost_del_release.h"
#include "netagent/attach/nic_check.h"
#include "netagent/attach/repairer.h"
#include "netagent/cni/add_service.h"
#include "netagent/cni/cni_handler.h"
#include "netagent/cni/cni_installer.h"
#include "netagent/cni/cni_server.h"
#include "netagent/cni/tombstones.h"
#include "netagent/config.h"
#include "netagent/connections/connection_clearing.h"
#include "netagent/connections/connection_counting.h"
#include "netagent/connections/conntrack_table.h"
#include "netagent/connections/established_cuts.h"
#include "netagent/dns/dns_listener.h"
#include "netagent/dns/dns_names.h"
#include "netagent/egress/egress_parts.h"
#include "netagent/egress/gateways/gateway_routes.h"
#include "netagent/egress/gateways/tcp_probe.h"
#include "netagent/enroll/enroller.h"
#include "netagent/exporters/agent_reading.h"
#include "netagent/fastpath/fast_path.h"
#include "netagent/journal/journal.h"
#include "netagent/links/links.h"
#include "netagent/maintenance/maintenance_report.h"
#include "netagent/nftables/nft_watch.h"
#include "netagent/node/findings_report.h"
#include "netagent/node/node_routes.h"
#include "netagent/node/server_clock.h"
#include "netagent/node/service_health.h"
#include "netagent/policy/policy_keeper.h"
#include "netagent/policy/policy_prober.h"
#include "netagent/policy/reach_targets.h"
#include "netagent/session/server_session.h"
#include "netagent/session/store_token.h"
#include "netagent/shaping/shaper.h"
#include "netagent/shaping/shaping.h"
#include "netagent/traffic/traffic.h"
#include "netagent/traffic/traffic_reporter.h"
#include "netagent/verification/address_verifier.h"
#include "netagent/verification/conflict_detector.h"
#include "netagent/verification/host_list.h"
#include "netagent/verification/neighbour_watch.h"
#include "netagent/verification/wire_probe.h"

namespace spoke::netagent {

// The edges that the cloud, or its absence, adds to an agent.
struct CloudParts {
  std::set<ip::Address> secondaries;  // The NIC's, beside its primary address.
  std::unique_ptr<HostList> host;     // Lists IPv4 addresses; `wire` probes them.
  std::unique_ptr<WireProbe> wire;
  std::unique_ptr<HostList> host_ipv6;
  std::unique_ptr<NeighbourWatch> neighbours;  // May be null: no conflicts are found.

  ProofRequired proves() const {
    return {.ipv4 = host != nullptr || wire != nullptr, .ipv6 = host_ipv6 != nullptr};
  }
};

// The edges of counting, isolation and egress; null where these are switched off.
struct TrafficParts {
  nft::Tables* tables = nullptr;
  NodeRoutes* routes = nullptr;
  FastPath* fast_path = nullptr;            // May be null: nothing is fast.
  GatewayRoutes* gateway_routes = nullptr;  // May be null: no policy may have gateways.
  Shaper* shaper = nullptr;                 // May be null: nothing is shaped.
  DnsListener* dns = nullptr;               // May be null: no names are learned.
  // The reader that Traffic::Edges takes.
  std::function<absl::StatusOr<FastPathObstacles>()> read_obstacles = {};
  NftWatch* watch = nullptr;  // May be null: changes by others are only looked for.
  // The table by which pods' connections are counted, not Edges::conntrack since each is used on a
  // thread of its own, and the reader of how full the table is. Both are given, or neither is.
  ConntrackTable* connections = nullptr;
  std::function<absl::StatusOr<TableUse>()> read_table_use = {};
  std::vector<ip::Address> server_addresses = {};  // Those that it had when the agent started.
};

// The receivers of readiness and liveness; empty where nobody asks for them.
struct HealthParts {
  os::Heartbeat* heartbeat = nullptr;  // The loop's sign that it turns.
  // The functions below are called on the loop's thread, and must not block.
  std::function<std::vector<std::string>()> node_findings = nullptr;  // Those that block pods.
  // All of them, for the server.
  std::function<std::vector<node_checks::Finding>()> read_findings = nullptr;
  std::function<void(std::vector<std::string>)> say = nullptr;  // Told why it is not ready.
  // Told what of the hub and of peer spokes policy has the node try.
  std::function<void(node_checks::ReachTargets)> try_to_reach = nullptr;
  // Told every ten seconds how many packets of pods have been counted (CountedPackets()).
  std::function<void(uint64_t)> say_counted = nullptr;
  ServerClock* server_clock = nullptr;  // Asks the server its time, over the session's connection.
};

// Where maintenance of the node is announced; empty where nobody does.
struct AnnouncedMaintenance {
  // Called on the loop's thread, and must not block.
  std::function<std::optional<node_api::Maintenance>()> read = nullptr;  // nullopt: not known yet.
  std::function<void(std::vector<std::string>)> begin = nullptr;         // These events may begin.
};

// Everything runs on the loop's thread except the session's callbacks, which only post to it.
class Agent {
 public:
  struct Edges {
    Links& links;
    std::unique_ptr<Journal> journal;
    const os::Clock& clock;  // That of the journal's times; it is never set.
    absl::Time unrecorded_use_end = absl::InfinitePast();  // As Attachments::Settings says.
    telemetry::Log& log;
    os::EventLoop loop;
    CloudParts cloud;
    TrafficParts traffic = {};
    HealthParts health = {};
    AnnouncedMaintenance maintenance = {};
    // Returns what the agent has logged of late; null: nobody keeps it. For any thread.
    std::function<std::string()> read_log = nullptr;
    // Null where the kernel cannot delete connections: a cooldown then is a time and nothing else.
    ConntrackTable* conntrack = nullptr;
    // A second table, for policies; null: they cut what their rules drop, and count nothing first.
    ConntrackTable* cuts = nullptr;
  };
  // Borrows `config` and the edges that are references.
  Agent(const AgentConfig& config, const node_api::NodeIdentity& identity, Edges edges);

  // Restores what `events` of the journal say, takes up what was asked for meanwhile, and listens.
  // Errors: what keeps the agent from serving; the agent is of no use then.
  absl::Status Start(const std::vector<Event>& events);

  // Serves until one of `signals` arrives. Pods keep running: links, routes, journal and socket
  // file stay for the next agent. ADDs that wait are not answered: their plugins ask the next
  // agent.
  void Run(const os::SignalWaiter& signals);

  // Reads on the loop's thread what metrics show of the agent; it waits for that, so another thread
  // calls it, after Start(). Errors: kDeadlineExceeded (the loop had no time `within`).
  absl::StatusOr<AgentReading> Read(absl::Duration within);

 private:
  // Lists what the loop looks after, in this order.
  void ListParts();
  // Makes the parts that only some nodes have; the constructor calls it.
  void MakeCloudParts();
  void MakeConnectionParts(const Edges& edges);
  void MakeTrafficParts();
  // What the addresses that are not proven wait for; empty: none waits.
  std::string ExplainUnproven() const;
  bool CanServe() const;
  // What keeps the runtime from using this agent; empty: nothing does.
  std::string CniReason() const;
  // What keeps this node from a certificate of its own; empty: nothing does.
  std::string EnrollReason() const;
  // Says that the loop turns. It is called between the parts of a long turn too.
  void Beat() const {
    if (heartbeat_ != nullptr) heartbeat_->Beat();
  }
  // Runs `work` on the loop's thread.
  void Post(std::function<void()> work);
  void SayHello();
  // Connects to the server as soon as there is a certificate to connect with.
  absl::Status StartSession();
  // Begins to count the pods that there are, and lets their traffic out.
  absl::Status StartTraffic();
  absl::Status StartCounting(const std::vector<TrafficPod>& pods);
  absl::Status PutInForce(const Policy& policy);
  // Counts how many connections the policy would end. `beyond_those_in_force`: none is counted
  // where it ends only what those in force end as well.
  void CountCuts(const Policy& policy, bool beyond_those_in_force, PolicyKeeper::CountDone done);
  // Tells the checks of the node what to try, by `policy`.
  void TellTargets(const Policy& policy);
  // Tells shaping what the policy in force says, and who its pods are.
  void OnRules();

  // The session itself acts upon these two messages.
  void Take(const node_api::Welcome&) {}
  void Take(const node_api::ReportAck&) {}
  void Take(const node_api::DesiredState& desired);
  void Take(const node_api::ReclaimRequest& request) { attachments_.OnReclaim(request); }
  void Take(const node_api::InventoryRequest& request) { attachments_.OnInventory(request); }
  void Take(const node_api::EndAssignment& request) { attachments_.OnEndAssignment(request); }
  void Take(const node_api::PolicyUpdate& update) { policy_.OnPolicy(update); }
  void Take(const node_api::Forecast& forecast) { adds_.OnForecast(forecast); }
  void Take(const node_api::AttachTracesRequest& request) { adds_.OnTracesRequest(request); }
  void Take(const node_api::PolicyTrial& trial);
  void Take(const node_api::MaintenanceStart& start) {
    if (begin_maintenance_) begin_maintenance_(start.events);
  }
  void Take(const node_api::NodeDataRequest& request);
  void Take(const node_api::ProbeRequest& request) { policy_prober_.Probe(request); }
  void Take(const node_api::BudgetGrants& grants) {
    if (ShapesByPolicy()) shaping_->OnGrants(grants);
  }
  // Whether policy shapes. If it does not, only what a pod's ADD asked for is shaped.
  bool ShapesByPolicy() const { return shaping_ && traffic_ && config_.shaping.enabled; }

  const AgentConfig& config_;
  const node_api::NodeIdentity identity_;
  Links& links_;
  telemetry::Log& log_;
  const os::Clock& clock_;
  os::EventLoop loop_;  // Outlives the parts whose threads post to it.
  os::Heartbeat* const heartbeat_;
  const CloudParts cloud_;
  ServerSession session_;
  std::optional<EnrollCall> enroll_call_;
  std::optional<Enroller> enroller_;  // Starts the session, so it is destroyed first.
  std::optional<Traffic> traffic_;    // Nullopt: nobody counts.
  std::optional<Shaping> shaping_;    // Nullopt: nobody shapes.
  const TrafficParts traffic_parts_;
  SocketTcpProbe gateway_probe_;
  std::optional<EgressParts> egress_;           // Only with traffic_.
  std::optional<ConnectionCounting> counting_;  // Only with traffic_ and a table to read.
  std::optional<DnsNames> dns_names_;           // Only where policy shapes.
  Attachments attachments_;
  std::optional<ConnectionClearing> clearing_;  // Only with Edges::conntrack.
  std::optional<EstablishedCuts> cuts_;         // Only with traffic_ and Edges::cuts.
  std::optional<ConflictDetector> conflicts_;   // Only with an edge for it.
  NicCheck nic_check_;
  Repairer repairer_;
  LostDelRelease lost_dels_;
  std::vector<std::unique_ptr<AddressVerifier>>
      verifiers_;  // One a family; only with the cloud's parts.
  StoreToken store_token_;
  PolicyKeeper policy_;
  std::optional<TrafficReporter> reporter_;  // Only when somebody counts.
  PolicyProber policy_prober_;
  Tombstones tombstones_;
  CniInstaller cni_installer_;
  ServiceHealth health_;
  FindingsReport findings_;
  MaintenanceReport maintenance_;
  const std::function<void(std::vector<std::string>)> begin_maintenance_;
  const std::function<std::string()> read_log_;
  const std::function<void(node_checks::ReachTargets)> try_to_reach_;
  const std::function<void(uint64_t)> say_counted_;
  CniServer cni_;  // Outlives those who hold its responders.
  AddService adds_;
  CniHandler handler_;
  // Whether addresses have come from the journal, or the server has said which there are.
  bool informed_ = false;
  AgentParts parts_;  // Borrows the parts above.
};

}  // namespace spoke::netagent
