#include "ipam-server/server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/admin/admin_gate.h"
#include "ipam-server/admin/admin_service.h"
#include "ipam-server/audit/audit_job.h"
#include "ipam-server/budget/budget_keeper.h"
#include "ipam-server/cloud/open_cloud.h"
#include "ipam-server/dns/system_resolver.h"
#include "ipam-server/history/history_job.h"
#include "ipam-server/loop/background.h"
#include "ipam-server/loop/event_ring.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/nodes/nodes_job.h"
#include "ipam-server/nodes/reachability/reachability_job.h"
#include "ipam-server/policy/kinds/bandwidth_budget.h"
#include "ipam-server/policy/kinds/team.h"
#include "ipam-server/policy/protected_addresses.h"
#include "ipam-server/readiness.h"
#include "ipam-server/server_keys.h"
#include "ipam-server/session/node_service.h"
#include "ipam-server/store/backup_file.h"
#include "ipam-server/telemetry/budget_samples.h"
#include "ipam-server/telemetry/cloud_samples.h"
#include "ipam-server/telemetry/leadership_samples.h"
#include "ipam-server/telemetry/node_samples.h"
#include "ipam-server/telemetry/reachability_samples.h"
#include "ipam-server/telemetry/refusal_samples.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/base/status_news.h"
#include "lib/base/version.h"
#include "lib/os/environment.h"
#include "lib/os/file.h"
#include "lib/rpc/bounded_server.h"
#include "lib/rpc/certificate_metrics.h"
#include "lib/telemetry/metrics.h"
#include "lib/telemetry/text_endpoint.h"
#include "lib/tls/message_code.h"

namespace spoke::ipam {
namespace {

// Agents ping every 30 s or less often; anything much faster is a fault.
constexpr int kMinPingIntervalMs = 10'000;
// How soon a node that vanished without a word counts as away.
constexpr int kKeepaliveMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// The longest message of operators: spokectl sends no more than 3 MiB of files.
constexpr int kMaxAdminMessageBytes = 4 << 20;

// The longest piece that is encrypted at once, for which each connection has a buffer: gRPC's own
// 16 KiB are for few that carry much.
constexpr int kMaxRecordBytes = 2048;

// How often it is looked at whether this server still leads.
constexpr int kMarginPeriodMs = 100;
// After how many of these looks it is looked for certificates that have ended.
constexpr int kTurnsForCertificates = 100;

// The longest silence of a loop of the server. A commit to a disk that is busy may take a while.
constexpr absl::Duration kLongestSilence = absl::Seconds(60);

constexpr size_t kStoreIdBytes = 16;

absl::StatusOr<std::unique_ptr<rpc::BoundedServer>> StartServer(
    rpc::BoundedServer::Listener listener, int max_message_bytes, grpc::Service& service,
    telemetry::Log& log) {
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(max_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_TSI_MAX_FRAME_SIZE, kMaxRecordBytes);
  return rpc::BoundedServer::Start(builder, std::move(listener), log);
}

struct Servers {
  std::unique_ptr<rpc::BoundedServer> admin;
  std::unique_ptr<rpc::BoundedServer> agents;
  std::unique_ptr<rpc::BoundedServer> operators;  // Null: they have the socket alone.
};

// Starts the servers. Whoever can open the admin socket is an operator, so it is made for root
// only.
absl::StatusOr<Servers> StartServers(const ServerConfig& config, grpc::Service& admin_service,
                                     grpc::Service& node_service, telemetry::Log& log) {
  // Enrollment's certificates are renewed while we run.
  ASSIGN_OR_RETURN(
      const auto agent_credentials,
      config.enroll ? rpc::RenewedServerCredentials(config.tls, rpc::ClientCertificate::kRequired)
                    : rpc::ServerCredentials(config.tls));
  ASSIGN_OR_RETURN(const auto admin_credentials, rpc::ServerCredentials({.insecure = true}));
  Servers servers;
  const mode_t old_mask = ::umask(0177);
  auto admin = StartServer({.name = "admin",
                            .address = config.listen_admin,
                            .credentials = admin_credentials,
                            .limits = rpc::kAdminLimits,
                            .own_users_only = true},
                           kMaxAdminMessageBytes, admin_service, log);
  ::umask(old_mask);
  if (!admin.ok()) return admin.status();
  servers.admin = *std::move(admin);
  ASSIGN_OR_RETURN(servers.agents,
                   StartServer({.name = "agents",
                                .address = config.listen_agents,
                                .credentials = agent_credentials,
                                .limits = rpc::AgentLimits(config.agents_per_address)},
                               kMaxAgentMessageBytes, node_service, log));
  if (config.listen_operators == "off") return servers;
  // The files are those of the agents' port: one authority signs for both, and roles tell them
  // apart.
  ASSIGN_OR_RETURN(servers.operators, StartServer({.name = "operators",
                                                   .address = config.listen_operators,
                                                   .credentials = agent_credentials,
                                                   .limits = rpc::kOperatorLimits},
                                                  kMaxAdminMessageBytes, admin_service, log));
  return servers;
}

void SayStarted(const ServerConfig& config, const std::string& store, const std::string& cloud,
                telemetry::Log& log) {
  log.Info("server_started", {{"version", base::kVersion},
                              {"agents", config.listen_agents},
                              {"admin", config.listen_admin},
                              {"operators", config.listen_operators},
                              {"store", store},
                              {"cloud", cloud},
                              {"tls", config.tls.insecure ? "off" : "on"}});
}

// Returns the metrics' endpoint; null: they are not to be served.
absl::StatusOr<std::unique_ptr<telemetry::TextEndpoint>> ServeMetrics(
    const ServerConfig& config, const telemetry::Metrics& metrics) {
  if (config.listen_metrics == "off") return nullptr;
  return telemetry::TextEndpoint::Open(
      {.address = config.listen_metrics, .token_file = config.metrics_token_file},
      telemetry::MetricsPage([&metrics] { return metrics.Render(); }));
}

void AddRefusals(const Servers& servers, const Enrollment* enrollment,
                 const telemetry::TextEndpoint* endpoint, telemetry::Metrics& metrics) {
  std::vector<ListenerRefusals> listeners = {{"agents", servers.agents->refusals()},
                                             {"admin", servers.admin->refusals()}};
  if (servers.operators != nullptr) {
    listeners.push_back({"operators", servers.operators->refusals()});
  }
  if (enrollment != nullptr) listeners.push_back({"enroll", enrollment->refusals()});
  if (endpoint != nullptr) listeners.push_back({"metrics", endpoint->refusals()});
  metrics.AddSource([listeners = std::move(listeners)] { return RefusalSamples(listeners); });
}

// With three members on one disk a commit takes about half of that.
constexpr absl::Duration kGatherForEtcd = absl::Milliseconds(10);

absl::StatusOr<ServerSettings> SettingsOf(const ServerConfig& config) {
  ASSIGN_OR_RETURN(const std::vector<ip::Address> own, OwnAddresses());
  ASSIGN_OR_RETURN(const std::string id, tls::RandomBytes(kStoreIdBytes));
  return ServerSettings{
      .pools = config.pools,
      .fleet = config.policy,
      .protected_addresses = ProtectedAddressesOf(config.listen_agents, own, config.advertised),
      .new_store_id = absl::BytesToHexString(id),
      .max_cut_permille = static_cast<uint32_t>(std::lround(config.max_cut_share * 1000)),
      .gather = config.etcd ? kGatherForEtcd : absl::ZeroDuration()};
}

// Certificates are good by the time of day; all else is measured by what nobody sets.
struct Clocks {
  os::RealClock time_of_day;
  os::MonotonicClock uptime;
  os::SteadyClock steady{time_of_day, uptime};
};

void AddBudgets(BudgetKeeper& budgets, telemetry::Metrics& metrics) {
  metrics.AddSource([&budgets] {
    const BudgetCounts counts = budgets.counts();
    return BudgetSamples(budgets.Standings(), counts.reports, counts.grants);
  });
}

std::function<void(const ObjectSet&)> TellTeamsAndBudgets(TrafficBook& traffic,
                                                          BudgetKeeper& budgets) {
  return [&traffic, &budgets](const ObjectSet& objects) {
    traffic.SetTeams(TeamsByNamespace(objects));
    budgets.SetBudgets(BudgetsOf(objects));
  };
}

void AddLeadership(const ServerConfig& config, const std::function<absl::Duration()>& margin,
                   telemetry::Metrics& metrics) {
  LeadershipSample sample;
  if (config.etcd) sample.leader = config.etcd->name;
  metrics.AddSource([sample = std::move(sample), margin]() mutable {
    if (margin() < absl::InfiniteDuration()) sample.margin = margin();
    return LeadershipSamples(sample);
  });
}

void Shutdown(const Servers& servers, daemon::ServedHealth& health) {
  health.Say({"it is stopping"});
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
  servers.agents->Shutdown(deadline);
  servers.admin->Shutdown(deadline);
  if (servers.operators != nullptr) servers.operators->Shutdown(deadline);
}

AdminService::About AboutUs(const Store& store, const Cloud& cloud, const os::Clock& clock) {
  return {.version = base::kVersion,
          .store = store.Describe(),
          .cloud = cloud.Describe(),
          .started = clock.Now()};
}

// Removes the backups that a killed server left. The store is ours by now.
void RemoveLeftovers(const ServerConfig& config, telemetry::Log& log) {
  const auto removed = RemoveScratchBackups(config.sqlite);
  if (!removed.ok()) {
    log.Warn("backup_scratch_kept", {{"error", removed.status()}});
  } else if (*removed > 0) {
    log.Info("backup_scratch_removed", {{"files", *removed}});
  }
}

// What scrapes read of the cloud, which is made after the endpoint and goes before it.
class ScrapedCloud {
 public:
  // nullptr: there is none any more. Waits for a scrape that reads it.
  void Set(const Cloud* cloud) {
    absl::MutexLock lock(&mutex_);
    cloud_ = cloud;
  }
  CloudLoad Load() const {
    absl::MutexLock lock(&mutex_);
    return cloud_ == nullptr ? CloudLoad{} : cloud_->Load();
  }

 private:
  mutable absl::Mutex mutex_;
  const Cloud* cloud_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// Returns what writes to the cluster's API server which nodes are fit; null: it is not to.
absl::StatusOr<std::unique_ptr<NodesJob>> OpenNodesJob(const ServerConfig& config,
                                                       const NodesJob::Edges& edges) {
  if (!config.kubernetes) return nullptr;
  const auto access =
      kubernetes::InClusterAccess([](const char* name) { return std::getenv(name); });
  if (!access.ok()) return base::Annotate(access.status(), "kubernetes, in the configuration");
  return std::make_unique<NodesJob>(
      *access,
      NodeSync::Settings{.times = config.kubernetes->times, .limits = config.kubernetes->limits},
      edges);
}

// Returns what lets nodes probe each other; null: they are not to.
std::unique_ptr<ReachabilityJob> OpenReachabilityJob(const ReachabilityJob::Edges& edges) {
  if (edges.board.settings().interval <= absl::ZeroDuration()) return nullptr;
  return std::make_unique<ReachabilityJob>(edges);
}

// The parts that run, borrowed.
struct Running {
  FleetLoop& loop;
  AuditJob& audit;
  HistoryJob& history;
  BudgetKeeper& budgets;
  AgentStreams& streams;
  EventRing& events;
  Cloud& cloud;
  Readiness& readiness;
  Revocations& revocations;
  NodesJob* nodes;                // nullptr: there is none.
  ReachabilityJob* reachability;  // nullptr: nodes do not probe each other.
};

// Tells whether this server surely leads, and if not, what etcd says.
class LeadingWatch {
 public:
  LeadingWatch(const ServerEdges& edges, Readiness& readiness, telemetry::Log& log)
      : edges_(edges), readiness_(readiness), log_(log) {}

  void Look(int64_t now_ms) {
    const bool leads = edges_.margin() > absl::ZeroDuration();
    if (news_.IsNews(leads ? absl::OkStatus() : Why(), now_ms)) {
      if (leads) {
        log_.Info("leadership_renewed", {});
      } else {
        log_.Warn("leadership_not_renewed", {{"error", news_.told()}});
      }
    }
    readiness_.SetLeading(news_.told());
  }

 private:
  absl::Status Why() const {
    absl::Status why = edges_.trouble();
    if (!why.ok()) return why;
    return absl::UnavailableError("etcd has not answered in time, or this server stood still");
  }

  const ServerEdges& edges_;
  Readiness& readiness_;
  telemetry::Log& log_;
  base::StatusNews news_;  // OK: it leads.
};

void RunUntilSignal(const Running& parts, const ServerEdges& edges, const Servers& servers) {
  parts.readiness.SetWritable(absl::OkStatus());
  std::thread loop_thread([&] {
    ::prctl(PR_SET_NAME, "fleet-loop");
    parts.loop.Run();
  });
  parts.audit.Start();
  parts.history.Start();
  parts.budgets.Start(parts.streams, parts.events);
  if (parts.nodes != nullptr) parts.nodes->Start();
  if (parts.reachability != nullptr) parts.reachability->Start();
  const os::UniqueFd signals = edges.signals.Descriptor();
  LeadingWatch leading(edges, parts.readiness, parts.events);
  pollfd signal{.fd = signals.get(), .events = POLLIN, .revents = 0};
  for (int turn = 1; ::poll(&signal, 1, kMarginPeriodMs) <= 0; ++turn) {
    leading.Look(os::MonotonicMs());
    if (turn % kTurnsForCertificates == 0) parts.revocations.CutEnded();
  }
  parts.events.Info("server_stopping", {{"signal", edges.signals.Wait()}});
  Shutdown(servers, edges.health);
  // They ask the loop, which still answers.
  if (parts.nodes != nullptr) parts.nodes->Stop();
  if (parts.reachability != nullptr) parts.reachability->Stop();
  parts.loop.Stop();
  loop_thread.join();
  parts.budgets.Stop();
  parts.cloud.Stop();  // It stops before audits end: one may wait for a listing.
}

// What stands before the loop, borrowed.
struct Prepared {
  const ServerConfig& config;
  const ServerEdges& edges;
  const Clocks& clocks;
  const ServerKeys& keys;
  const ServerSettings& settings;
  Readiness& readiness;
  AgentStreams& streams;
  Revocations& revocations;
  BudgetKeeper& budgets;
  telemetry::Metrics& metrics;
  ServerMetrics& server_metrics;
  const telemetry::TextEndpoint* endpoint;
  EventRing& events;
  StandingBoard& board;
  ReachabilityBoard& reachability;
  ScrapedCloud& scraped_cloud;
};

absl::StatusOr<std::unique_ptr<Cloud>> OpenCloudFor(const Prepared& with, CloudAnswer answer) {
  return OpenCloud({.azure = with.config.azure, .attachments_file = with.config.attachments_file},
                   {.clock = with.clocks.steady,
                    .log = with.events,
                    .metrics = with.server_metrics,
                    .write_margin = with.edges.margin},
                   std::move(answer));
}

// Makes the loop and all that speaks to it, and runs until a signal comes.
absl::Status RunLoop(const Prepared& with, LoadedState loaded) {
  const auto& [config, edges, clocks, keys, settings, readiness, streams, revocations, budgets,
               metrics, server_metrics, endpoint, events, board, reachability_board,
               scraped_cloud] = with;
  Store& store = edges.store;
  const os::SteadyClock& clock = clocks.steady;
  TrafficBook traffic(clock, &server_metrics);
  Mailbox mailbox;
  ASSIGN_OR_RETURN(const std::unique_ptr<Cloud> cloud, OpenCloudFor(with, AnswersTo(mailbox)));
  scraped_cloud.Set(cloud.get());
  const absl::Cleanup no_cloud = [&with] { with.scraped_cloud.Set(nullptr); };
  Background background;
  FleetLoop loop(
      settings, std::move(loaded),
      {.store = store,
       .agents = streams,
       .cloud = *cloud,
       .mailbox = mailbox,
       .clock = clock,
       .log = events,
       .metrics = &server_metrics,
       .witness = &keys.witness,
       .background = &background,
       .heartbeat = &edges.health.heartbeat(kLoopHeartbeat),
       .on_objects = TellTeamsAndBudgets(traffic, budgets),
       .on_node_gone = [&with](const NodeKey& node) { with.budgets.OnNodeGone(node); },
       .on_known_nodes = [&with](const auto& nodes) { with.budgets.ExpectNodes(nodes); },
       .on_writable = [&with](const absl::Status& why_not) { with.readiness.SetWritable(why_not); },
       .leadership = edges.leadership});
  NodeService node_service(
      {.server_version = base::kVersion, .check_peer_name = !config.tls.insecure},
      {streams, loop, traffic, budgets, revocations});
  AuditJob audit({.period = config.audit_period}, {loop, *cloud, clock, events, &server_metrics});
  HistoryJob history(config.history, store, clock, events);
  ASSIGN_OR_RETURN(const std::unique_ptr<NodesJob> nodes,
                   OpenNodesJob(config, {loop, clock, events, board, reachability_board}));
  const auto reachability = OpenReachabilityJob({loop, clock, events, reachability_board});
  SystemResolver resolver;
  ASSIGN_OR_RETURN(const OperatorLogKey newest, OperatorLogKeys::Newest(store));
  OperatorLogKeys operator_log(newest);
  AdminService admin_service(settings, AboutUs(store, *cloud, clock), config.sqlite,
                             {.loop = loop,
                              .store = store,
                              .audit = audit,
                              .events = events,
                              .clock = clock,
                              .time_of_day = clocks.time_of_day,
                              .traffic = traffic,
                              .budgets = budgets,
                              .resolver = resolver,
                              .revocations = revocations,
                              .authority = keys.authority(),
                              .operator_log = operator_log,
                              .reachability = reachability_board});
  AdminGate gate(base::kVersion, admin_service,
                 {.revocations = revocations, .clock = clocks.time_of_day, .log = events});
  ASSIGN_OR_RETURN(const Servers servers, StartServers(config, gate, node_service, events));
  readiness.ShowOn(servers.admin->server(), "spoke.v1.AdminService");
  readiness.ShowOn(servers.agents->server(), "spoke.v1.NodeService");
  if (keys.enrollment != nullptr) RETURN_IF_ERROR(keys.enrollment->Serve());
  AddRefusals(servers, keys.enrollment.get(), endpoint, metrics);
  SayStarted(config, store.Describe(), cloud->Describe(), events);
  RunUntilSignal({loop, audit, history, budgets, streams, events, *cloud, readiness, revocations,
                  nodes.get(), reachability.get()},
                 edges, servers);
  return absl::OkStatus();
}

}  // namespace

daemon::HealthSettings HealthOf(const ServerConfig& config) {
  return {.address = config.health,
          .http = config.health_http,
          .loops = {"the fleet's loop", "the loop of budgets"},
          .longest_silence = kLongestSilence};
}

absl::Status RunServer(const ServerConfig& config, const ServerEdges& edges) {
  Store& store = edges.store;
  telemetry::Log& log = edges.log;
  daemon::ServedHealth& health = edges.health;
  grpc::EnableDefaultHealthCheckService(true);
  const Clocks clocks;
  const os::SteadyClock& clock = clocks.steady;
  RemoveLeftovers(config, log);
  Readiness readiness(health);
  AgentStreams streams(base::kVersion, edges.margin);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Revocations> revocations,
      Revocations::Open(store, clocks.time_of_day, [&](SessionId session, const absl::Status& why) {
        streams.Cut(session, why);
      }));
  // The keys come now that the store is ours, and so is what lies beside it.
  ASSIGN_OR_RETURN(const ServerKeys keys, OpenKeys(config, {.store = store,
                                                            .revocations = *revocations,
                                                            .clock = clocks.time_of_day,
                                                            .log = log,
                                                            .margin = edges.margin,
                                                            .trusts_mark = edges.trusts_mark}));
  // It stands before what reads it at a scrape.
  BudgetKeeper budgets(clocks.uptime, &health.heartbeat(1));
  StandingBoard board;
  ReachabilityBoard reachability(config.reachability);
  ScrapedCloud scraped_cloud;
  telemetry::Metrics metrics(ServerMetricSpecs());
  AddBudgets(budgets, metrics);
  if (config.kubernetes) {
    metrics.AddSource([&board] { return KubernetesSamples(board.Get()); });
  }
  metrics.AddSource([&reachability] { return ReachabilitySamples(reachability.Get().get()); });
  metrics.AddSource([&scraped_cloud] { return CloudLoadSamples(scraped_cloud.Load()); });
  AddLeadership(config, edges.margin, metrics);
  metrics.AddSource([files = config.tls] { return rpc::CertificateSamples(files); });
  ServerMetrics server_metrics(metrics, base::kVersion);
  ASSIGN_OR_RETURN(const auto endpoint, ServeMetrics(config, metrics));
  EventRing events(log, clock);
  ASSIGN_OR_RETURN(const ServerSettings settings, SettingsOf(config));
  ASSIGN_OR_RETURN(LoadedState loaded, LoadState(store, settings, clock.Now()));
  return RunLoop({.config = config,
                  .edges = edges,
                  .clocks = clocks,
                  .keys = keys,
                  .settings = settings,
                  .readiness = readiness,
                  .streams = streams,
                  .revocations = *revocations,
                  .budgets = budgets,
                  .metrics = metrics,
                  .server_metrics = server_metrics,
                  .endpoint = endpoint.get(),
                  .events = events,
                  .board = board,
                  .reachability = reachability,
                  .scraped_cloud = scraped_cloud},
                 std::move(loaded));
}

}  // namespace spoke::ipam
