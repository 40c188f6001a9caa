// A simulated node on a stream of its own: one channel, one TCP connection, as a real agent has.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/rpc/credentials.h"
#include "proto/spoke/v1/node.grpc.pb.h"
#include "tests/bench/swarm/sim_node.h"

namespace grpc {
class Channel;
}

namespace spoke::swarm {

class Agent;
class Stream;

// Returns the nanoseconds of CLOCK_MONOTONIC.
int64_t NowNs();

// Has all agents of this process, from the first on, trust the authority whose certificate is in
// that file. Call it before there are other threads.
void ShareAuthority(const std::string& ca);

// The events that agents tell their owner. They are called on gRPC's threads, so thread-safe and
// quick.
class AgentEvents {
 public:
  virtual ~AgentEvents() = default;
  // The stream has ended. The receiver destroys it, on a thread that is not gRPC's, and has the
  // agent connect again.
  virtual void OnEnded(Agent& agent, std::unique_ptr<Stream> stream, const grpc::Status& why) = 0;
  // The server has taken the hello, and says within which time it wants its agents back once they
  // have lost it; zero: that is theirs to choose.
  virtual void OnWelcomed(Agent& agent, absl::Duration reconnect_within) = 0;
  // An acknowledgement of state was written while the node had as many addresses as were wanted.
  virtual void OnSynced(Agent& agent) = 0;
  virtual void OnLatency(int64_t nanoseconds) = 0;
  // The server has acknowledged a write, a report or a hello.
  struct Acknowledged {
    int64_t sent = 0;     // When it was sent (NowNs()).
    int64_t wanted = -1;  // Since when what it says had waited; -1: it says that nothing is new.
  };
  virtual void OnAcknowledged(Agent& agent, const Acknowledged& what) = 0;
};

// The agent. Thread-safe. Owns its node; borrows the events.
class Agent {
 public:
  struct Target {
    std::vector<std::string> servers;  // One or more, of which one serves at a time.
    rpc::TlsFiles tls;                 // The TLS files; "{}" in a path stands for the node's name.
    size_t addresses = 0;              // The number that a node waits for.
  };

  Agent(SimNode node, const Target& target, AgentEvents& events)
      : index_(node.node()),
        target_(target),
        events_(events),
        node_(std::move(node)),
        channels_(target.servers.size()) {}

  uint32_t index() const { return index_; }

  // Opens a stream to the server that is next. There must be none. Errors: what is wrong with the
  // TLS files.
  absl::Status Connect();
  // Has the next Connect() go to the next server of the list, or to that one.
  void TurnToNextServer();
  void TurnTo(size_t server);
  size_t server() const;
  void Cancel();

  // Sends what the node says of budgets now; false when there is nothing to say.
  bool ReportBudgets();

  // Runs `act` on the node and sends what follows from it.
  template <typename Act>
  auto WithNode(const Act& act) {
    absl::MutexLock lock(&mutex_);
    auto result = act(node_);
    Pump();
    return result;
  }

 private:
  friend class Stream;

  absl::StatusOr<std::shared_ptr<grpc::Channel>> FindChannel()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRead(const v1::ServerMessage& message);
  void OnWritten();
  void OnBroken();
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t index_;
  const Target& target_;
  AgentEvents& events_;

  mutable absl::Mutex mutex_;
  SimNode node_ ABSL_GUARDED_BY(mutex_);
  size_t server_ ABSL_GUARDED_BY(mutex_) = 0;  // The index of the server that Connect() takes.
  // The channel to each server; null: none yet. Each stream has a connection of its own all the
  // same. They are kept since to make one costs this side more than the handshake.
  std::vector<std::shared_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mutex_);
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // The stream while it can be written to.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::AgentMessage> answers_ ABSL_GUARDED_BY(mutex_);
  // The message, which gRPC reads while writing_.
  v1::AgentMessage outgoing_ ABSL_GUARDED_BY(mutex_);
};

// One attempt to talk to the server.
class Stream final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ServerMessage> {
 public:
  Stream(Agent& agent, std::shared_ptr<grpc::Channel> channel);

  void Start();
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  Agent& agent_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::NodeService::Stub> stub_;
  grpc::ClientContext context_;
  v1::ServerMessage incoming_;
};

}  // namespace spoke::swarm
