// The stream to the server: keeps one open, says hello on each, carries reports out and desired
// state in. Decides nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/backoff.h"
#include "lib/rpc/credentials.h"
#include "lib/telemetry/log.h"
#include "netagent/core/server_messages.h"
#include "netagent/kernel/router.h"
#include "netagent/sync/attachments.h"
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
    base::Backoff backoff;
  };
  // Called on the session's threads: they must only post to the agent's loop.
  struct Callbacks {
    // A stream is being opened: answer with Begin(). Until then nothing is sent.
    std::function<void()> on_connecting;
    std::function<void(DesiredState)> on_desired;
  };

  // Borrows `log`.
  ServerSession(Settings settings, Callbacks callbacks, telemetry::Log& log);
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;
  // Ends the stream and waits for the threads.
  ~ServerSession() override;

  // Connects and goes on connecting, with jittered backoff; a server that cannot be reached is
  // complained about once. Errors: what is wrong with the TLS files.
  absl::Status Start();

  // Says hello on the stream that is being opened; what Report() says from now on follows it.
  void Begin(const Greeting& greeting, const Nic& nic);

  void Report(const LendingReport& report) override;
  void Acknowledge(uint64_t desired_version) override;

 private:
  void Run();
  absl::Status RunStream();
  void WriteLoop(void* stream);
  bool WaitForRetry(absl::Duration delay);
  void Receive(const v1::ServerMessage& message);
  void Enqueue(v1::AgentMessage message);

  const Settings settings_;
  const Callbacks callbacks_;
  telemetry::Log& log_;

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;   // The present stream has ended.
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;  // Hello of the present stream is queued.
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<v1::AgentMessage> unsent_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;

  bool welcomed_ = false;  // Session thread only, as the next.
  bool complained_ = false;
  std::thread thread_;
};

}  // namespace spoke::netagent
