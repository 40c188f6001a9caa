// The agents' streams: reads and checks what they say, hands it to the loop, and writes what the
// loop answers. Decides nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/budget/budget_keeper.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/policy/bundle_message.h"
#include "ipam-server/session/to_agent.h"
#include "ipam-server/traffic/traffic_book.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::ipam {

class AgentStream;

// What the server takes of an agent in one message: 4,096 assignments, more than a node has
// addresses, whose texts have 512 bytes each. A longer one ends its stream.
inline constexpr int kMaxAgentMessageBytes = 2 << 20;

// Thread-safe. One reactor object a stream; gRPC's threads call them.
//
// What the loop says is carried out by a thread of its own, in the order it was said: gRPC writes
// to the socket on the thread that starts a write, and the loop has the next commit to make
// meanwhile.
//
// With TLS an agent must bear its node's name in its certificate, so that no node can speak for
// another; what else the certificate proves of the node (enroll/node_identity.h) counts in place of
// what the agent says. An agent whose version does not work with ours (ADR 20) is refused at its
// hello with FAILED_PRECONDITION; every call ends with our version in the metadata `spoke-version`.
// What cannot be ends its stream with INVALID_ARGUMENT; the message names node and field, and is
// logged too.
class NodeService final : public v1::NodeService::CallbackService, public AgentLink {
 public:
  struct Options {
    std::string server_version;
    bool check_peer_name = true;  // False only where TLS is off.
  };
  explicit NodeService(Options options);
  NodeService(const NodeService&) = delete;
  NodeService& operator=(const NodeService&) = delete;
  // Carries out what was said until now. The gRPC server must be gone.
  ~NodeService() override;

  // Call once, before the server starts; `loop` must outlive the server.
  void SetLoop(FleetLoop& loop) { loop_ = &loop; }
  // Likewise. Without it, what agents say of traffic is passed over.
  void SetTraffic(TrafficBook& traffic) { traffic_ = &traffic; }
  // Likewise, of budgets.
  void SetBudgets(BudgetKeeper& budgets) { budgets_ = &budgets; }

  grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* Connect(
      grpc::CallbackServerContext* context) override;

  void Send(SessionId session, ToAgent message) override;
  void ReadNext(SessionId session) override;
  void Close(SessionId session, absl::Status why) override;

 private:
  friend class AgentStream;
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
  // What is said to the agent when the loop says this.
  node_api::ServerMessage Said(BundleUpdate update);
  node_api::ServerMessage Said(BundleTrial trial);
  node_api::ServerMessage Said(node_api::Welcome welcome);
  template <typename Message>
  node_api::ServerMessage Said(Message message) {
    return message;
  }

  const Options options_;
  FleetLoop* loop_ = nullptr;
  TrafficBook* traffic_ = nullptr;
  BudgetKeeper* budgets_ = nullptr;
  BundleMessages bundles_;  // Of the carrying thread.
  absl::Mutex mutex_;
  SessionId last_session_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<SessionId, AgentStream*> streams_ ABSL_GUARDED_BY(mutex_);

  absl::Mutex orders_mutex_;
  std::vector<Order> orders_ ABSL_GUARDED_BY(orders_mutex_);
  bool stopped_ ABSL_GUARDED_BY(orders_mutex_) = false;
  std::thread carrier_;  // Last: it uses all of the above.
};

}  // namespace spoke::ipam
