#include "ipam-server/session/node_service.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/enroll/node_identity.h"
#include "lib/base/status.h"
#include "lib/base/version_skew.h"
#include "lib/node_api/messages.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/status.h"
#include "lib/rpc/version_key.h"

namespace spoke::ipam {
namespace {

// Messages that wait for one slow agent. The loop answers what it is told, so more than a few mean
// that the agent has stopped reading.
constexpr size_t kMaxUnsent = 1024;

// Agents receive what gRPC takes by default; no delta of a policy is longer than a full bundle.
static_assert(2 * kMaxBundleBytes <= GRPC_DEFAULT_MAX_RECV_MESSAGE_LENGTH);

}  // namespace

// One stream. gRPC deletes nothing: OnDone() ends the object's life.
class AgentStream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage> {
 public:
  AgentStream(NodeService& service, SessionId id, rpc::PeerCertificate peer)
      : service_(service), id_(id), peer_(std::move(peer)) {}

  void Start() { StartRead(&incoming_); }

  void OnReadDone(bool ok) override {
    if (!ok) {
      service_.loop_->PostClosed(id_);
      FinishWith(absl::OkStatus());
      return;
    }
    if (absl::Status status = Dispatch(); !status.ok()) {
      if (node_) status = base::Annotate(status, "node " + node_->name);
      service_.loop_->PostClosed(id_, std::string(base::MessageOf(status)));
      FinishWith(status);
    }
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    unsent_.pop_front();
    if (!ok) unsent_.clear();  // The stream is broken; OnReadDone() says so as well.
    Advance();
  }

  void OnDone() override {
    if (node_ && service_.budgets_ != nullptr) service_.budgets_->OnStreamEnd(*node_, id_);
    service_.Forget(id_);
    delete this;
  }

  void Write(v1::ServerMessage message) {
    absl::MutexLock lock(&mutex_);
    if (finish_) return;
    if (unsent_.size() >= kMaxUnsent) {
      finish_ = absl::ResourceExhaustedError("the agent does not read what it is sent");
      unsent_.erase(unsent_.begin() + (writing_ ? 1 : 0), unsent_.end());
    } else {
      unsent_.push_back(std::move(message));
    }
    Advance();
  }

  void Read() {
    absl::MutexLock lock(&mutex_);
    if (!finish_) StartRead(&incoming_);
  }

  void FinishWith(absl::Status why) {
    absl::MutexLock lock(&mutex_);
    if (finish_) return;
    finish_ = std::move(why);
    Advance();
  }

 private:
  // Starts the next write, or finishes when all is written and somebody wants the end.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (!unsent_.empty()) {
      writing_ = true;
      StartWrite(&unsent_.front());
    } else if (finish_) {
      finished_ = true;
      Finish(rpc::ToGrpc(*finish_));
    }
  }

  absl::Status Take(node_api::Hello hello) {
    ASSIGN_OR_RETURN(const bool instance_proved, CheckPeer(hello));
    // The agent compares too; it hears our version at the end of the call.
    RETURN_IF_ERROR(base::CheckSkew({"spoke-netagent", hello.node.agent_version},
                                    {"spoke-ipam-server", service_.options_.server_version}));
    greeted_ = true;
    node_ = KeyOf(hello);
    service_.loop_->PostHello(id_, std::move(hello), instance_proved);
    return absl::OkStatus();
  }
  absl::Status Take(node_api::AssignmentReport report) {
    return Post(ReportEvent{id_, std::move(report)});
  }
  absl::Status Take(const node_api::DesiredAck& ack) {
    return Post(DesiredAckEvent{id_, ack.version});
  }
  absl::Status Take(node_api::ReclaimAnswer answer) {
    return Post(ReclaimAnswerEvent{id_, std::move(answer)});
  }
  absl::Status Take(node_api::PolicyAck ack) { return Post(PolicyAckEvent{id_, std::move(ack)}); }
  absl::Status Take(node_api::PolicyTrialAnswer answer) {
    return Post(PolicyTrialEvent{id_, std::move(answer)});
  }
  absl::Status Take(node_api::Inventory inventory) {
    return Post(InventoryEvent{id_, std::move(inventory)});
  }
  absl::Status Take(const node_api::ConflictReport& conflict) {
    return Post(ConflictEvent{id_, conflict});
  }
  absl::Status Take(node_api::Demand demand) { return Post(DemandEvent{id_, std::move(demand)}); }
  absl::Status Take(node_api::AttachTracesAnswer traces) {
    return Post(AttachTracesEvent{id_, std::move(traces)});
  }
  absl::Status Take(node_api::ProbeAnswer answer) {
    return Post(ProbeAnswerEvent{id_, std::move(answer)});
  }
  // These two change nothing that is stored, so that the loop need not hear of them.
  absl::Status Take(const node_api::TrafficReport& report) {
    if (service_.traffic_ != nullptr) service_.traffic_->Take(*node_, report);
    Read();
    return absl::OkStatus();
  }
  absl::Status Take(const node_api::BudgetReport& report) {
    if (service_.budgets_ != nullptr) service_.budgets_->OnReport(*node_, id_, report);
    Read();
    return absl::OkStatus();
  }
  absl::Status Post(AgentEvent event) {
    service_.loop_->PostFromAgent(std::move(event));
    return absl::OkStatus();
  }

  absl::Status Dispatch() {
    const bool is_hello = incoming_.message_case() == v1::AgentMessage::kHello;
    if (is_hello == greeted_ && incoming_.message_case() != v1::AgentMessage::MESSAGE_NOT_SET) {
      return absl::InvalidArgumentError(is_hello ? "a second Hello on one stream"
                                                 : "the first message must be Hello");
    }
    ASSIGN_OR_RETURN(std::optional<node_api::AgentMessage> message, node_api::FromWire(incoming_));
    if (!message) {  // Of a newer agent.
      Read();
      return absl::OkStatus();
    }
    return std::visit([this](auto&& said) { return Take(std::move(said)); }, *std::move(message));
  }

  // What the certificate proves counts, whatever the agent says. Returns whether it proves which
  // instance the node is on.
  absl::StatusOr<bool> CheckPeer(node_api::Hello& hello) const {
    if (!service_.options_.check_peer_name) return false;
    const std::string& name = hello.node.node_name;
    if (std::find(peer_.names.begin(), peer_.names.end(), name) == peer_.names.end()) {
      return absl::PermissionDeniedError(
          fmt::format("the certificate does not bear the node name {}", name));
    }
    ASSIGN_OR_RETURN(const NodeIdentity proved, IdentityIn(peer_.uris, name));
    RETURN_IF_ERROR(TakeIdentity(proved, hello));
    return !proved.instance.empty();
  }

  NodeService& service_;
  const SessionId id_;
  const rpc::PeerCertificate peer_;
  bool greeted_ = false;         // Read and written by one read at a time.
  std::optional<NodeKey> node_;  // Likewise; of the hello.
  v1::AgentMessage incoming_;    // Likewise.

  absl::Mutex mutex_;
  std::deque<v1::ServerMessage> unsent_ ABSL_GUARDED_BY(mutex_);  // The front one is in flight.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> finish_ ABSL_GUARDED_BY(mutex_);
};

grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* NodeService::Connect(
    grpc::CallbackServerContext* context) {
  rpc::PeerCertificate peer = rpc::PeerCertificateOf(*context->auth_context());
  context->AddTrailingMetadata(rpc::kVersionKey, options_.server_version);
  AgentStream* stream = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    const SessionId id = ++last_session_;
    stream = new AgentStream(*this, id, std::move(peer));
    streams_.emplace(id, stream);
  }
  stream->Start();
  return stream;
}

template <typename Act>
void NodeService::With(SessionId session, const Act& act) {
  absl::MutexLock lock(&mutex_);
  const auto it = streams_.find(session);
  if (it != streams_.end()) act(*it->second);
}

NodeService::NodeService(Options options)
    : options_(std::move(options)), carrier_([this] { CarryOut(); }) {}

NodeService::~NodeService() {
  {
    absl::MutexLock lock(&orders_mutex_);
    stopped_ = true;
  }
  carrier_.join();
}

void NodeService::Send(SessionId session, ToAgent message) {
  Enqueue({session, std::move(message)});
}

void NodeService::ReadNext(SessionId session) { Enqueue({session, ReadOrder()}); }

void NodeService::Close(SessionId session, absl::Status why) {
  Enqueue({session, CloseOrder{std::move(why)}});
}

void NodeService::Enqueue(Order order) {
  absl::MutexLock lock(&orders_mutex_);
  orders_.push_back(std::move(order));
}

void NodeService::CarryOut() {
  while (true) {
    std::vector<Order> orders;
    {
      absl::MutexLock lock(&orders_mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(orders_mutex_) {
        return stopped_ || !orders_.empty();
      };
      orders_mutex_.Await(absl::Condition(&ready));
      if (orders_.empty()) return;
      orders.swap(orders_);
    }
    for (Order& order : orders) {
      if (auto* message = std::get_if<ToAgent>(&order.what)) {
        v1::ServerMessage wire = node_api::ToWire(
            std::visit([this](auto&& said) { return Said(std::move(said)); }, std::move(*message)));
        With(order.session, [&](AgentStream& stream) { stream.Write(std::move(wire)); });
      } else if (auto* close = std::get_if<CloseOrder>(&order.what)) {
        With(order.session, [&](AgentStream& stream) { stream.FinishWith(std::move(close->why)); });
      } else {
        With(order.session, [](AgentStream& stream) { stream.Read(); });
      }
    }
  }
}

node_api::ServerMessage NodeService::Said(BundleUpdate update) {
  return node_api::PolicyUpdate{.bundle = bundles_.Get(update.from, update.to),
                                .max_cut_permille = update.max_cut_permille};
}
node_api::ServerMessage NodeService::Said(BundleTrial trial) {
  return node_api::PolicyTrial{.id = trial.id, .policy = bundles_.Get(nullptr, trial.policy)};
}
node_api::ServerMessage NodeService::Said(node_api::Welcome welcome) {
  welcome.server_version = options_.server_version;
  return welcome;
}

void NodeService::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(session);
}

}  // namespace spoke::ipam
