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
#include "lib/os/clock.h"
#include "lib/os/event_loop.h"
#include "lib/os/heartbeat.h"
#include "lib/os/signals.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attachment_check.h"
#include "netagent/attach/attachments.h"
#include "netagent/attach/lost_del_release.h"
#include "netagent/attach/nic_check.h"
#include "netagent/attach/repairer.h"
#include "netagent/attach/turn.h"
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
#include "netagent/links/inspector.h"
#include "netagent/links/router.h"
#include "netagent/nftables/nft_tables.h"
#include "netagent/nftables/nft_watch.h"
#include "netagent/node/node_routes.h"
#include "netagent/node/service_health.h"
#include "netagent/policy/policy_keeper.h"
#include "netagent/policy/policy_prober.h"
#include "netagent/session/server_session.h"
#include "netagent/session/store_token.h"
#include "netagent/shaping/shaped_traffic.h"
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

// What the cloud, or its absence, adds to an agent.
struct CloudParts {
  std::set<ip::Address> secondaries;  // Of the NIC, beside its primary address.
  std::unique_ptr<HostList> host;     // Of IPv4; likewise `wire`.
  std::unique_ptr<WireProbe> wire;
  std::unique_ptr<HostList> host_ipv6;
  std::unique_ptr<NeighbourWatch> neighbours;  // Null: nobody looks for conflicts.

  ProofRequired proves() const {
    return {.ipv4 = host != nullptr || wire != nullptr, .ipv6 = host_ipv6 != nullptr};
  }
};

// What counting, isolation and egress need of the kernel; null where they are switched off.
struct TrafficParts {
  NftTables* tables = nullptr;
  NodeRoutes* routes = nullptr;
  FastPath* fast_path = nullptr;            // May be null: nothing is fast.
  GatewayRoutes* gateway_routes = nullptr;  // May be null: no policy may have gateways.
  Shaper* shaper = nullptr;                 // May be null: nothing is shaped.
  DnsListener* dns = nullptr;               // May be null: no names are learned.
  // As Traffic::Edges has it.
  std::function<absl::StatusOr<FastPathObstacles>()> read_obstacles = {};
  NftWatch* watch = nullptr;  // May be null: changes by others are only looked for.
  // Both or neither: who counts pods' connections, another one than Edges::conntrack, since either
  // works on a thread of its own; and how full the kernel's table is.
  ConntrackTable* connections = nullptr;
  std::function<absl::StatusOr<TableUse>()> read_table_use = {};
  std::vector<ip::Address> server_addresses = {};  // As they were when the agent started.
};

// What readiness and liveness are told; empty where nobody asks for them.
struct HealthParts {
  os::Heartbeat* heartbeat = nullptr;  // Of the loop.
  // Both are called on the loop's thread, and must not block.
  std::function<std::vector<std::string>()> node_findings = nullptr;  // That block pods.
  std::function<void(std::vector<std::string>)> say = nullptr;  // Why it is not ready; none: it is.
};

// Everything runs on the loop's thread but the callbacks of the session, which only post to it.
class Agent {
 public:
  struct Edges {
    Router& router;
    Inspector& inspector;
    std::unique_ptr<Journal> journal;
    telemetry::Log& log;
    CloudParts cloud;
    TrafficParts traffic = {};
    HealthParts health = {};
    // Null: where the kernel cannot do it, a cooldown is a time and nothing else,
    ConntrackTable* conntrack = nullptr;
    // and policies cut what their rules drop, and count nothing beforehand. Another one than that.
    ConntrackTable* cuts = nullptr;
  };
  // Borrows `config` and the edges that are references.
  Agent(const AgentConfig& config, const NodeIdentity& identity, Edges edges);

  // Restores what `events` of the journal say, takes up what was asked for meanwhile, and listens.
  // Errors: what keeps the agent from serving; it is of no use then.
  absl::Status Start(const std::vector<Event>& events);

  // Serves until one of `signals` arrives. Pods keep running: links, routes, journal and socket
  // file stay for the next agent. ADDs that wait are not answered: their plugins ask the next
  // agent.
  void Run(const os::SignalWaiter& signals);

  // What metrics show of it, read on the loop's thread; waits for that, and so belongs to another
  // thread. Once Start() has returned. Errors: kDeadlineExceeded (the loop had no time `within`).
  absl::StatusOr<AgentReading> Read(absl::Duration within);

 private:
  // Looks after everything whose time may have come: after each round of the loop.
  void Tick();
  // When the first of the rounds wants to be called that take their turns (attach/turn.h).
  absl::Time NextRound() const;
  absl::Duration UntilNextWake() const;
  // What the addresses that have not been proven wait for; empty: none does.
  std::string ExplainUnproven() const;
  bool CanServe() const;
  // What keeps the runtime from using us; empty: nothing.
  std::string CniReason() const;
  // What keeps this node from a certificate of its own; empty: nothing.
  std::string EnrollReason() const;
  // The loop turns. Also between the parts of a long turn: kernel work that goes on is not stuck.
  void Beat() const {
    if (heartbeat_ != nullptr) heartbeat_->Beat();
  }
  // Runs `work` on the loop's thread.
  void Post(std::function<void()> work);
  void SayHello();
  // Connects to the server, as soon as there is a certificate to connect with.
  absl::Status StartSession();
  // Begins to count, with what pods there are, and to let them out.
  absl::Status StartTraffic();
  absl::Status StartCounting(const std::vector<TrafficPod>& pods);
  void StartCountingConnections();
  absl::Status PutInForce(const Policy& policy);
  // How many connections the policy would end: as PolicyKeeper has it.
  void CountCuts(const Policy& policy, EstablishedCuts::CountDone done);
  // What of shaping the policy in force says, and who its pods are.
  void OnRules();

  void Take(const DesiredState& desired);
  void Take(const ReclaimRequest& request) { attachments_.OnReclaim(request); }
  void Take(const InventoryRequest& request) { attachments_.OnInventory(request); }
  void Take(const EndAssignment& request) { attachments_.OnEndAssignment(request); }
  void Take(const policy::Update& update) { policy_.OnPolicy(update); }
  void Take(const Forecast& forecast) { adds_.OnForecast(forecast); }
  void Take(const AttachTracesRequest& request) { adds_.OnTracesRequest(request); }
  void Take(const PolicyTrial& trial);
  void Take(const ProbeRequest& request) { policy_prober_->Probe(request); }
  void Take(const BudgetGrants& grants) {
    if (ShapesByPolicy()) shaping_->OnGrants(grants);
  }
  // Without it only what was asked for with a pod's ADD is shaped.
  bool ShapesByPolicy() const { return shaping_ && traffic_ && config_.shaping.enabled; }

  const AgentConfig& config_;
  const NodeIdentity identity_;
  Router& router_;
  telemetry::Log& log_;
  const os::RealClock time_of_day_;
  const os::MonotonicClock uptime_;
  const os::SteadyClock clock_{time_of_day_, uptime_};
  std::optional<os::EventLoop> loop_;  // Before the parts whose threads post to it.
  os::Heartbeat* const heartbeat_;
  const CloudParts cloud_;
  ServerSession session_;
  std::optional<EnrollCall> enroll_call_;
  std::optional<Enroller> enroller_;  // With `enroll`: starts the session, so it goes before it.
  std::optional<Traffic> traffic_;    // Without it nobody counts,
  std::optional<Shaping> shaping_;    // and nobody shapes.
  std::optional<ShapedTraffic> of_pods_;  // Those that there are.
  const TrafficParts traffic_parts_;
  SocketTcpProbe gateway_probe_;
  std::optional<EgressParts> egress_;           // With traffic_.
  std::optional<ConnectionCounting> counting_;  // With traffic_, where the kernel can be asked.
  std::optional<DnsNames> dns_names_;           // Where policy shapes.
  ConntrackTable* const conntrack_;
  ConntrackTable* const cut_table_;
  Attachments attachments_;
  std::optional<ConnectionClearing> clearing_;  // With conntrack_.
  std::optional<EstablishedCuts> cuts_;         // With traffic_ and cut_table_.
  std::optional<ConflictDetector> conflicts_;   // With an edge for it only.
  NicCheck nic_check_;
  Repairer repairer_;
  LostDelRelease lost_dels_;
  AttachmentCheck check_;
  std::vector<std::unique_ptr<AddressVerifier>>
      verifiers_;  // One a family; with the cloud's parts only.
  StoreToken store_token_;
  PolicyKeeper policy_;
  std::optional<TrafficReporter> reporter_;  // When somebody counts.
  std::optional<PolicyProber> policy_prober_;
  Tombstones tombstones_;
  CniInstaller cni_installer_;
  ServiceHealth health_;
  std::optional<CniServer> cni_;  // Before those who hold its responders.
  AddService adds_;
  CniHandler handler_;
  // Addresses have come from the journal, or the server has said which there are.
  bool informed_ = false;
};

}  // namespace spoke::netagent
