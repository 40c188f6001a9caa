#include "netagent/agent.h"

#include <algorithm>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <variant>

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "netagent/kernel/netlink_inspector.h"
#include "netagent/kernel/node_setup.h"

namespace spoke::netagent {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(5);

std::optional<ConflistSettings> ConflistOf(const AgentConfig& config) {
  if (!config.cni) return std::nullopt;
  return ConflistSettings{.directory = config.cni->conf_dir,
                          .file = config.cni->conf_file,
                          .source = config.cni->content};
}

std::function<uint64_t()> RandomNumbers() {
  return [random = std::mt19937_64(std::random_device{}())]() mutable { return random(); };
}

}  // namespace

Agent::Agent(const AgentConfig& config, const NodeIdentity& identity, Edges edges)
    : config_(config),
      router_(edges.router),
      log_(edges.log),
      cloud_(std::move(edges.cloud)),
      session_({.server = config.server,
                .server_name = config.server_name,
                .tls = config.tls,
                .identity = identity,
                .reconnect = {.first_connect = config.connect_jitter}},
               {.on_connecting = [this] { loop_->Post([this] { SayHello(); }); },
                .on_request =
                    [this](ServerRequest request) {
                      loop_->Post([this, request = std::move(request)] {
                        std::visit([this](const auto& r) { Take(r); }, request);
                      });
                    }},
               log_),
      attachments_({.node_name = identity.node_name,
                    .nic = config.nic,
                    .cooldown = config.cooldown,
                    .mtu = config.mtu,
                    .proof_required = cloud_.proves(),
                    .explain_unproven = [this] { return prover_ ? prover_->Explain() : ""; }},
                   {router_, session_, clock_, log_}, std::move(edges.journal)),
      nic_check_(config.nic, cloud_.secondaries, {router_, clock_, log_}, attachments_),
      repairer_({.repair_pods = config.repair_pods,
                 .spec_of = [this](const Lending& l) { return attachments_.SpecOf(l); },
                 .open_netns = &OpenPodNetns,
                 .prepare_node = [] { return PrepareNode(); }},
                {edges.inspector, router_, clock_, log_}, attachments_),
      check_([this](const Lending& l) { return attachments_.SpecOf(l); }, edges.inspector,
             attachments_, repairer_),
      policy_(config.state_dir + "/policy", session_, log_),
      tombstones_(
          os::DirectoryOf(config.cni_socket) + "/tombstones",
          [this](const AttachmentKey& key, absl::Time written) {
            return attachments_.DelAskedAt(key, written);
          },
          log_),
      conflist_(ConflistOf(config), log_),
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
                .checker = &check_,
                .log = log_,
                .strict_status = config.strict_status}) {}

absl::Status Agent::Start(const std::vector<Event>& events) {
  ASSIGN_OR_RETURN(os::EventLoop loop, os::EventLoop::Create());
  loop_.emplace(std::move(loop));
  RETURN_IF_ERROR(base::Annotate(attachments_.Start(events), "restore attachments"));
  informed_ = !attachments_.lendings().Attached().empty();
  nic_check_.Look();
  if (cloud_.proves()) {
    prover_.emplace(
        Prover::Edges{.host = cloud_.host.get(),
                      .wire = cloud_.wire.get(),
                      .clock = clock_,
                      .log = log_,
                      .post = [this](std::function<void()> work) { loop_->Post(std::move(work)); }},
        config_.azure->prove_deadline, attachments_);
  }
  policy_.Start();
  // Before anybody asks for an address that a DEL has freed.
  tombstones_.TakeUp(Tombstones::kFilesAtStart, clock_.Now());
  cni_.emplace(
      *loop_,
      [this](const v1::CniRequest& request, os::UniqueFd pod_netns, Responder responder) {
        handler_.Handle(request, std::move(pod_netns), std::move(responder));
      },
      log_);
  RETURN_IF_ERROR(cni_->Listen(config_.cni_socket));
  return session_.Start();
}

void Agent::Run(const os::SignalWaiter& signals) {
  std::thread stopper([&] {
    const int signal = signals.Wait();
    log_.Info("agent_stopping", {{"signal", signal}});
    loop_->Stop();
  });
  absl::Duration wait = absl::ZeroDuration();
  while (loop_->RunOnce(wait)) {
    Tick();
    wait = std::clamp(UntilNextWake(), absl::ZeroDuration(), kLongestWait);
  }
  cni_->Stop();
  stopper.join();
}

void Agent::Tick() {
  attachments_.Tick();
  nic_check_.Tick();
  if (prover_) prover_->Tick();
  tombstones_.Tick(clock_.Now());
  repairer_.Tick();
  // After all that may have made an address idle.
  adds_.Tick();
  if (conflist_.pending()) conflist_.Tick(CanServe(), clock_.Now());
}

absl::Duration Agent::UntilNextWake() const {
  absl::Time next = std::min({nic_check_.NextWake(), tombstones_.NextWake(), repairer_.NextWake()});
  if (const auto wake = attachments_.NextWake()) next = std::min(next, *wake);
  if (prover_) {
    if (const auto wake = prover_->NextWake()) next = std::min(next, *wake);
  }
  absl::Duration wait = next - clock_.Now();
  if (const auto wake = adds_.NextWake()) {
    wait = std::min(wait, *wake - absl::Milliseconds(os::MonotonicMs()));
  }
  return wait;
}

bool Agent::CanServe() const {
  if (!informed_) return false;
  const auto counts = attachments_.lendings().CountByPool();
  return std::any_of(counts.begin(), counts.end(),
                     [](const auto& pool) { return pool.second.idle > 0 || pool.second.lent > 0; });
}

void Agent::SayHello() {
  const auto nic = router_.ReadNic(config_.nic);
  if (!nic.ok()) {
    log_.Error("nic_unreadable", {{"nic", config_.nic}, {"error", nic.status()}});
    return;
  }
  Greeting greeting = attachments_.BeginSession();
  greeting.policy_version = policy_.VersionForHello();
  greeting.demand = adds_.DemandForHello();
  session_.Begin(greeting, *nic);
}

void Agent::Take(const DesiredState& desired) {
  const absl::Status status = attachments_.OnDesired(desired);
  // Before anybody can be lent what has just come.
  nic_check_.Look();
  informed_ = informed_ || status.ok();
  if (status.ok()) return;
  log_.Error("desired_state_not_taken", {{"error", status}});
  session_.BeginAnew("the desired state could not be taken");
}

}  // namespace spoke::netagent
