#include "ipam-server/session/node_service.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/enroll/node_identity.h"
#include "ipam-server/session/node_convert.h"
#include "lib/base/cut_text.h"
#include "lib/base/status.h"
#include "lib/base/version_skew.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/status.h"
#include "lib/rpc/version_key.h"

namespace spoke::ipam {
namespace {

// Messages that wait for one slow agent. The loop answers what it is told, so more than a few mean
// that the agent has stopped reading.
constexpr size_t kMaxUnsent = 1024;
// What of an agent's complaint is kept.
constexpr size_t kMaxErrorLength = 1024;

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

  // What changes nothing that is stored, so that the loop need not hear of it; or what a newer
  // agent says, and this server does not know.
  void TakeAside() {
    if (incoming_.has_traffic() && service_.traffic_ != nullptr) {
      service_.traffic_->Take(*node_, FromWire(incoming_.traffic()));
    }
    if (incoming_.has_budget_report() && service_.budgets_ != nullptr) {
      service_.budgets_->OnReport(*node_, id_, FromWire(incoming_.budget_report()));
    }
  }

  absl::Status TakeHello() {
    ASSIGN_OR_RETURN(Hello hello, FromWire(incoming_.hello()));
    RETURN_IF_ERROR(CheckPeer(hello));
    // The agent compares too; it hears our version at the end of the call.
    RETURN_IF_ERROR(base::CheckSkew({"spoke-netagent", hello.agent_version},
                                    {"spoke-ipam-server", service_.options_.server_version}));
    greeted_ = true;
    node_ = hello.key;
    service_.loop_->PostHello(id_, std::move(hello));
    return absl::OkStatus();
  }

  absl::Status Dispatch() {
    FleetLoop& loop = *service_.loop_;
    const bool is_hello = incoming_.message_case() == v1::AgentMessage::kHello;
    if (is_hello == greeted_ && incoming_.message_case() != v1::AgentMessage::MESSAGE_NOT_SET) {
      return absl::InvalidArgumentError(is_hello ? "a second Hello on one stream"
                                                 : "the first message must be Hello");
    }
    switch (incoming_.message_case()) {
      case v1::AgentMessage::kHello:
        return TakeHello();
      case v1::AgentMessage::kReport: {
        ASSIGN_OR_RETURN(AssignmentReport report, FromWire(incoming_.report()));
        loop.PostFromAgent(ReportEvent{id_, std::move(report)});
        return absl::OkStatus();
      }
      case v1::AgentMessage::kAck:
        loop.PostFromAgent(DesiredAckEvent{id_, incoming_.ack().version()});
        return absl::OkStatus();
      case v1::AgentMessage::kReclaimAnswer: {
        ASSIGN_OR_RETURN(ReclaimAnswer answer, FromWire(incoming_.reclaim_answer()));
        loop.PostFromAgent(ReclaimAnswerEvent{id_, std::move(answer)});
        return absl::OkStatus();
      }
      case v1::AgentMessage::kPolicyAck: {
        const v1::PolicyAck& ack = incoming_.policy_ack();
        loop.PostFromAgent(PolicyAckEvent{.session = id_,
                                          .version = ack.version(),
                                          .error = base::CutText(ack.error(), kMaxErrorLength),
                                          .held = ack.held(),
                                          .cut = FromWire(ack.cut())});
        return absl::OkStatus();
      }
      case v1::AgentMessage::kPolicyTrialResult:
        loop.PostFromAgent(PolicyTrialEvent{id_, FromWire(incoming_.policy_trial_result())});
        return absl::OkStatus();
      case v1::AgentMessage::kInventory: {
        ASSIGN_OR_RETURN(Inventory inventory, FromWire(incoming_.inventory()));
        loop.PostFromAgent(InventoryEvent{id_, std::move(inventory)});
        return absl::OkStatus();
      }
      case v1::AgentMessage::kConflict: {
        ASSIGN_OR_RETURN(const auto conflict, FromWire(incoming_.conflict()));
        loop.PostFromAgent(ConflictEvent{id_, conflict.first, conflict.second});
        return absl::OkStatus();
      }
      case v1::AgentMessage::kDemand:
        loop.PostFromAgent(DemandEvent{id_, FromWire(incoming_.demand())});
        return absl::OkStatus();
      case v1::AgentMessage::kAttachTraces: {
        ASSIGN_OR_RETURN(AttachTraces traces, FromWire(incoming_.attach_traces()));
        loop.PostFromAgent(AttachTracesEvent{id_, std::move(traces)});
        return absl::OkStatus();
      }
      case v1::AgentMessage::kProbeResults: {
        ASSIGN_OR_RETURN(ProbeAnswer answer, FromWire(incoming_.probe_results()));
        loop.PostFromAgent(ProbeAnswerEvent{id_, std::move(answer)});
        return absl::OkStatus();
      }
      case v1::AgentMessage::kTraffic:
      case v1::AgentMessage::kBudgetReport:
      case v1::AgentMessage::MESSAGE_NOT_SET:
        TakeAside();
        Read();
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // What the certificate proves counts, whatever the agent says.
  absl::Status CheckPeer(Hello& hello) const {
    if (!service_.options_.check_peer_name) return absl::OkStatus();
    const std::string& name = hello.key.name;
    if (std::find(peer_.names.begin(), peer_.names.end(), name) == peer_.names.end()) {
      return absl::PermissionDeniedError(
          fmt::format("the certificate does not bear the node name {}", name));
    }
    ASSIGN_OR_RETURN(const NodeIdentity proved, IdentityIn(peer_.uris, name));
    return TakeIdentity(proved, hello);
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
        v1::ServerMessage wire = Wire(*message);
        With(order.session, [&](AgentStream& stream) { stream.Write(std::move(wire)); });
      } else if (auto* close = std::get_if<CloseOrder>(&order.what)) {
        With(order.session, [&](AgentStream& stream) { stream.FinishWith(std::move(close->why)); });
      } else {
        With(order.session, [](AgentStream& stream) { stream.Read(); });
      }
    }
  }
}

v1::ServerMessage NodeService::Wire(const ToAgent& message) {
  v1::ServerMessage wire;
  if (const auto* update = std::get_if<PolicyUpdate>(&message)) {
    *wire.mutable_policy() = *bundles_.Get(update->from, update->to);
    if (update->max_cut_permille) {
      wire.mutable_policy()->mutable_cut_limit()->set_permille(*update->max_cut_permille);
    }
    return wire;
  }
  if (const auto* trial = std::get_if<PolicyTrial>(&message)) {
    wire.mutable_policy_trial()->set_id(trial->id);
    *wire.mutable_policy_trial()->mutable_policy() = *bundles_.Get(nullptr, trial->policy);
    return wire;
  }
  return ToWire(message, options_.server_version);
}

void NodeService::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(session);
}

}  // namespace spoke::ipam
