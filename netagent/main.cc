// spoke-netagent: reads the configuration, builds the edges, restores what the last agent left, and
// runs the loop until a signal.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/daemon/daemon_main.h"
#include "lib/os/clock.h"
#include "lib/os/event_loop.h"
#include "lib/os/file.h"
#include "lib/os/signals.h"
#include "netagent/cni/cni_handler.h"
#include "netagent/cni/cni_server.h"
#include "netagent/config.h"
#include "netagent/kernel/netlink_router.h"
#include "netagent/kernel/node_setup.h"
#include "netagent/sync/attachments.h"
#include "netagent/sync/policy_keeper.h"
#include "netagent/sync/server_session.h"

namespace spoke::netagent {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(5);

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

absl::StatusOr<NodeIdentity> ReadIdentity(const AgentConfig& config) {
  NodeIdentity identity{.node_name = config.node_name,
                        .vm_id = config.vm_id,
                        .agent_version = base::kVersion,
                        .labels = config.labels,
                        .vnet = config.vnet};
  if (identity.node_name.empty()) {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) < 0) {
      return base::ErrnoToStatus(errno, "read the host name");
    }
    identity.node_name = name.data();
  }
  if (identity.vm_id.empty()) {
    auto uuid = os::ReadFile("/sys/class/dmi/id/product_uuid");
    if (!uuid.ok()) {
      return base::Annotate(uuid.status(), "this machine has no DMI UUID: set vm_id");
    }
    identity.vm_id = Trimmed(*std::move(uuid));
  }
  ASSIGN_OR_RETURN(std::string boot_id, os::ReadFile("/proc/sys/kernel/random/boot_id"));
  identity.boot_id = Trimmed(std::move(boot_id));
  return identity;
}

// The parts of the agent, tied together. Everything runs on the loop's thread but the two callbacks
// of the session, which only post to it.
class Agent {
 public:
  Agent(const AgentConfig& config, const NodeIdentity& identity, Router& router,
        std::unique_ptr<Journal> journal, telemetry::Log& log)
      : config_(config),
        router_(router),
        log_(log),
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
                 log),
        attachments_({.node_name = identity.node_name,
                      .nic = config.nic,
                      .cooldown = config.cooldown,
                      .mtu = config.mtu},
                     {router, session_, clock_, log}, std::move(journal)),
        policy_(config.state_dir + "/policy", session_, log),
        handler_(attachments_, &os::MonotonicMs, log) {}

  absl::Status Start(const std::vector<Event>& events) {
    ASSIGN_OR_RETURN(os::EventLoop loop, os::EventLoop::Create());
    loop_.emplace(std::move(loop));
    RETURN_IF_ERROR(base::Annotate(attachments_.Start(events), "restore attachments"));
    policy_.Start();
    cni_.emplace(
        *loop_,
        [this](const v1::CniRequest& request, os::UniqueFd pod_netns) {
          return handler_.Handle(request, std::move(pod_netns));
        },
        log_);
    RETURN_IF_ERROR(cni_->Listen(config_.cni_socket));
    return session_.Start();
  }

  // Serves until one of `signals` arrives. Pods keep running: links, routes and journal stay for
  // the next agent.
  void Run(const os::SignalWaiter& signals) {
    std::thread stopper([&] {
      const int signal = signals.Wait();
      log_.Info("agent_stopping", {{"signal", signal}});
      loop_->Stop();
    });
    absl::Duration wait = absl::ZeroDuration();
    while (loop_->RunOnce(wait)) {
      attachments_.Tick();
      const auto wake = attachments_.NextWake();
      wait = wake ? std::clamp(*wake - clock_.Now(), absl::ZeroDuration(), kLongestWait)
                  : kLongestWait;
    }
    stopper.join();
  }

 private:
  void SayHello() {
    const auto nic = router_.ReadNic(config_.nic);
    if (!nic.ok()) {
      log_.Error("nic_unreadable", {{"nic", config_.nic}, {"error", nic.status()}});
      return;
    }
    Greeting greeting = attachments_.BeginSession();
    greeting.policy_version = policy_.VersionForHello();
    session_.Begin(greeting, *nic);
  }

  void Take(const DesiredState& desired) {
    const absl::Status status = attachments_.OnDesired(desired);
    if (status.ok()) return;
    log_.Error("desired_state_not_taken", {{"error", status}});
    session_.BeginAnew("the desired state could not be taken");
  }
  void Take(const ReclaimRequest& request) { attachments_.OnReclaim(request); }
  void Take(const InventoryRequest& request) { attachments_.OnInventory(request); }
  void Take(const PolicyUpdate& update) { policy_.OnPolicy(update); }

  const AgentConfig& config_;
  Router& router_;
  telemetry::Log& log_;
  const os::RealClock clock_;
  std::optional<os::EventLoop> loop_;  // Before the session, whose threads post to it.
  ServerSession session_;
  Attachments attachments_;
  PolicyKeeper policy_;
  CniHandler handler_;
  std::optional<CniServer> cni_;
};

absl::Status Run(const AgentConfig& config, telemetry::Log& log) {
  const os::SignalWaiter signals({SIGINT, SIGTERM});
  ASSIGN_OR_RETURN(const NodeIdentity identity, ReadIdentity(config));
  // The journal's lock first: nothing may be touched while another agent is alive.
  ASSIGN_OR_RETURN(OpenedJournal opened, OpenJournal(config.state_dir + "/journal"));
  if (opened.dropped_bytes > 0) {
    log.Error("journal_damaged", {{"dropped_bytes", opened.dropped_bytes}});
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<NetlinkRouter> router, NetlinkRouter::Create());
  RETURN_IF_ERROR(base::Annotate(router->ReadNic(config.nic).status(), "nic " + config.nic));
  const NodeSetupReport setup = PrepareNode();
  for (const ChangedSetting& setting : setup.changed) {
    log.Info("sysctl_set",
             {{"name", setting.name}, {"before", setting.before}, {"after", setting.after}});
  }
  for (const absl::Status& failure : setup.failed) log.Error("sysctl_failed", {{"error", failure}});

  Agent agent(config, identity, *router, std::move(opened.journal), log);
  RETURN_IF_ERROR(agent.Start(opened.events));
  log.Info("agent_started", {{"version", base::kVersion},
                             {"node", identity.node_name},
                             {"vm", identity.vm_id},
                             {"nic", config.nic},
                             {"socket", config.cni_socket}});
  agent.Run(signals);
  return absl::OkStatus();
}

}  // namespace
}  // namespace spoke::netagent

int main(int argc, char** argv) {
  return spoke::daemon::Main(
      argc, argv,
      {.about = "spoke-netagent lends this node's addresses to pods and owns their links.",
       .config_path = "/etc/spoke/netagent.yaml"},
      [](std::string_view text, const std::string& file) {
        return spoke::netagent::ParseAgentConfig(text, file, &spoke::os::CheckDirectory);
      },
      &spoke::netagent::Run);
}
