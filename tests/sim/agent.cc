#include "tests/sim/agent.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/fnv1a.h"
#include "lib/base/version.h"
#include "netagent/cni/tombstones.h"
#include "proto/spoke/v1/node.pb.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::sim {
namespace {

constexpr absl::Duration kDialPatience = absl::Seconds(20);

// Looks at what is mounted at `path` now.
absl::StatusOr<netns::Trace> LookAt(const NodeState& node, const std::string& path) {
  const auto found = node.namespaces.find(path);
  if (found != node.namespaces.end()) return found->second.trace;
  return netns::Trace{.directory_device = 1, .directory_inode = 1};
}

}  // namespace

AgentProcess::AgentProcess(AgentSettings settings, Edges edges)
    : Process(edges.basis, edges.node.machine, edges.node.key.vm_id),
      settings_(std::move(settings)),
      edges_(std::move(edges)),
      node_(edges_.node),
      clock_(machine_.time_of_day(), machine_.uptime()),
      log_(basis_.trace, who()),
      links_(basis_, *this, node_),
      session_({.servers = settings_.servers,
                .agent_version = base::kVersion,
                .reconnect = {.first_connect = absl::Seconds(1)}}),
      attachments_({.node_name = node_.key.name,
                    .nic = "eth0",
                    .cooldown = basis_.Has(Mutant::kAgentCooldownSkipped) ? absl::Milliseconds(1)
                                                                          : settings_.cooldown,
                    .trace_netns = [this](const std::string& path,
                                          int /*netns*/) { return *LookAt(node_, path); }},
                   {links_, *this, clock_, log_},
                   std::make_unique<SimJournal>(basis_, *this, node_)),
      nic_check_("eth0", {}, {links_, clock_, log_}, attachments_),
      repairer_({.open_netns = [this](const std::string& path) -> absl::StatusOr<os::UniqueFd> {
                   const auto found = node_.namespaces.find(path);
                   if (found == node_.namespaces.end()) return absl::NotFoundError(path);
                   return CopyOf(*found->second.descriptor);
                 },
                 .prepare_node = [] { return netagent::NodeSetupReport(); }},
                {links_, clock_, log_}, attachments_),
      lost_dels_({.after = settings_.lost_del_after,
                  .look_at_netns = [this](const std::string& path) { return LookAt(node_, path); }},
                 {clock_, log_}, repairer_, attachments_),
      adds_(settings_.longest_wait,
            {.attachments = attachments_,
             .server = *this,
             .clock = clock_,
             .log = log_,
             .monotonic_ms = [this] { return absl::ToUnixMillis(machine_.uptime().Now()); },
             .random = [this] { return basis_.random.Next(); },
             .take_up_del =
                 [this](const netagent::AttachmentKey& key) {
                   return TakeUpOne(netagent::TombstoneName(key));
                 }}),
      handler_({.attachments = attachments_, .adds = adds_, .checker = &repairer_, .log = log_}),
      dials_(settings_.servers.size()) {
  ListParts();
}

// The kernel closes what it had open.
AgentProcess::~AgentProcess() {
  if (connection_ != nullptr) {
    connection_->Close(Connection::kAgent, absl::UnavailableError("the agent has ended"));
  }
}

void AgentProcess::OnDeath() {
  serves_ = false;
  edges_.on_death();
}

void AgentProcess::Vanish() {
  if (connection_ != nullptr) connection_->Vanish(Connection::kAgent);
  connection_ = nullptr;
}

void AgentProcess::ListParts() {
  using netagent::Fairness;
  constexpr Fairness kEvery = Fairness::kEveryTurn;
  parts_.Add(kEvery, attachments_);
  parts_.Add(kEvery, nic_check_);
  parts_.Add(
      {kEvery, [this](absl::Time) { TakeUpTombstones(); }, [this] { return tombstones_at_; }});
  parts_.Add(Fairness::kTakesTurns, repairer_);
  parts_.Add(
      {kEvery, [this](absl::Time) { lost_dels_.Tick(); }, [] { return absl::InfiniteFuture(); }});
  parts_.Add({kEvery, [this](absl::Time) { adds_.Tick(); },
              [this] {
                const auto wake = adds_.NextWake();
                if (!wake) return absl::InfiniteFuture();
                const int64_t now_ms = absl::ToUnixMillis(machine_.uptime().Now());
                return clock_.Now() + (*wake - absl::Milliseconds(now_ms));
              }});
}

void AgentProcess::Start() {
  const absl::Status status = attachments_.Start(SimJournal::Replay(basis_, node_));
  if (!status.ok()) {
    basis_.trace.Tell(who(), "cannot start: {}", status.ToString());
    return Kill();
  }
  nic_check_.Look();
  TakeUpTombstones();
  serves_ = true;
  session_.Start(basis_.random.Below(settings_.servers.size()), Uptime(), basis_.random.Unit());
  WakeSession();
  WakeLoop(absl::ZeroDuration());
}

void AgentProcess::Request(const cni::Request& request, os::UniqueFd pod_netns,
                           netagent::Responder responder) {
  handler_.Handle(request, std::move(pod_netns), std::move(responder));
  WakeLoop(absl::ZeroDuration());
}

bool AgentProcess::MayAssign(const ip::Address& address) const {
  const std::vector<ip::Address> own = assignments().Own();
  return std::find(own.begin(), own.end(), address) != own.end();
}

// --- Tombstones. ---

void AgentProcess::TakeUpTombstones() {
  if (clock_.Now() < tombstones_at_) return;
  tombstones_at_ = clock_.Now() + netagent::Tombstones::kPause;
  std::vector<std::string> names;
  for (const auto& [name, tombstone] : node_.tombstones) names.push_back(name);
  for (const std::string& name : names) TakeUpOne(name);
}

bool AgentProcess::TakeUpOne(const std::string& name) {
  const auto found = node_.tombstones.find(name);
  if (found == node_.tombstones.end()) return false;
  if (basis_.Has(Mutant::kTombstonesIgnored)) {
    node_.tombstones.erase(found);
    return true;
  }
  const auto key = netagent::ParseTombstone(name, found->second.content);
  absl::Status done = key.status();
  if (key.ok()) {
    done = basis_.Has(Mutant::kLateDelTakesTheYounger)
               ? attachments_.Del(*key)
               : attachments_.DelAskedAt(*key, found->second.written);
  }
  if (done.ok()) node_.tombstones.erase(name);
  return done.ok();
}

// --- The loop. ---

void AgentProcess::Post(std::function<void()> work) {
  posted_.push_back(std::move(work));
  WakeLoop(absl::ZeroDuration());
}

void AgentProcess::WakeLoop(absl::Duration wait) {
  const absl::Time at = basis_.schedule.now() + wait;
  if (at >= turn_at_) return;
  turn_at_ = at;
  After(wait, [this, turn = ++turn_] {
    if (turn == turn_) Turn();
  });
}

void AgentProcess::Turn() {
  turn_at_ = absl::InfiniteFuture();
  for (const auto& work : std::exchange(posted_, {})) work();
  parts_.Tick(clock_.Now(), [] {});
  const absl::Time wake = parts_.NextWake();
  if (wake == absl::InfiniteFuture()) return;
  const absl::Duration wait = machine_.uptime().TrueWait(wake - clock_.Now());
  WakeLoop(std::max(wait, absl::Microseconds(100)));
}

void AgentProcess::SayHello() {
  if (!session_.awaits_greeting()) return;
  const auto nic = links_.ReadNic("eth0");
  if (!nic.ok()) return;
  netagent::Greeting greeting = attachments_.BeginSession();
  greeting.hello.node = {.node_name = node_.key.name,
                         .vm_id = node_.said_vm_id,
                         .boot_id = machine_.boot_id(),
                         .agent_version = base::kVersion,
                         .instance = node_.cloud.instance,
                         .subnets = node_.cloud.subnets};
  greeting.hello.nic = {nic->name, nic->mac, nic->mtu, nic->addresses};
  if (!basis_.Has(Mutant::kTokenForgotten)) {
    greeting.hello.store_token = node_.token.empty() ? node_.lasting_token : node_.token;
  }
  if (basis_.Has(Mutant::kHelloForgetsInUse)) greeting.hello.in_use.clear();
  greeting.demand = adds_.DemandForHello();
  CarryOut(session_.Begin(std::move(greeting), Uptime()));
}

void AgentProcess::Take(const node_api::DesiredState& desired) {
  node_api::DesiredState taken = desired;
  if (basis_.Has(Mutant::kWithdrawnLiftedByAnyList) && !taken.full) {
    for (const ip::Address& address : assignments().Withdrawn()) {
      const ip::Prefix range = ip::Prefix::Host(address);
      if (std::find(taken.removed.begin(), taken.removed.end(), range) != taken.removed.end()) {
        continue;
      }
      taken.removed.push_back(range);
      taken.added.push_back({.range = range, .pool = assignments().PoolOf(address)});
    }
  }
  const absl::Status status = attachments_.OnDesired(taken);
  nic_check_.Look();
  if (status.ok()) {
    node_.token = node_.lasting_token = desired.store_token;
    return;
  }
  log_.Error("desired_state_not_taken", {{"error", status}});
  BeginAnew("the desired state could not be taken");
}

void AgentProcess::Take(const node_api::ReclaimRequest& request) {
  if (kept_answer_ && basis_.Has(Mutant::kAnswerOfOlderSession)) {
    node_api::ReclaimAnswer answer = *std::exchange(kept_answer_, std::nullopt);
    answer.id = request.id;
    Say(answer);
    return;
  }
  attachments_.OnReclaim(request);
}

void AgentProcess::Take(const node_api::PolicyUpdate& update) {
  AcknowledgePolicy({.version = update.bundle->version()});
}

void AgentProcess::Answer(const node_api::ReclaimAnswer& answer) {
  if (!answer.agreed.empty()) kept_answer_ = answer;
  Say(answer);
}

// --- The session. ---

absl::Time AgentProcess::Uptime() const {
  return absl::FromUnixMillis(absl::ToUnixMillis(machine_.uptime().Now()));
}

void AgentProcess::BeginAnew(std::string_view why) { CarryOut(session_.BeginAnew(why, Uptime())); }

void AgentProcess::CarryOut(Session::Effects effects) {
  for (Session::Effect& effect : effects) CarryOut(effect);
  WakeSession();
}

void AgentProcess::CarryOut(Session::Effect& effect) {
  if (const auto* dial = std::get_if<Session::Dial>(&effect)) {
    Dial(dial->server);
  } else if (std::holds_alternative<Session::StopDials>(effect)) {
    std::fill(dials_.begin(), dials_.end(), 0);
  } else if (const auto* connect = std::get_if<Session::Connect>(&effect)) {
    Connect(connect->server);
  } else if (const auto* send = std::get_if<Session::Send>(&effect)) {
    Write(send->message);
  } else if (std::holds_alternative<Session::EndWrites>(effect)) {
    if (connection_ != nullptr) connection_->HalfClose(Connection::kAgent);
  } else if (std::holds_alternative<Session::Cut>(effect)) {
    if (connection_ != nullptr) {
      connection_->Close(Connection::kAgent, absl::CancelledError("cut"));
      connection_ = nullptr;
    }
    After(absl::Microseconds(100), [this, stream = stream_] {
      if (stream == stream_) OnStreamEnd(absl::CancelledError("cut"));
    });
  } else if (auto* apply = std::get_if<Session::Apply>(&effect)) {
    Post([this, request = std::move(apply->request)] {
      std::visit([this](const auto& r) { Take(r); }, request);
    });
  } else if (const auto* connected = std::get_if<Session::Connected>(&effect)) {
    log_.Info("server_connected", {{"server", settings_.servers[connected->server]},
                                   {"epoch", connected->welcome.session_epoch}});
  } else if (const auto* refused = std::get_if<Session::Refused>(&effect)) {
    log_.Error("server_message_refused", {{"error", refused->why}});
  } else if (const auto* end = std::get_if<Session::Disconnected>(&effect)) {
    if (end->is_news) log_.Warn("server_unreachable", {{"error", end->why}});
  }
}

void AgentProcess::Dial(size_t server) {
  const std::string& name = settings_.servers[server];
  const uint64_t number = dials_[server] = ++last_dial_;
  const bool answered = edges_.network.Joined(node_.key.name, name);
  const absl::Duration wait =
      answered ? edges_.network.Latency() + edges_.network.Latency() : kDialPatience;
  After(wait, [this, server, number, answered] {
    if (dials_[server] != number) return;
    dials_[server] = 0;
    absl::Status outcome = absl::DeadlineExceededError("no answer");
    if (answered) {
      outcome = edges_.servers.Listens(settings_.servers[server])
                    ? absl::OkStatus()
                    : absl::UnavailableError("connection refused");
    }
    CarryOut(session_.OnDialled(server, outcome, Uptime(), basis_.random.Unit()));
  });
}

void AgentProcess::Connect(size_t server) {
  const std::string& name = settings_.servers[server];
  const uint64_t stream = ++stream_;
  if (!edges_.servers.Listens(name) || !edges_.network.Joined(node_.key.name, name)) {
    After(absl::Milliseconds(1), [this, stream] {
      if (stream == stream_) OnStreamEnd(absl::UnavailableError("the connection ended"));
    });
    return;
  }
  connection_ = edges_.network.Open(node_.key.name, name);
  connection_->Listen(Connection::kAgent, {.on_message =
                                               [this, stream](const std::string& bytes) {
                                                 Enter([this, stream, bytes] {
                                                   if (stream == stream_) Receive(bytes);
                                                 });
                                               },
                                           .on_end =
                                               [this, stream](const absl::Status& why) {
                                                 Enter([this, stream, why] {
                                                   if (stream == stream_) OnStreamEnd(why);
                                                 });
                                               }});
  edges_.servers.Accept(name, connection_, node_.key.name);
  Post([this] { SayHello(); });
}

void AgentProcess::Write(const node_api::AgentMessage& message) {
  const v1::AgentMessage wire = node_api::ToWire(message);
  std::string bytes = wire.SerializeAsString();
  basis_.trace.Tell(who(), "says {} bytes of kind {}, {:016x}", bytes.size(),
                    static_cast<int>(wire.message_case()), base::Fnv1a(bytes));
  if (connection_ != nullptr) connection_->Send(Connection::kAgent, std::move(bytes));
  After(absl::Microseconds(50), [this, stream = stream_] {
    if (stream == stream_) CarryOut(session_.OnSent(Uptime()));
  });
}

void AgentProcess::Receive(const std::string& bytes) {
  v1::ServerMessage wire;
  if (!wire.ParseFromString(bytes)) return;
  auto said = node_api::FromWire(wire);
  if (said.ok() && !*said) return;
  Session::FromServer received =
      said.ok() ? Session::FromServer(**std::move(said))
                : Session::Unreadable{.why = said.status(), .is_desired = wire.has_desired()};
  CarryOut(session_.OnReceived(std::move(received), Uptime()));
}

void AgentProcess::OnStreamEnd(const absl::Status& why) {
  ++stream_;
  connection_ = nullptr;
  CarryOut(session_.OnDisconnected(why, std::nullopt, Uptime(), basis_.random.Unit()));
}

void AgentProcess::WakeSession() {
  const absl::Time wake = session_.NextWake();
  if (wake == absl::InfiniteFuture()) return;
  // The machine's times are whole milliseconds.
  const absl::Duration wait =
      machine_.uptime().TrueWait(wake - machine_.uptime().Now() + absl::Milliseconds(1));
  const absl::Time at = basis_.schedule.now() + wait;
  if (at == session_at_) return;
  session_at_ = at;
  After(wait, [this, number = ++session_wake_] {
    if (number != session_wake_) return;
    session_at_ = absl::InfiniteFuture();
    CarryOut(session_.Tick(Uptime()));
  });
}

}  // namespace spoke::sim
