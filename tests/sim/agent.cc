#include "tests/sim/agent.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "tests/sim/liar.h"
#include "tests/sim/mutant.h"

namespace spoke::sim {
namespace {

constexpr absl::Duration kWriteTime = absl::Microseconds(60);
constexpr absl::Duration kLongestWait = absl::Minutes(2);

}  // namespace

Agent::Agent(Settings settings, const Edges& edges)
    : settings_(std::move(settings)),
      edges_(edges),
      links_(edges.machine, life_, edges.watcher, edges.faults, edges.random),
      budget_(edges.machine.index),
      session_({.servers = settings_.servers, .agent_version = base::kVersion, .reconnect = {}}) {}

absl::Status Agent::Start() {
  Machine& machine = edges_.machine;
  const netagent::ParsedJournal parsed = netagent::ParseJournal(machine.journal);
  if (parsed.valid_bytes < machine.journal.size()) edges_.trace.Count("torn journal");
  machine.journal.resize(parsed.valid_bytes);
  attachments_ = std::make_unique<netagent::Attachments>(
      netagent::Attachments::Settings{.node_name = machine.name,
                                      .nic = "eth0",
                                      .cooldown = settings_.cooldown,
                                      .unrecorded_use_end = machine.booted},
      netagent::Attachments::Edges{links_, *this, *machine.clock, log_},
      std::make_unique<AgentJournal>(machine, life_, edges_.watcher, edges_.faults, edges_.random));
  adds_ = std::make_unique<netagent::AddService>(
      kLongestWait,
      netagent::AddService::Edges{.attachments = *attachments_,
                                  .server = *this,
                                  .clock = *machine.clock,
                                  .log = log_,
                                  .monotonic_ms = [this] { return absl::ToUnixMillis(Now()); },
                                  .random = [this] { return edges_.random.Next(); },
                                  .take_up_del =
                                      [this](const netagent::AttachmentKey& key) {
                                        const auto found = edges_.machine.tombstones.extract(key);
                                        if (found.empty()) return false;
                                        return attachments_->DelAskedAt(key, found.mapped()).ok();
                                      }});
  handler_ = std::make_unique<netagent::CniHandler>(
      netagent::CniHandler::Edges{.attachments = *attachments_, .adds = *adds_, .log = log_});
  policy_ = std::make_unique<netagent::PolicyKeeper>(machine.policy_file, *this, log_);
  policy_->Start();
  RETURN_IF_ERROR(attachments_->Start(parsed.events));
  TakeUpTombstones();
  if (life_.dead()) return absl::UnavailableError("the agent is dead");
  const auto server = edges_.random.Below(settings_.servers.size());
  session_.Start(server, Now(), edges_.random.Fraction());
  return absl::OkStatus();
}

void Agent::TakeUpTombstones() {
  std::map<netagent::AttachmentKey, absl::Time>& files = edges_.machine.tombstones;
  for (auto it = files.begin(); it != files.end();) {
    if (life_.dead() || !attachments_->DelAskedAt(it->first, it->second).ok()) {
      ++it;
      continue;
    }
    edges_.trace.Count("tombstone taken up");
    it = files.erase(it);
  }
}

// The order of the agent's own parts: attachments first, ADDs that wait behind all that may have
// made an address available.
void Agent::Work() {
  if (life_.dead()) return;
  if (writing_ && writing_->first <= Now()) {
    const StreamId stream = std::exchange(writing_, std::nullopt)->second;
    if (stream_ == stream) CarryOut(session_.OnSent(Now()));
  }
  if (greet_at_ <= Now()) Greet();
  attachments_->Tick();
  if (!edges_.machine.tombstones.empty()) TakeUpTombstones();
  adds_->Tick();
  CarryOut(session_.Tick(Now()));
  if (edges_.machine.shares_budget) ShareBudget();
}

// What it says to have applied the kernel has by then.
void Agent::ShareBudget() {
  if (!life_.Acts()) return;
  edges_.watcher.OnRate(edges_.machine, budget_.RateAt(Now()));
  const auto report = budget_.TakeReport(Now());
  if (report) Say(*report);
}

absl::Time Agent::NextWake() const {
  if (life_.dead()) return absl::InfiniteFuture();
  absl::Time next = std::min(session_.NextWake(), greet_at_);
  if (writing_) next = std::min(next, writing_->first);
  if (const auto wake = attachments_->NextWake()) next = std::min(next, *wake);
  if (const auto wake = adds_->NextWake()) {
    next = std::min(next, absl::FromUnixMillis(absl::ToInt64Milliseconds(*wake)));
  }
  if (!edges_.machine.tombstones.empty()) next = std::min(next, Now() + absl::Seconds(10));
  if (edges_.machine.shares_budget) next = std::min(next, budget_.NextWake(Now()));
  return next;
}

void Agent::Request(const cni::Request& request, os::UniqueFd netns, uint64_t client) {
  handler_->Handle(request, std::move(netns), netagent::Responder(*this, client));
}

// --- The session. ---

void Agent::Write(node_api::AgentMessage message) {
  const auto& about = edges_.machine.lies_about;
  if (about) Twist(message, *about, edges_.random);
  edges_.network.FromAgent(*stream_, node_api::ToWire(message));
  if (!about || !connected_) return;
  if (const auto more = MakeUp(*about, edges_.random)) {
    edges_.network.FromAgent(*stream_, node_api::ToWire(*more));
  }
}

// NOLINTNEXTLINE(misc-no-recursion): what is applied says things, which is not applied.
void Agent::CarryOut(const Machinery::Effects& effects) {
  for (const Machinery::Effect& effect : effects) {
    if (life_.dead()) return;
    if (const auto* dial = std::get_if<Machinery::Dial>(&effect)) {
      edges_.dial(dial->server);
    } else if (const auto* connect = std::get_if<Machinery::Connect>(&effect)) {
      stream_ = edges_.network.Open(edges_.machine.index, connect->server);
      greet_at_ = Now() + absl::Microseconds(100);
    } else if (const auto* send = std::get_if<Machinery::Send>(&effect)) {
      if (!stream_ || !life_.Acts()) return;
      Write(send->message);
      writing_ = {Now() + kWriteTime, *stream_};
    } else if (std::holds_alternative<Machinery::EndWrites>(effect)) {
      if (stream_) edges_.network.EndOfAgent(*stream_);
    } else if (std::holds_alternative<Machinery::Cut>(effect)) {
      if (stream_) edges_.network.Cut(*stream_);
    } else if (const auto* apply = std::get_if<Machinery::Apply>(&effect)) {
      Apply(apply->request);
    } else if (std::holds_alternative<Machinery::Connected>(effect)) {
      connected_ = true;
      budget_.OnStream(Now());
      edges_.trace.Say("{} connected", edges_.machine.name);
      if (edges_.machine.is_ending) SayMaintenance();
    } else if (const auto* refused = std::get_if<Machinery::Refused>(&effect)) {
      edges_.trace.Say("{} refuses a message: {}", edges_.machine.name,
                       base::MessageOf(refused->why));
    } else if (std::holds_alternative<Machinery::Disconnected>(effect)) {
      connected_ = false;
      budget_.OnStreamEnd();
    }
  }
}

void Agent::Greet() {
  greet_at_ = absl::InfiniteFuture();
  if (!session_.awaits_greeting()) return;
  const auto nic = links_.ReadNic("eth0");
  if (!nic.ok()) return;
  const Machine& machine = edges_.machine;
  netagent::Greeting greeting = attachments_->BeginSession();
  greeting.hello.node = {.node_name = machine.name,
                         .vm_id = machine.vm_id,
                         .boot_id = machine.boot_id,
                         .agent_version = base::kVersion,
                         .instance = machine.instance,
                         .subnets = machine.subnets};
  greeting.hello.nic = {nic->name, nic->mac, nic->mtu, nic->addresses};
  greeting.hello.store_token = machine.token;
  greeting.hello.policy_version = policy_->VersionForHello();
  greeting.demand = adds_->DemandForHello();
  edges_.trace.Say("{} hello in_use={} cooldown={}", machine.name, greeting.hello.in_use.size(),
                   greeting.hello.cooldown.size());
  CarryOut(session_.Begin(std::move(greeting), Now()));
}

// NOLINTNEXTLINE(misc-no-recursion)
void Agent::Apply(const node_api::ServerMessage& message) {
  if (const auto* desired = std::get_if<node_api::DesiredState>(&message)) {
    edges_.trace.Say("{} desired v{}{} +{} -{}", edges_.machine.name, desired->version,
                     desired->full ? " full" : "", desired->added.size(), desired->removed.size());
    if (desired->full && desired->version > 1) edges_.trace.Count("listed anew in a session");
    if (!attachments_->OnDesired(*desired).ok()) {
      return BeginAnew("the desired state could not be taken");
    }
    if (!desired->store_token.empty() && life_.Acts() && !Mutant(40)) {
      edges_.machine.token = desired->store_token;
    }
  } else if (const auto* reclaim = std::get_if<node_api::ReclaimRequest>(&message)) {
    edges_.trace.Say("{} asked for {}", edges_.machine.name, reclaim->ranges.size());
    edges_.trace.Count("asked to give back");
    if (std::any_of(reclaim->ranges.begin(), reclaim->ranges.end(), [&](const ip::Prefix& range) {
          return attachments_->assignments().IsAssigned(range.base());
        })) {
      edges_.trace.Count("asked for what is in use");
    }
    attachments_->OnReclaim(*reclaim);
  } else if (const auto* inventory = std::get_if<node_api::InventoryRequest>(&message)) {
    attachments_->OnInventory(*inventory);
  } else if (const auto* end = std::get_if<node_api::EndAssignment>(&message)) {
    attachments_->OnEndAssignment(*end);
  } else if (const auto* forecast = std::get_if<node_api::Forecast>(&message)) {
    adds_->OnForecast(*forecast);
  } else if (const auto* traces = std::get_if<node_api::AttachTracesRequest>(&message)) {
    adds_->OnTracesRequest(*traces);
  } else if (const auto* policy = std::get_if<node_api::PolicyUpdate>(&message)) {
    policy_->OnPolicy(*policy);
  } else if (const auto* grants = std::get_if<node_api::BudgetGrants>(&message)) {
    edges_.trace.Count("budget granted");
    budget_.OnGrants(*grants, Now());
  }
}

// NOLINTNEXTLINE(misc-no-recursion)
void Agent::BeginAnew(std::string_view why) { CarryOut(session_.BeginAnew(why, Now())); }

void Agent::Dialled(size_t server, const absl::Status& outcome) {
  if (life_.dead()) return;
  CarryOut(session_.OnDialled(server, outcome, Now(), edges_.random.Fraction()));
}

void Agent::Hear(StreamId stream, v1::ServerMessage message) {
  if (life_.dead() || stream_ != stream) return;
  auto said = node_api::FromWire(message);
  if (said.ok() && !*said) return;
  Machinery::FromServer heard;
  if (said.ok()) {
    heard = **std::move(said);
  } else {
    heard = Machinery::Unreadable{.why = said.status(), .is_desired = message.has_desired()};
  }
  CarryOut(session_.OnReceived(std::move(heard), Now()));
}

void Agent::Ended(StreamId stream, const absl::Status& why) {
  if (life_.dead() || stream_ != stream) return;
  stream_.reset();
  greet_at_ = absl::InfiniteFuture();
  edges_.trace.Say("{} stream ended: {}", edges_.machine.name, base::MessageOf(why));
  CarryOut(session_.OnDisconnected(why, std::nullopt, Now(), edges_.random.Fraction()));
}

// --- The runtime. ---

absl::Status Agent::Send(uint64_t client, const cni::Response& response) {
  hang_ups_.erase(client);
  if (!life_.Acts()) return absl::UnavailableError("the agent is dead");
  edges_.answer(client, response);
  return absl::OkStatus();
}

void Agent::Close(uint64_t client) {
  hang_ups_.erase(client);
  if (!life_.dead()) edges_.answer(client, cni::Response{});
}

void Agent::OnHangUp(uint64_t client, std::function<void()> gone) {
  hang_ups_[client] = std::move(gone);
}

// NOLINTNEXTLINE(misc-no-recursion)
void Agent::SayMaintenance() {
  node_api::Maintenance maintenance;
  if (edges_.machine.is_ending) {
    maintenance.events.push_back({.id = "end", .kind = node_api::MaintenanceKind::kTerminate});
  }
  Say(maintenance);
}

void Agent::HangUp(uint64_t client) {
  const auto found = hang_ups_.extract(client);
  if (!found.empty()) found.mapped()();
}

}  // namespace spoke::sim
