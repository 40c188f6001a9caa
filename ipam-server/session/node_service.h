// The agents' streams: reads and checks what they say, hands it to the loop, and writes what the
// loop answers. What a stream may say is decided by its StreamGate.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/budget/budget_keeper.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/policy/bundle_message.h"
#include "ipam-server/revocation/revocations.h"
#include "ipam-server/session/stream_gate.h"
#include "ipam-server/session/to_agent.h"
#include "ipam-server/traffic/traffic_book.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::ipam {

class AgentStream;

// What the server takes of an agent in one message: 4,096 assignments, more than a node has
// addresses, whose texts have 512 bytes each. A longer one ends its stream.
inline constexpr int kMaxAgentMessageBytes = 2 << 20;

// The way from the loop to the agents' streams, made before either. Thread-safe.
//
// What the loop says is carried out by a thread of its own, in the order it was said: gRPC writes
// to the socket on the thread that starts a write, and the loop has the next commit to make
// meanwhile.
class AgentStreams final : public AgentLink {
 public:
  // `margin` says for how long no other server can lead, from now on. While that is not above zero,
  // nothing more is said to an agent, and each stream ends with UNAVAILABLE, so that its agent goes
  // to the next server.
  explicit AgentStreams(
      std::string server_version,
      std::function<absl::Duration()> margin = [] { return absl::InfiniteDuration(); });
  AgentStreams(const AgentStreams&) = delete;
  AgentStreams& operator=(const AgentStreams&) = delete;
  // Carries out what was said until now. The gRPC server must be gone.
  ~AgentStreams() override;

  void Send(SessionId session, ToAgent message) override;
  void ReadNext(SessionId session) override;
  void Close(SessionId session, absl::Status why) override;
  // Ends the session at once, whatever waits to be written, and takes nothing more that its agent
  // says.
  void Cut(SessionId session, const absl::Status& why);

 private:
  friend class AgentStream;
  friend class NodeService;
  void Forget(SessionId session);
  // Calls `act` with the stream of `session` if it is still there; it stays there meanwhile.
  template <typename Act>
  void With(SessionId session, const Act& act);

  struct ReadOrder {};
  struct CloseOrder {
    absl::Status why;
  };
  struct Order {
    SessionId session;
    std::variant<ToAgent, ReadOrder, CloseOrder> what;
  };
  void Enqueue(Order order);
  void CarryOut();
  void CarryOut(std::vector<Order> orders);
  bool Leads() const { return margin_() > absl::ZeroDuration(); }
  void CloseAll();
  // What is said to the agent when the loop says this.
  node_api::ServerMessage Said(BundleUpdate update);
  node_api::ServerMessage Said(BundleTrial trial);
  node_api::ServerMessage Said(node_api::Welcome welcome);
  template <typename Message>
  node_api::ServerMessage Said(Message message) {
    return message;
  }

  const std::string server_version_;
  const std::function<absl::Duration()> margin_;
  BundleMessages bundles_;  // The carrying thread's.
  absl::Mutex mutex_;
  SessionId last_session_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<SessionId, AgentStream*> streams_ ABSL_GUARDED_BY(mutex_);

  absl::Mutex orders_mutex_;
  std::vector<Order> orders_ ABSL_GUARDED_BY(orders_mutex_);
  bool stopped_ ABSL_GUARDED_BY(orders_mutex_) = false;
  std::thread carrier_;  // It stands last, since it uses all of the above.
};

// Thread-safe. One reactor object a stream; gRPC's threads call them.
//
// An agent must bear its node's name in its certificate with TLS, so that no node can speak for
// another; what else the certificate proves of the node (enroll/node_identity.h) counts in place of
// what the agent says. An agent whose version does not work with ours (ADR 20) is refused at its
// hello with FAILED_PRECONDITION, and one that is revoked (revocation/deny_list.h) with
// PERMISSION_DENIED, also while its stream is open; every call begins with our time in the metadata
// `spoke-time-ms` and ends with our version in `spoke-version`. What cannot be ends its stream with
// INVALID_ARGUMENT; the message names node and field, and is logged too.
class NodeService final : public v1::NodeService::CallbackService {
 public:
  struct Edges {
    AgentStreams& streams;
    FleetLoop& loop;
    TrafficBook& traffic;
    BudgetKeeper& budgets;
    Revocations& revocations;
  };
  // Borrows the edges, which must outlive the gRPC server.
  NodeService(StreamGate::Rules rules, const Edges& edges)
      : rules_(std::move(rules)), edges_(edges) {}
  NodeService(const NodeService&) = delete;
  NodeService& operator=(const NodeService&) = delete;

  grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  friend class AgentStream;

  const StreamGate::Rules rules_;
  const Edges edges_;
};

}  // namespace spoke::ipam
