#include "ipam-server/session/node_service.h"

#include <string>

#include "absl/time/clock.h"
#include "ipam-server/operators/role.h"
#include "lib/base/status.h"
#include "lib/node_api/messages.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/status.h"
#include "lib/rpc/time_key.h"
#include "lib/rpc/version_key.h"

namespace spoke::ipam {
namespace {

// Agents receive what gRPC takes by default; no delta of a policy is longer than a full bundle.
static_assert(2 * kMaxBundleBytes <= GRPC_DEFAULT_MAX_RECV_MESSAGE_LENGTH);

// How soon agents leave a server that another one may have replaced.
constexpr absl::Duration kMarginPeriod = absl::Milliseconds(100);

absl::Status NotLeading() {
  return absl::UnavailableError(
      "this server cannot renew its leadership, and another one may lead: ask the next");
}

}  // namespace

// One stream. gRPC deletes nothing: OnDone() ends the object's life.
class AgentStream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage> {
 public:
  AgentStream(const NodeService& service, grpc::CallbackServerContext& context, SessionId id,
              rpc::PeerCertificate peer)
      : edges_(service.edges_),
        context_(context),
        id_(id),
        serial_(std::move(peer.serial)),
        not_after_(peer.not_after),
        gate_(service.rules_, std::move(peer.names), std::move(peer.uris)) {
    // It goes out before anything that is said, while others cannot end the stream yet: an agent
    // that asks for the time alone waits for nothing else.
    context.AddInitialMetadata(rpc::kTimeKey, std::to_string(absl::ToUnixMillis(absl::Now())));
    StartSendInitialMetadata();
  }

  void Start() { StartRead(&incoming_); }

  void OnReadDone(bool ok) override {
    if (!ok) {
      edges_.loop.PostClosed(id_);
      FinishWith(absl::OkStatus());
      return;
    }
    if (IsCut()) return;
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
    // A hello may have been on its way to the loop when the stream was cut.
    if (IsCut()) edges_.loop.PostClosed(id_);
    edges_.revocations.Forget(id_);
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

  // Ends the stream without what waits to be written. What has been read may be on its way to the
  // loop, so OnDone() closes the session there as well.
  void Abort(const absl::Status& why) {
    bool writing = false;
    {
      absl::MutexLock lock(&mutex_);
      cut_ = true;
      writing = writes_.Abort(why);
      Advance();
    }
    // The agent may not read what is being written, and would then hear nothing but this. The lock
    // is not held, since callbacks of the stream take it.
    if (writing) context_.TryCancel();
  }

  void Cut(const absl::Status& why) {
    Abort(why);
    edges_.loop.PostClosed(id_, std::string(base::MessageOf(why)));
  }

  // Another server may lead. A stream that ends already is left alone: this is called again and
  // again.
  void EndNotLeading() {
    {
      absl::MutexLock lock(&mutex_);
      if (writes_.has_ended()) return;
    }
    Abort(NotLeading());
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

  bool IsCut() {
    absl::MutexLock lock(&mutex_);
    return cut_;
  }

  absl::Status Take(node_api::Hello hello) {
    ASSIGN_OR_RETURN(const bool instance_proved, gate_.Admit(hello));
    RETURN_IF_ERROR(
        edges_.revocations.Admit(id_, {.node = hello.node.node_name,
                                       .serial = serial_,
                                       .machines = {hello.node.vm_id, hello.node.instance},
                                       .not_after = not_after_}));
    edges_.loop.PostHello(id_, std::move(hello), instance_proved);
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
  absl::Status Take(node_api::NodeFindings findings) {
    return Post(NodeFindingsEvent{id_, std::move(findings)});
  }
  absl::Status Take(node_api::Maintenance maintenance) {
    return Post(MaintenanceEvent{id_, std::move(maintenance)});
  }
  absl::Status Take(node_api::NodeDataAnswer answer) {
    return Post(NodeDataEvent{id_, std::move(answer)});
  }
  // These two change nothing that is stored, so that the loop need not hear of them.
  absl::Status Take(const node_api::TrafficReport& report) {
    edges_.traffic.Take(*gate_.node(), report);
    Read();
    return absl::OkStatus();
  }
  absl::Status Take(const node_api::BudgetReport& report) {
    edges_.budgets.OnReport(*gate_.node(), id_, report);
    Read();
    return absl::OkStatus();
  }
  absl::Status Post(AgentEvent event) {
    edges_.loop.PostFromAgent(std::move(event));
    return absl::OkStatus();
  }

  absl::Status Dispatch() {
    const bool is_hello = incoming_.message_case() == v1::AgentMessage::kHello;
    if (incoming_.message_case() != v1::AgentMessage::MESSAGE_NOT_SET) {
      RETURN_IF_ERROR(gate_.CheckOrder(is_hello));
    }
    ASSIGN_OR_RETURN(std::optional<node_api::AgentMessage> message, node_api::FromWire(incoming_));
    if (!message) {  // It is a newer agent's.
      Read();
      return absl::OkStatus();
    }
    return std::visit([this](auto&& said) { return Take(std::move(said)); }, *std::move(message));
  }

  const NodeService::Edges& edges_;
  grpc::CallbackServerContext& context_;
  const SessionId id_;
  const std::string serial_;
  const absl::Time not_after_;  // The end of its certificate.
  StreamGate gate_;             // Read and changed by one read at a time.
  v1::AgentMessage incoming_;   // One read at a time changes it.

  absl::Mutex mutex_;
  Writes writes_ ABSL_GUARDED_BY(mutex_);
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
};

grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* NodeService::Connect(
    grpc::CallbackServerContext* context) {
  rpc::PeerCertificate peer = rpc::PeerCertificateOf(*context->auth_context());
  // A user may be called as a node is: what is made for operators names no node.
  if (IsForOperators(peer.organizations)) peer.names.clear();
  context->AddTrailingMetadata(rpc::kVersionKey, rules_.server_version);
  AgentStream* stream = nullptr;
  {
    absl::MutexLock lock(&edges_.streams.mutex_);
    const SessionId id = ++edges_.streams.last_session_;
    stream = new AgentStream(*this, *context, id, std::move(peer));
    edges_.streams.streams_.emplace(id, stream);
  }
  stream->Start();
  if (!edges_.streams.Leads()) stream->EndNotLeading();
  return stream;
}

template <typename Act>
void AgentStreams::With(SessionId session, const Act& act) {
  absl::MutexLock lock(&mutex_);
  const auto it = streams_.find(session);
  if (it != streams_.end()) act(*it->second);
}

AgentStreams::AgentStreams(std::string server_version, std::function<absl::Duration()> margin)
    : server_version_(std::move(server_version)),
      margin_(std::move(margin)),
      carrier_([this] { CarryOut(); }) {}

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

void AgentStreams::Cut(SessionId session, const absl::Status& why) {
  With(session, [&](AgentStream& stream) { stream.Cut(why); });
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
      orders_mutex_.AwaitWithTimeout(absl::Condition(&ready), kMarginPeriod);
      if (stopped_ && orders_.empty()) return;
      orders.swap(orders_);
    }
    if (Leads()) {
      CarryOut(std::move(orders));
    } else {
      CloseAll();
    }
  }
}

void AgentStreams::CarryOut(std::vector<Order> orders) {
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

void AgentStreams::CloseAll() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [session, stream] : streams_) stream->EndNotLeading();
}

node_api::ServerMessage AgentStreams::Said(BundleUpdate update) {
  return node_api::PolicyUpdate{.bundle = bundles_.Get(update.from, update.to),
                                .max_cut_permille = update.max_cut_permille};
}
node_api::ServerMessage AgentStreams::Said(BundleTrial trial) {
  return node_api::PolicyTrial{.id = trial.id, .policy = bundles_.Get(nullptr, trial.policy)};
}
node_api::ServerMessage AgentStreams::Said(node_api::Welcome welcome) {
  welcome.server_version = server_version_;
  return welcome;
}

void AgentStreams::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(session);
}

}  // namespace spoke::ipam
