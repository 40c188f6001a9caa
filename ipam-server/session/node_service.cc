#include "ipam-server/session/node_service.h"

#include <utility>
#include <vector>

#include "ipam-server/session/node_convert.h"
#include "lib/base/cut_text.h"
#include "lib/base/status.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/status.h"
#include "lib/rpc/version_key.h"

namespace spoke::ipam {
namespace {

// What of an agent's complaint is kept.
constexpr size_t kMaxErrorLength = 1024;

// Agents receive what gRPC takes by default; no delta of a policy is longer than a full bundle.
static_assert(2 * kMaxBundleBytes <= GRPC_DEFAULT_MAX_RECV_MESSAGE_LENGTH);

}  // namespace

// One stream. gRPC deletes nothing: OnDone() ends the object's life.
class AgentStream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage> {
 public:
  AgentStream(const NodeService& service, SessionId id, rpc::PeerCertificate peer)
      : edges_(service.edges_),
        id_(id),
        gate_(service.rules_, std::move(peer.names), std::move(peer.uris)) {}

  void Start() { StartRead(&incoming_); }

  void OnReadDone(bool ok) override {
    if (!ok) {
      edges_.loop.PostClosed(id_);
      FinishWith(absl::OkStatus());
      return;
    }
    if (absl::Status status = Dispatch(); !status.ok()) {
      if (gate_.node()) status = base::Annotate(status, "node " + gate_.node()->name);
      edges_.loop.PostClosed(id_, std::string(base::MessageOf(status)));
      FinishWith(status);
    }
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writes_.OnWritten(ok);  // Where it is broken, OnReadDone() says so as well.
    Advance();
  }

  void OnDone() override {
    if (gate_.node()) edges_.budgets.OnStreamEnd(*gate_.node(), id_);
    edges_.streams.Forget(id_);
    delete this;
  }

  void Write(v1::ServerMessage message) {
    absl::MutexLock lock(&mutex_);
    writes_.Push(std::move(message));
    Advance();
  }

  void Read() {
    absl::MutexLock lock(&mutex_);
    if (!writes_.has_ended()) StartRead(&incoming_);
  }

  void FinishWith(absl::Status why) {
    absl::MutexLock lock(&mutex_);
    writes_.End(std::move(why));
    Advance();
  }

 private:
  using Writes = StreamWrites<v1::ServerMessage>;

  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    switch (writes_.Next()) {
      case Writes::Act::kNothing:
        return;
      case Writes::Act::kWrite:
        return StartWrite(&writes_.front());
      case Writes::Act::kFinish:
        return Finish(rpc::ToGrpc(writes_.why()));
    }
  }

  // What changes nothing that is stored, so that the loop need not hear of it; or what a newer
  // agent says, and this server does not know.
  void TakeAside() {
    if (incoming_.has_traffic()) {
      edges_.traffic.Take(*gate_.node(), FromWire(incoming_.traffic()));
    }
    if (incoming_.has_budget_report()) {
      edges_.budgets.OnReport(*gate_.node(), id_, FromWire(incoming_.budget_report()));
    }
  }

  absl::Status Dispatch() {
    FleetLoop& loop = edges_.loop;
    const bool is_hello = incoming_.message_case() == v1::AgentMessage::kHello;
    if (incoming_.message_case() != v1::AgentMessage::MESSAGE_NOT_SET) {
      RETURN_IF_ERROR(gate_.CheckOrder(is_hello));
    }
    switch (incoming_.message_case()) {
      case v1::AgentMessage::kHello: {
        ASSIGN_OR_RETURN(Hello hello, FromWire(incoming_.hello()));
        RETURN_IF_ERROR(gate_.Admit(hello));
        loop.PostHello(id_, std::move(hello));
        return absl::OkStatus();
      }
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

  const NodeService::Edges& edges_;
  const SessionId id_;
  StreamGate gate_;            // Read and changed by one read at a time.
  v1::AgentMessage incoming_;  // Likewise.

  absl::Mutex mutex_;
  Writes writes_ ABSL_GUARDED_BY(mutex_);
};

grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* NodeService::Connect(
    grpc::CallbackServerContext* context) {
  rpc::PeerCertificate peer = rpc::PeerCertificateOf(*context->auth_context());
  context->AddTrailingMetadata(rpc::kVersionKey, rules_.server_version);
  AgentStream* stream = nullptr;
  {
    absl::MutexLock lock(&edges_.streams.mutex_);
    const SessionId id = ++edges_.streams.last_session_;
    stream = new AgentStream(*this, id, std::move(peer));
    edges_.streams.streams_.emplace(id, stream);
  }
  stream->Start();
  return stream;
}

template <typename Act>
void AgentStreams::With(SessionId session, const Act& act) {
  absl::MutexLock lock(&mutex_);
  const auto it = streams_.find(session);
  if (it != streams_.end()) act(*it->second);
}

AgentStreams::AgentStreams(std::string server_version)
    : server_version_(std::move(server_version)), carrier_([this] { CarryOut(); }) {}

AgentStreams::~AgentStreams() {
  {
    absl::MutexLock lock(&orders_mutex_);
    stopped_ = true;
  }
  carrier_.join();
}

void AgentStreams::Send(SessionId session, ToAgent message) {
  Enqueue({session, std::move(message)});
}

void AgentStreams::ReadNext(SessionId session) { Enqueue({session, ReadOrder()}); }

void AgentStreams::Close(SessionId session, absl::Status why) {
  Enqueue({session, CloseOrder{std::move(why)}});
}

void AgentStreams::Enqueue(Order order) {
  absl::MutexLock lock(&orders_mutex_);
  orders_.push_back(std::move(order));
}

void AgentStreams::CarryOut() {
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

v1::ServerMessage AgentStreams::Wire(const ToAgent& message) {
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
  return ToWire(message, server_version_);
}

void AgentStreams::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(session);
}

}  // namespace spoke::ipam
