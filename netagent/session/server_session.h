// The stream to the server: keeps one open, says hello on each, carries reports out and desired
// the server's requests in. Decides nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/rpc/credentials.h"
#include "lib/telemetry/log.h"
#include "netagent/links/links.h"
#include "netagent/session/outbox.h"
#include "netagent/session/reconnect.h"
#include "netagent/session/server_link.h"
#include "netagent/session/server_messages.h"
#include "proto/spoke/v1/node.pb.h"

namespace grpc {
class ClientContext;
}

namespace spoke::netagent {

// Thread-safe. Two threads of its own: one reads, one writes, so that a server that reads slowly
// never holds up the agent's loop.
class ServerSession final : public ServerLink {
 public:
  struct Settings {
    std::string server;       // host:port, or unix:/path
    std::string server_name;  // Which name its certificate must bear; empty: that of `server`.
    rpc::TlsFiles tls;
    NodeIdentity identity;
    // How long a server may take to end a stream that we have ended, before we cut it.
    absl::Duration farewell = absl::Seconds(2);
    ReconnectSettings reconnect;
  };
  // Called on the session's threads: they must only post to the agent's loop.
  struct Callbacks {
    // A stream is being opened: answer with Begin(). Until then nothing is sent.
    std::function<void()> on_connecting;
    // In the order in which the server sent them; all of one stream before the next is opened.
    std::function<void(ServerRequest)> on_request;
    // OK: the server has taken the hello. Else why an attempt or a session ended; a server whose
    // version does not fit ours is kFailedPrecondition, with base::CheckSkew()'s text. May be null.
    std::function<void(const absl::Status&)> on_outcome = nullptr;
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

  // Says hello on the stream that is being opened; what Report() says from now on follows it.
  void Begin(const Greeting& greeting, const Nic& nic);

  void Report(const AssignmentReport& report) override;
  void Acknowledge(uint64_t desired_version) override;
  void AcknowledgePolicy(const PolicyAck& ack) override;
  void Answer(const ReclaimAnswer& answer) override;
  void Answer(const Inventory& inventory) override;
  void Answer(const AttachTracesAnswer& traces) override;
  void Answer(const ProbeAnswer& probes) override;
  void Answer(const PolicyTrialAnswer& trial) override;
  void ReportTraffic(const TrafficReport& report) override;
  void ReportBudgets(const BudgetReport& report) override;
  void Ask(const Demand& demand) override;
  void ReportConflict(const ip::Address& address,
                      const std::optional<ip::MacAddress>& other_mac) override;
  void BeginAnew(std::string_view why) override;

 private:
  void Run();
  absl::Status RunStream();
  void WriteLoop(void* stream);
  std::optional<v1::AgentMessage> NextToWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelUnlessItEnds();
  bool Wait(absl::Duration delay);
  void Complain(const absl::Status& ended);
  void Receive(const v1::ServerMessage& message);
  void Welcomed(const v1::Welcome& welcome);
  // Notes whether a server of this version may go on with us.
  void JudgeVersion(std::string_view server_version);
  // Lets `add` put something into the outbox, and gives the stream up when that is full.
  template <typename Add>
  void Enqueue(const Add& add);

  const Settings settings_;
  const Callbacks callbacks_;
  telemetry::Log& log_;

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;   // The present stream has ended.
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;  // Begin() has been called for it.
  // Why the stream is to be ended; empty: it is not.
  std::string ending_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::Hello> hello_ ABSL_GUARDED_BY(mutex_);  // Goes before the outbox.
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;

  bool welcomed_ = false;  // Session thread only, as the next.
  bool complained_ = false;
  absl::Status skew_;            // Not OK: the present server does not fit.
  std::string complained_skew_;  // What was last said of that.
  std::thread thread_;
};

}  // namespace spoke::netagent
