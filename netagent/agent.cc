#include "netagent/agent.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/netns/netns.h"
#include "lib/os/file.h"
#include "lib/policy/wire.h"
#include "netagent/enroll/enrollment.h"
#include "netagent/links/kernel_links.h"
#include "netagent/node/node_setup.h"

namespace spoke::netagent {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(5);
constexpr absl::Time kNever = absl::InfiniteFuture();

std::optional<CniInstallSettings> CniInstallOf(const AgentConfig& config) {
  if (!config.cni) return std::nullopt;
  return CniInstallSettings{.plugin_source = config.cni->plugin,
                            .plugin_directory = config.cni->bin_dir,
                            .conf_source = config.cni->content,
                            .conf_directory = config.cni->conf_dir,
                            .conf_file = config.cni->conf_file};
}

std::function<uint64_t()> RandomNumbers() {
  return [random = std::mt19937_64(std::random_device{}())]() mutable { return random(); };
}

// Whether the kernel tracks any connection; false where that cannot be read.
bool TracksConnections() {
  const auto count = os::ReadFile("/proc/sys/net/netfilter/nf_conntrack_count");
  return count.ok() && *count != "0\n";
}

// Reads what pods may have of the tracked connections, as long as the kernel tracks any.
std::function<std::optional<ConnectionShares>()> SharesReader(const ShareSettings& settings,
                                                              const TrafficParts& parts) {
  if (parts.connections == nullptr || !parts.read_table_use) return {};
  return [settings, read = parts.read_table_use]() -> std::optional<ConnectionShares> {
    const auto use = read();
    if (!use.ok() || use->entries == 0) return std::nullopt;
    return SharesOf(settings, *use);
  };
}

// What Traffic calls of the egress parts, which are made later.
struct EgressCalls {
  std::function<absl::StatusOr<EgressSettings>()> begin;
  std::function<absl::Status(const EgressRules&)> put_gateway_routes;
};

// Makes the Traffic before the parts that hold it are constructed.
std::optional<Traffic> MakeTraffic(const AgentConfig& config, const TrafficParts& parts,
                                   const os::Clock& clock, telemetry::Log& log,
                                   EgressCalls egress) {
  if (parts.tables == nullptr || parts.routes == nullptr) return std::nullopt;
  return std::optional<Traffic>(
      std::in_place,
      Traffic::Settings{
          .fast_path = {.uplink = config.nic, .wanted = config.traffic.fast_path},
          .platform_access = config.traffic.platform_access,
          .require_policy = config.traffic.require_policy,
          .server_addresses = [addresses = parts.server_addresses] { return addresses; }},
      Traffic::Edges{.tables = *parts.tables,
                     .routes = *parts.routes,
                     .clock = clock,
                     .log = log,
                     .begin_egress = std::move(egress.begin),
                     .put_gateway_routes = std::move(egress.put_gateway_routes),
                     .fast_path = parts.fast_path,
                     .read_obstacles = config.traffic.yields ? parts.read_obstacles : nullptr,
                     .tracks_connections = &TracksConnections,
                     .read_shares = SharesReader(config.traffic.shares, parts)});
}

std::optional<Shaping> MakeShaping(const TrafficParts& parts, ServerLink& server,
                                   const os::Clock& clock, telemetry::Log& log) {
  if (parts.shaper == nullptr) return std::nullopt;
  return std::optional<Shaping>(
      std::in_place,
      Shaping::Edges{.shaper = *parts.shaper,
                     .server = server,
                     .clock = clock,
                     .log = log,
                     .monotonic = [] { return absl::FromUnixMillis(os::MonotonicMs()); },
                     .random = RandomNumbers()});
}

// Lists who takes a pod: it is shaped before it is let out.
std::vector<PodTraffic*> OwnersOf(std::optional<Shaping>& shaping,
                                  std::optional<Traffic>& traffic) {
  std::vector<PodTraffic*> owners;
  if (shaping) owners.push_back(&*shaping);
  if (traffic) owners.push_back(&*traffic);
  return owners;
}

EgressParts::Settings EgressOf(const EgressConfig& config) {
  EgressParts::Settings out{.platform = config.platform};
  if (config.ip_masq) {
    out.ip_masq_path = config.ip_masq->path;
    out.ip_masq_ipv6 = config.ip_masq->ipv6;
  }
  if (config.gateway) {
    out.gateway = {.health_port = config.gateway->health_port,
                   .draining = config.gateway->draining,
                   .drain_file = config.gateway->drain_file};
    out.gateway_addresses = config.gateway->addresses;
  }
  if (config.nat_host) {
    out.nat_host = {.endpoints = config.nat_host->endpoints, .max_age = config.nat_host->max_age};
    out.nat_host_port = config.nat_host->health_port;
  }
  return out;
}

std::vector<std::string> TokenFiles(const AgentConfig& config) {
  std::vector<std::string> files = {config.state_dir + "/store-token"};
  if (!config.lasting_dir.empty()) files.push_back(config.lasting_dir + "/store-token");
  return files;
}

}  // namespace

Agent::Agent(const AgentConfig& config, const node_api::NodeIdentity& identity, Edges edges)
    : config_(config),
      identity_(identity),
      links_(edges.links),
      log_(edges.log),
      clock_(edges.clock),
      loop_(std::move(edges.loop)),
      heartbeat_(edges.health.heartbeat),
      cloud_(std::move(edges.cloud)),
      session_({.servers = config.servers,
                .server_name = config.server_name,
                .tls = config.tls,
                .agent_version = identity.agent_version,
                .reconnect = {.first_connect = config.connect_jitter}},
               {.on_connecting = [this] { Post([this] { SayHello(); }); },
                .on_request =
                    [this](node_api::ServerMessage request) {
                      Post([this, request = std::move(request)] {
                        std::visit([this](const auto& r) { Take(r); }, request);
                      });
                    },
                .on_outcome =
                    [this](const absl::Status& outcome) {
                      Post([this, outcome] {
                        health_.OnSession(outcome);
                        adds_.OnSession(outcome);
                      });
                    },
                .on_connection =
                    [clock = edges.health.server_clock](const auto& connection) {
                      if (clock != nullptr) clock->OnConnection(connection);
                    }},
               log_),
      traffic_(MakeTraffic(config, edges.traffic, clock_, log_,
                           {.begin =
                                [this] {
                                  return egress_ ? egress_->Start()
                                                 : absl::StatusOr<EgressSettings>(EgressSettings());
                                },
                            .put_gateway_routes =
                                [this](const EgressRules& rules) {
                                  return egress_ ? egress_->PrepareWays(rules) : absl::OkStatus();
                                }})),
      shaping_(MakeShaping(edges.traffic, session_, clock_, log_)),
      traffic_parts_(std::move(edges.traffic)),
      attachments_({.node_name = identity.node_name,
                    .nic = config.nic,
                    .cooldown = config.cooldown,
                    .mtu = config.mtu,
                    .proof_required = cloud_.proves(),
                    .explain_unproven = [this] { return ExplainUnproven(); },
                    .clearing_required = edges.conntrack != nullptr,
                    .trace_netns = &netns::TraceOf,
                    .unrecorded_use_end = edges.unrecorded_use_end},
                   {links_, session_, clock_, log_, OwnersOf(shaping_, traffic_)},
                   std::move(edges.journal)),
      nic_check_(config.nic, cloud_.secondaries, {links_, clock_, log_}, attachments_),
      repairer_(
          {.repair_pods = config.repair_pods,
           .open_netns = &OpenPodNetns,
           .prepare_node = [root = SysctlRoot(config.host_root)] { return PrepareNode(root); },
           .on_pod_mac =
               [this](const std::string& link, const ip::MacAddress& mac) {
                 if (traffic_) traffic_->OnPodMac(link, mac);
               }},
          {links_, clock_, log_}, attachments_),
      lost_dels_({.after = config.lost_del_after, .look_at_netns = &netns::LookAt}, {clock_, log_},
                 repairer_, attachments_),
      store_token_(TokenFiles(config), log_),
      policy_(config.state_dir + "/policy", session_, log_,
              {.put_in_force = [this](const Policy& policy) { return PutInForce(policy); },
               .count_cuts =
                   [this](const Policy& policy, PolicyKeeper::CountDone done) {
                     CountCuts(policy, /*beyond_those_in_force=*/true, std::move(done));
                   }}),
      policy_prober_([this](std::function<void()> work) { Post(std::move(work)); },
                     [this](const node_api::ProbeAnswer& answer) { session_.Answer(answer); }),
      tombstones_(
          os::DirectoryOf(config.cni_socket) + "/tombstones",
          [this](const auto& key, absl::Time at) { return attachments_.DelAskedAt(key, at); },
          log_),
      cni_installer_(CniInstallOf(config), log_),
      health_(fmt::format("{}", fmt::join(config.servers, ", ")), config.nic,
              {.clock = clock_,
               .cni_reason = [this] { return CniReason(); },
               .node_findings = std::move(edges.health.node_findings),
               .no_certificate = [this] { return EnrollReason(); },
               .say = std::move(edges.health.say)}),
      findings_({.clock = clock_,
                 .read = std::move(edges.health.read_findings),
                 .tell = [this](const auto& findings) { session_.ReportFindings(findings); }}),
      maintenance_({.clock = clock_,
                    .read = std::move(edges.maintenance.read),
                    .tell = [this](const auto& said) { session_.ReportMaintenance(said); }}),
      begin_maintenance_(std::move(edges.maintenance.begin)),
      read_log_(std::move(edges.read_log)),
      try_to_reach_(std::move(edges.health.try_to_reach)),
      say_counted_(std::move(edges.health.say_counted)),
      cni_(
          loop_,
          [this](const cni::Request& request, os::UniqueFd pod_netns, Responder responder) {
            Beat();
            handler_.Handle(request, std::move(pod_netns), std::move(responder));
          },
          log_),
      adds_(config.cni_wait, {.attachments = attachments_,
                              .server = session_,
                              .clock = clock_,
                              .log = log_,
                              .monotonic_ms = &os::MonotonicMs,
                              .random = RandomNumbers(),
                              .take_up_del =
                                  [this](const AttachmentKey& key) {
                                    return tombstones_.TakeUpOne(key, clock_.Now());
                                  }}),
      handler_({.attachments = attachments_,
                .adds = adds_,
                .checker = &repairer_,
                .log = log_,
                .strict_status = config.strict_status}) {
  MakeCloudParts();
  MakeConnectionParts(edges);
  MakeTrafficParts();
  ListParts();
}

void Agent::MakeCloudParts() {
  if (cloud_.neighbours != nullptr) {
    conflicts_.emplace(
        ConflictDetector::Edges{.neighbours = *cloud_.neighbours, .clock = clock_, .log = log_},
        attachments_);
  }
  const auto prove = [this](ip::Family family, HostList* host, WireProbe* wire) {
    verifiers_.push_back(std::make_unique<AddressVerifier>(
        AddressVerifier::Edges{
            .host = host,
            .wire = wire,
            .clock = clock_,
            .log = log_,
            .post = [this](std::function<void()> work) { Post(std::move(work)); }},
        family, config_.azure->prove_deadline, attachments_));
  };
  const ProofRequired proves = cloud_.proves();
  if (proves.ipv4) prove(ip::Family::kV4, cloud_.host.get(), cloud_.wire.get());
  if (proves.ipv6) prove(ip::Family::kV6, cloud_.host_ipv6.get(), nullptr);
  if (!config_.enroll) return;
  enroll_call_.emplace(EnrollServers{.servers = config_.enroll->servers,
                                     .server_name = config_.enroll->server_name,
                                     .ca_file = config_.tls.ca});
  enroller_.emplace(
      Enroller::Settings{.files = config_.tls,
                         .ca_file = config_.enroll->ca_file,
                         .token_file = config_.enroll->token_file,
                         .node_name = identity_.node_name,
                         .vm_id = identity_.vm_id},
      Enroller::Edges{.ask = [this](const EnrollAsk& a) { return enroll_call_->Ask(a); },
                      .cancel = [this] { enroll_call_->Cancel(); },
                      .on_ready = [this] { return session_.Start(); },
                      .clock = clock_,
                      .log = log_});
}

void Agent::MakeConnectionParts(const Edges& edges) {
  const auto post = [this](std::function<void()> work) { Post(std::move(work)); };
  if (edges.conntrack != nullptr) {
    clearing_.emplace(config_.cooldown,
                      ConnectionClearing::Edges{
                          .table = *edges.conntrack, .clock = clock_, .log = log_, .post = post},
                      attachments_);
  }
  if (edges.cuts != nullptr && traffic_) {
    cuts_.emplace(
        EstablishedCuts::Edges{.table = *edges.cuts, .clock = clock_, .log = log_, .post = post});
  }
  if (!traffic_ || traffic_parts_.connections == nullptr || !traffic_parts_.read_table_use) return;
  counting_.emplace(ConnectionCounting::Edges{
      .table = *traffic_parts_.connections,
      .clock = clock_,
      .log = log_,
      .post = post,
      .read_use = traffic_parts_.read_table_use,
      .pods =
          [this] {
            std::vector<PodConnections> pods;
            for (const auto& [link, pod] : traffic_->pods()) {
              pods.push_back({.link = pod.host_index,
                              .addresses = pod.addresses,
                              .pod_namespace = pod.pod_namespace,
                              .pod_name = pod.pod_name});
            }
            return pods;
          },
      .shares = [this] { return traffic_->shares(); },
      .on_over = [this](const OverShare& over) { traffic_->OnOverShare(over); }});
}

void Agent::MakeTrafficParts() {
  if (!traffic_) return;
  reporter_.emplace(
      TrafficReporter::Edges{.read = [this] { return traffic_->Read(/*is_scrape=*/false); },
                             .say_counted = say_counted_,
                             .server = session_,
                             .clock = clock_,
                             .log = log_});
  if (traffic_parts_.gateway_routes != nullptr) {
    egress_.emplace(EgressOf(config_.egress),
                    EgressParts::Edges{.tables = *traffic_parts_.tables,
                                       .routes = *traffic_parts_.gateway_routes,
                                       .probe = gateway_probe_,
                                       .loop = loop_,
                                       .clock = clock_,
                                       .log = log_},
                    EgressParts::Callbacks{.on_gateways =
                                               [this](std::set<GatewayEndpoint> healthy) {
                                                 return traffic_->OnGateways(std::move(healthy));
                                               },
                                           .on_ip_masq =
                                               [this](std::optional<IpMasqConfig> files) {
                                                 return traffic_->OnIpMasq(std::move(files));
                                               }});
  }
  if (ShapesByPolicy() && traffic_parts_.dns != nullptr) {
    dns_names_.emplace(DnsNames::Settings{.resolvers = config_.shaping.resolvers},
                       DnsNames::Edges{.listener = *traffic_parts_.dns,
                                       .loop = loop_,
                                       .clock = clock_,
                                       .log = log_,
                                       .on_learned = [this](auto learned) {
                                         shaping_->OnLearned(std::move(learned));
                                       }});
  }
}

void Agent::ListParts() {
  constexpr Fairness kEvery = Fairness::kEveryTurn;
  constexpr Fairness kTurns = Fairness::kTakesTurns;
  parts_.Add(kEvery, attachments_);
  parts_.Add(kEvery, clearing_);
  parts_.Add(kEvery, cuts_);
  parts_.Add(kEvery, nic_check_);
  parts_.Add(kEvery, conflicts_);
  for (const auto& verifier : verifiers_) parts_.Add(kEvery, *verifier);
  parts_.Add(kEvery, tombstones_);
  parts_.Add(kTurns, repairer_);
  // This looks at what a round of the repairer's has found, and so wakes with it.
  parts_.Add({kEvery, [this](absl::Time) { lost_dels_.Tick(); }, [] { return kNever; }});
  parts_.Add(kTurns, egress_);
  parts_.Add(kTurns, traffic_);
  parts_.Add(kTurns, counting_);
  parts_.Add(kTurns, dns_names_);
  parts_.Add(kTurns, shaping_);
  parts_.Add(kTurns, reporter_);
  // This follows all that may have made an address available. It waits in monotonic time.
  parts_.Add({kEvery, [this](absl::Time) { adds_.Tick(); },
              [this] {
                const auto wake = adds_.NextWake();
                if (!wake) return kNever;
                return clock_.Now() + (*wake - absl::Milliseconds(os::MonotonicMs()));
              }});
  parts_.Add({kEvery, [this](absl::Time now) { cni_installer_.Tick(CanServe(), now); },
              [this] { return cni_installer_.NextWake(CanServe()); }});
  parts_.Add(kEvery, health_);
  parts_.Add(kEvery, findings_);
  parts_.Add(kEvery, maintenance_);
}

absl::Status Agent::Start(const std::vector<Event>& events) {
  RETURN_IF_ERROR(base::Annotate(attachments_.Start(events), "restore attachments"));
  informed_ = !attachments_.assignments().Attached().empty();
  nic_check_.Look();
  policy_.Start();
  RETURN_IF_ERROR(StartTraffic());
  if (policy_.policy().version != 0) TellTargets(policy_.policy());
  // DELs are taken up before anybody asks for an address that one of them has freed.
  tombstones_.TakeUp(Tombstones::kFilesAtStart, clock_.Now());
  RETURN_IF_ERROR(cni_.Listen(config_.cni_socket));
  if (const int fd = cni_installer_.fd(); fd >= 0) {
    RETURN_IF_ERROR(loop_.AddReader(fd, [this] { cni_installer_.OnReadable(); }));
  }
  return StartSession();
}

absl::Status Agent::StartSession() {
  if (!config_.enroll) return session_.Start();
  enroller_->Start();
  return absl::OkStatus();
}

absl::Status Agent::StartTraffic() {
  const std::vector<TrafficPod> pods = attachments_.TrafficPods();
  if (traffic_) RETURN_IF_ERROR(StartCounting(pods));
  // Limits of a policy that is not known stay as they are too.
  if (shaping_ && !(traffic_ && traffic_->holds_unknown_rules())) shaping_->Start(pods);
  return absl::OkStatus();
}

absl::Status Agent::StartCounting(const std::vector<TrafficPod>& pods) {
  const auto kept = policy_.lost() ? std::nullopt : std::optional(policy_.policy());
  RETURN_IF_ERROR(base::Annotate(traffic_->Start(kept, pods), "begin to count"));
  if (traffic_->holds_unknown_rules()) policy_.NotInForce();
  if (NftWatch* const watch = traffic_parts_.watch; watch != nullptr) {
    RETURN_IF_ERROR(loop_.AddReader(watch->fd(), [this, watch] {
      if (watch->Drain()) traffic_->OnTablesChanged();
    }));
  }
  OnRules();
  // Connections that began while no agent was there are cut too.
  if (cuts_ && !traffic_->holds_unknown_rules()) cuts_->Cut(traffic_->Cuts());
  return absl::OkStatus();
}

void Agent::TellTargets(const Policy& policy) {
  if (try_to_reach_) try_to_reach_(ReachTargetsOf(policy));
}

absl::Status Agent::PutInForce(const Policy& policy) {
  if (!traffic_) {
    TellTargets(policy);
    return absl::OkStatus();
  }
  // The check comes first, so that a policy is refused whole.
  if (ShapesByPolicy()) RETURN_IF_ERROR(Shaping::Check(policy));
  const bool held = traffic_->holds_unknown_rules();
  RETURN_IF_ERROR(traffic_->OnPolicy(policy));
  TellTargets(policy);
  if (cuts_) cuts_->Cut(traffic_->Cuts());
  OnRules();
  if (!held || !shaping_) return absl::OkStatus();
  const std::vector<TrafficPod> pods = attachments_.TrafficPods();
  shaping_->Start(pods);
  return absl::OkStatus();
}

void Agent::CountCuts(const Policy& policy, bool beyond_those_in_force,
                      PolicyKeeper::CountDone done) {
  if (!traffic_) return done(CutsByRule());  // The policy would not be in force.
  auto rules = traffic_->CutsOf(policy);
  // An error in a policy is told when the policy is put in force.
  if (!rules.ok()) return done(CutsByRule());
  // To look through the kernel's table takes as long as all the rest of a policy.
  if (beyond_those_in_force && rules->EndNoMoreThan(traffic_->Cuts())) return done(std::nullopt);
  if (cuts_) return cuts_->Count(*std::move(rules), std::move(done));
  if (rules->empty()) return done(CutsByRule());
  done(absl::UnimplementedError("this kernel cannot list tracked connections"));
}

void Agent::Take(const node_api::PolicyTrial& trial) {
  const auto answer = [this,
                       id = trial.id](const absl::StatusOr<std::optional<CutsByRule>>& count) {
    CutsByRule cuts = count.value_or(std::nullopt).value_or(CutsByRule());
    session_.Answer(node_api::PolicyTrialAnswer{
        id, SaidOf(cuts), std::string(count.status().message()), std::move(cuts.flows)});
  };
  const auto policy = ApplyPolicy({}, policy::FromWire(*trial.policy));
  if (!policy.ok()) return answer(policy.status());
  if (traffic_) {
    const auto rules = traffic_->CutsOf(*policy);
    if (!rules.ok()) return answer(rules.status());
  }
  CountCuts(*policy, /*beyond_those_in_force=*/false, answer);
}

void Agent::OnRules() {
  if (traffic_->holds_unknown_rules()) return;
  if (egress_) egress_->OnRules(traffic_->egress(), traffic_->classes());
  if (!ShapesByPolicy()) return;
  const absl::Status status = shaping_->OnPolicy(traffic_->policy(), traffic_->classes());
  if (!status.ok()) log_.Error("shaping_policy_refused", {{"error", status}});
  if (dns_names_) {
    dns_names_->SetNames(shaping_->rules().host_names(), traffic_->classes().services());
  }
}

void Agent::Run(const os::SignalWaiter& signals) {
  std::thread stopper([&] {
    const int signal = signals.Wait();
    log_.Info("agent_stopping", {{"signal", signal}});
    loop_.Stop();
  });
  absl::Duration wait = absl::ZeroDuration();
  while (loop_.RunOnce(wait)) {
    parts_.Tick(clock_.Now(), [this] { Beat(); });
    wait = std::clamp(parts_.NextWake() - clock_.Now(), absl::ZeroDuration(), kLongestWait);
  }
  cni_.Stop();
  stopper.join();
}

void Agent::Post(std::function<void()> work) {
  loop_.Post([this, work = std::move(work)] {
    Beat();
    work();
  });
}

std::string Agent::ExplainUnproven() const {
  std::string text;
  for (const auto& verifier : verifiers_) {
    const std::string more = verifier->Explain();
    if (!text.empty() && !more.empty()) text += ", ";
    text += more;
  }
  return text;
}

bool Agent::CanServe() const { return informed_ && attachments_.assignments().HasUsable(); }

std::string Agent::CniReason() const {
  const std::string reason = cni_installer_.Reason();
  if (reason.empty() || CanServe()) return reason;
  return "this node has no pod addresses yet, so that the network configuration is not in its "
         "place";
}

std::string Agent::EnrollReason() const {
  if (!enroller_) return "";
  const absl::Status standing = enroller_->standing();
  if (standing.ok()) return "";
  return fmt::format("{}; {}", base::MessageOf(standing), EnrollRemedy(standing));
}

void Agent::SayHello() {
  // The stream for which this was asked may be over, and the next one greeted by now: what has come
  // up since would be taken for said.
  if (!session_.AwaitsGreeting()) return;
  const auto nic = links_.ReadNic(config_.nic);
  health_.OnNic(nic.status());
  if (!nic.ok()) {
    log_.Error("nic_unreadable", {{"nic", config_.nic}, {"error", nic.status()}});
    return;
  }
  Greeting greeting = attachments_.BeginSession();
  greeting.hello.node = identity_;
  greeting.hello.nic = {nic->name, nic->mac, nic->mtu, nic->addresses};
  greeting.hello.policy_version = policy_.VersionForHello();
  greeting.hello.store_token = store_token_.token();
  greeting.demand = adds_.DemandForHello();
  session_.Begin(greeting);
  findings_.OnSession();
  maintenance_.OnSession();
  if (ShapesByPolicy()) shaping_->OnStream();
}

void Agent::Take(const node_api::DesiredState& desired) {
  const absl::Status status = attachments_.OnDesired(desired);
  // The look comes before anybody can be assigned an address that has just come.
  nic_check_.Look();
  if (conflicts_) conflicts_->Tick();
  informed_ = informed_ || status.ok();
  if (status.ok()) return store_token_.Keep(desired.store_token);
  log_.Error("desired_state_not_taken", {{"error", status}});
  session_.BeginAnew("the desired state could not be taken");
}

}  // namespace spoke::netagent
