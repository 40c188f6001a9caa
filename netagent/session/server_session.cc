#include "netagent/session/server_session.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <random>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version_skew.h"
#include "lib/os/clock.h"
#include "lib/rpc/version_key.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::netagent {
namespace {

// A report waits this long for what else comes up: pods come and go in bursts, and each message
// costs the node, and the server a commit, whatever is in it.
constexpr absl::Duration kReportPause = absl::Milliseconds(10);

using Stream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>;

// gRPC takes the least reconnect backoff for the connect deadline too. When 7,500 agents shake
// hands with one server at once, a short one makes it repeat handshakes until it collapses.
constexpr int kConnectDeadlineMs = 20'000;
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;

std::shared_ptr<grpc::Channel> NewChannel(
    const ServerSession::Settings& settings,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectDeadlineMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A new channel an attempt, so that our backoff is the only one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!settings.server_name.empty()) {
    arguments.SetSslTargetNameOverride(settings.server_name);
  }
  return grpc::CreateCustomChannel(settings.server, credentials, arguments);
}

}  // namespace

ServerSession::ServerSession(Settings settings, Callbacks callbacks, telemetry::Log& log)
    : settings_(std::move(settings)), callbacks_(std::move(callbacks)), log_(log) {}

ServerSession::~ServerSession() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status ServerSession::Start() {
  RETURN_IF_ERROR(rpc::ClientCredentials(settings_.tls).status());
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void ServerSession::Run() {
  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> jitter(0.0, 1.0);
  Reconnect reconnect(settings_.reconnect);
  absl::Duration delay = reconnect.BeforeFirst(jitter(random));
  while (Wait(delay)) {
    welcomed_ = false;
    skew_ = absl::OkStatus();
    const int64_t began_ms = os::MonotonicMs();
    const absl::Status ended = RunStream();
    const StreamEnd end{.welcomed = welcomed_,
                        .lasted = absl::Milliseconds(os::MonotonicMs() - began_ms),
                        .skewed = !skew_.ok()};
    Complain(ended);
    if (callbacks_.on_outcome) callbacks_.on_outcome(ended);
    delay = reconnect.After(end, jitter(random));
  }
}

void ServerSession::Complain(const absl::Status& ended) {
  if (!skew_.ok()) {
    if (complained_skew_ == skew_.message()) return;
    complained_skew_ = std::string(skew_.message());
    log_.Error("server_version_skew", {{"server", settings_.server}, {"error", skew_}});
  } else if (absl::IsAborted(ended)) {
    log_.Info("session_begun_anew", {{"why", base::MessageOf(ended)}});
  } else if (!complained_) {
    complained_ = true;
    log_.Warn("server_unreachable", {{"server", settings_.server}, {"error", ended}});
  }
}

bool ServerSession::Wait(absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopped_), delay);
  return !stopped_;
}

absl::Status ServerSession::RunStream() {
  // Read anew each time, so that renewed certificates are taken up.
  ASSIGN_OR_RETURN(const auto credentials, rpc::ClientCredentials(settings_.tls));
  const auto stub = v1::NodeService::NewStub(NewChannel(settings_, credentials));
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return absl::CancelledError("stopping");
    context_ = &context;
    broken_ = false;
    greeted_ = false;
    ending_.clear();
    hello_.reset();
    outbox_ = Outbox();
  }
  const std::unique_ptr<Stream> stream = stub->Connect(&context);
  std::thread writer([&] { WriteLoop(stream.get()); });
  callbacks_.on_connecting();
  v1::ServerMessage message;
  while (stream->Read(&message)) Receive(message);
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
    greeted_ = false;
  }
  writer.join();
  const grpc::Status status = stream->Finish();
  if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto it = metadata.find(rpc::kVersionKey);
    if (it != metadata.end()) JudgeVersion({it->second.data(), it->second.size()});
  }
  {
    absl::MutexLock lock(&mutex_);
    context_ = nullptr;
    if (!skew_.ok()) return skew_;
    if (!ending_.empty()) return absl::AbortedError(ending_);
  }
  if (status.ok()) return absl::UnavailableError("the server closed the stream");
  return rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message());
}

std::optional<v1::AgentMessage> ServerSession::NextToWrite() {
  if (hello_) return node_api::ToWire(*std::exchange(hello_, std::nullopt));
  if (auto reply = outbox_.Next()) return node_api::ToWire(*reply);
  return std::nullopt;
}

void ServerSession::WriteLoop(void* opaque) {
  auto& stream = *static_cast<Stream*>(opaque);
  while (true) {
    std::optional<v1::AgentMessage> message;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return broken_ || !ending_.empty() || hello_.has_value() || outbox_.HasNext();
      };
      mutex_.Await(absl::Condition(&ready));
      const auto urgent = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return broken_ || !ending_.empty() || hello_.has_value() || !outbox_.HasOnlyAReport();
      };
      mutex_.AwaitWithTimeout(absl::Condition(&urgent), kReportPause);
      if (broken_) return;
      message = NextToWrite();
    }
    if (message) {
      if (!stream.Write(*message)) return;  // The reader sees the end as well.
    } else {
      stream.WritesDone();
      return CancelUnlessItEnds();
    }
  }
}

// A server ends a stream that its agent has ended; one that does not is not waited for.
void ServerSession::CancelUnlessItEnds() {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&broken_), settings_.farewell);
  if (!broken_ && context_ != nullptr) context_->TryCancel();
}

void ServerSession::Receive(const v1::ServerMessage& message) {
  if (!skew_.ok()) return;  // What it means by it, who knows.
  auto said = node_api::FromWire(message);
  if (!said.ok()) {
    log_.Error("server_message_refused", {{"error", said.status()}});
    // A change that was not taken would make those that follow mean something else.
    if (message.has_desired()) BeginAnew("a desired state that cannot be");
  } else if (!*said) {
    return;  // Of a newer server.
  } else if (const auto* welcome = std::get_if<node_api::Welcome>(&**said)) {
    Welcomed(*welcome);
  } else if (const auto* ack = std::get_if<node_api::ReportAck>(&**said)) {
    absl::MutexLock lock(&mutex_);
    outbox_.OnReportAck(ack->sequence);
  } else {
    callbacks_.on_request(**std::move(said));
  }
}

void ServerSession::Welcomed(const node_api::Welcome& welcome) {
  JudgeVersion(welcome.server_version);
  if (!skew_.ok()) {
    // It has a rule of its own, and ours says no.
    absl::MutexLock lock(&mutex_);
    greeted_ = false;
    if (context_ != nullptr) context_->TryCancel();
    return;
  }
  welcomed_ = true;
  complained_ = false;
  complained_skew_.clear();
  log_.Info("server_connected", {{"server", settings_.server},
                                 {"epoch", welcome.session_epoch},
                                 {"version", welcome.server_version}});
  if (!welcome.warning.empty()) log_.Warn("server_warning", {{"warning", welcome.warning}});
  if (callbacks_.on_outcome) callbacks_.on_outcome(absl::OkStatus());
}

void ServerSession::JudgeVersion(std::string_view server_version) {
  skew_ = base::CheckSkew({"spoke-netagent", settings_.agent_version},
                          {"spoke-ipam-server", server_version});
}

void ServerSession::Begin(const Greeting& greeting) {
  absl::MutexLock lock(&mutex_);
  if (broken_ || greeted_) return;  // Too late: this stream is over. The next one asks again.
  greeted_ = true;
  hello_ = greeting.hello;
  for (const node_api::ConflictReport& conflict : greeting.conflicts) outbox_.Add(conflict);
  if (!greeting.demand.waiting.empty()) outbox_.Add(greeting.demand);
}

template <typename Add>
void ServerSession::Enqueue(const Add& add) {
  absl::MutexLock lock(&mutex_);
  // Before the hello, which says it; and not on a stream that is about to end.
  if (!greeted_ || !ending_.empty()) return;
  if (add(outbox_)) return;
  greeted_ = false;
  if (context_ != nullptr) context_->TryCancel();
}

void ServerSession::Report(const node_api::AssignmentReport& report) {
  Enqueue([&](Outbox& outbox) { return outbox.Add(report); });
}

void ServerSession::Acknowledge(uint64_t desired_version) {
  Enqueue([&](Outbox& outbox) {
    outbox.Add(node_api::DesiredAck{desired_version});
    return true;
  });
}

void ServerSession::AcknowledgePolicy(const node_api::PolicyAck& ack) {
  Enqueue([&](Outbox& outbox) {
    outbox.Add(ack);
    return true;
  });
}

void ServerSession::Answer(const node_api::ReclaimAnswer& answer) {
  Enqueue([&](Outbox& outbox) { return outbox.Add(answer); });
}

void ServerSession::Answer(const node_api::Inventory& inventory) {
  Enqueue([&](Outbox& outbox) { return outbox.Add(inventory); });
}

void ServerSession::Answer(const node_api::AttachTracesAnswer& traces) {
  Enqueue([&](Outbox& outbox) { return outbox.Add(traces); });
}

void ServerSession::Answer(const node_api::ProbeAnswer& probes) {
  Enqueue([&](Outbox& outbox) { return outbox.Add(probes); });
}

void ServerSession::Answer(const node_api::PolicyTrialAnswer& trial) {
  Enqueue([&](Outbox& outbox) { return outbox.Add(trial); });
}

void ServerSession::ReportTraffic(const node_api::TrafficReport& report) {
  Enqueue([&](Outbox& outbox) {
    outbox.Add(report);
    return true;
  });
}

void ServerSession::ReportBudgets(const node_api::BudgetReport& report) {
  Enqueue([&](Outbox& outbox) {
    outbox.Add(report);
    return true;
  });
}

void ServerSession::Ask(const node_api::Demand& demand) {
  Enqueue([&](Outbox& outbox) {
    outbox.Add(demand);
    return true;
  });
}

void ServerSession::ReportConflict(const ip::Address& address,
                                   const std::optional<ip::MacAddress>& other_mac) {
  Enqueue([&](Outbox& outbox) {
    outbox.Add(node_api::ConflictReport{address, other_mac});
    return true;
  });
}

void ServerSession::BeginAnew(std::string_view why) {
  absl::MutexLock lock(&mutex_);
  if (!greeted_ || !ending_.empty()) return;  // It begins anew already.
  ending_ = std::string(why);
}

}  // namespace spoke::netagent
