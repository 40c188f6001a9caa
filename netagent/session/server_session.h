// The stream to the server: the gRPC edge of the agent's conversation with it (session_machine.h,
// which decides). Has servers dialled, opens streams, writes and reads, and says on the log what
// became of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/rpc/credentials.h"
#include "lib/telemetry/log.h"
#include "netagent/session/server_dialer.h"
#include "netagent/session/server_link.h"
#include "netagent/session/session_machine.h"
#include "proto/spoke/v1/node.pb.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace spoke::netagent {

// Thread-safe. Three threads of its own: one reads, one writes, and one keeps the time, so that a
// server that reads slowly, or nothing any more, holds up neither the agent's loop nor what is
// decided about it. Dials have threads besides.
class ServerSession final : public ServerLink {
 public:
  struct Settings {
    // At least one, each host:port or unix:/path. Only the one that leads takes agents'
    // connections.
    std::vector<std::string> servers;
    std::string server_name;  // The name their certificates must bear; empty: that of each.
    rpc::TlsFiles tls;
    std::string agent_version;  // The agent's own.
    // The time that a server may take to end a stream that we have ended, before we cut it.
    absl::Duration farewell = absl::Seconds(2);
    ReconnectSettings reconnect;
  };
  // Called on the session's threads: they must only post to the agent's loop.
  struct Callbacks {
    // A stream is being opened: answer with Begin(). Until then nothing is sent.
    std::function<void()> on_connecting;
    // Called in the order in which the server sent them; one stream's before the next is opened.
    std::function<void(node_api::ServerMessage)> on_request;
    // Called with OK (the server has taken the hello) or why an attempt or session ended; a version
    // that does not fit is kFailedPrecondition, with base::CheckSkew()'s text. May be null.
    std::function<void(const absl::Status&)> on_outcome = nullptr;
    // Called with the connection of a stream that is being opened, which lasts as long as the
    // stream. May be null.
    std::function<void(const std::shared_ptr<grpc::Channel>&)> on_connection = nullptr;
  };

  // Borrows `log`.
  ServerSession(Settings settings, Callbacks callbacks, telemetry::Log& log);
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;
  // Ends the stream and waits for the threads.
  ~ServerSession() override;

  // Connects and goes on connecting, with jittered backoff; a server that cannot be reached is
  // complained about once, and one whose version does not work with ours (base/version_skew.h) once
  // for each version of it; that one is asked no faster than the slowest backoff, and what it says
  // is not acted upon. Errors: what is wrong with the TLS files.
  absl::Status Start();

  // Whether a stream is being opened that has yet to be greeted.
  bool AwaitsGreeting();
  // Says hello on the stream that is being opened; what is said from now on follows it.
  void Begin(const Greeting& greeting);

  void Report(const node_api::AssignmentReport& report) override { Say(report); }
  void Acknowledge(uint64_t desired_version) override {
    Say(node_api::DesiredAck{desired_version});
  }
  void AcknowledgePolicy(const node_api::PolicyAck& ack) override { Say(ack); }
  void Answer(const node_api::ReclaimAnswer& answer) override { Say(answer); }
  void Answer(const node_api::Inventory& inventory) override { Say(inventory); }
  void Answer(const node_api::AttachTracesAnswer& traces) override { Say(traces); }
  void Answer(const node_api::ProbeAnswer& probes) override { Say(probes); }
  void Answer(const node_api::PolicyTrialAnswer& trial) override { Say(trial); }
  void Answer(const node_api::NodeDataAnswer& data) override { Say(data); }
  void ReportTraffic(const node_api::TrafficReport& report) override { Say(report); }
  void ReportBudgets(const node_api::BudgetReport& report) override { Say(report); }
  void Ask(const node_api::Demand& demand) override { Say(demand); }
  void ReportConflict(const ip::Address& address,
                      const std::optional<ip::MacAddress>& other_mac) override {
    Say(node_api::ConflictReport{address, other_mac});
  }
  void BeginAnew(std::string_view why) override;
  // Says what the checks of the node find, in place of what was said before and not sent yet.
  void ReportFindings(const node_api::NodeFindings& findings) { Say(findings); }
  // Says what maintenance is announced for the node, likewise.
  void ReportMaintenance(const node_api::Maintenance& maintenance) { Say(maintenance); }

 private:
  // The way a stream ended.
  struct End {
    absl::Status status;
    // The server's version, where a refusal says it.
    std::optional<std::string> refused_by = std::nullopt;
  };
  void Run();
  void OnDialled(size_t server, absl::StatusOr<std::shared_ptr<grpc::Channel>> connection);
  End RunStream(const std::shared_ptr<grpc::Channel>& connection);
  void WriteLoop(void* stream);
  void KeepTime();
  void Receive(const v1::ServerMessage& message);
  template <typename Message>
  void Say(const Message& message) {
    absl::MutexLock lock(&mutex_);
    CarryOut(machine_.Say(message, Now()));
  }
  // CarryOut() what concerns the stream; Tell() log and agent the rest, which takes no lock.
  void CarryOut(const SessionMachine::Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const SessionMachine::Effects& effects);
  void Log(const SessionMachine::Disconnected& end);
  static absl::Time Now();  // The monotonic clock's.
  static double Random();   // Uniform in [0, 1).

  const Settings settings_;
  const Callbacks callbacks_;
  telemetry::Log& log_;

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool connect_ ABSL_GUARDED_BY(mutex_) = false;  // A stream is to be opened, on `connection_`.
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;   // Whether the present stream has ended.
  SessionMachine machine_ ABSL_GUARDED_BY(mutex_);
  // The message to be written next.
  std::optional<node_api::AgentMessage> outgoing_ ABSL_GUARDED_BY(mutex_);
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;         // The present stream is broken, or is to be.
  bool end_writes_ ABSL_GUARDED_BY(mutex_) = false;  // Whether nothing more comes after it.
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // The connection of the next stream: it came of the last dial that the machine has accepted.
  std::shared_ptr<grpc::Channel> connection_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
  ServerDialer dialer_;  // Destroyed first: its threads use the rest.
};

}  // namespace spoke::netagent
