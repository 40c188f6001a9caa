#include "netagent/sync/server_session.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <random>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/sync/server_wire.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::netagent {
namespace {

using Stream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>;

// How much may wait for a server that reads slowly. Beyond it the stream is given up: a new one
// begins with Hello, which says everything again.
constexpr size_t kMaxUnsent = 10'000;

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
  int failures = 0;
  while (true) {
    welcomed_ = false;
    const absl::Status ended = RunStream();
    if (welcomed_) failures = 0;
    if (!complained_) {
      complained_ = true;
      log_.Warn("server_unreachable", {{"server", settings_.server}, {"error", ended}});
    }
    if (!WaitForRetry(settings_.backoff.Delay(failures++, jitter(random)))) return;
  }
}

bool ServerSession::WaitForRetry(absl::Duration delay) {
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
    last_sequence_ = 0;
    unsent_.clear();
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
  {
    absl::MutexLock lock(&mutex_);
    context_ = nullptr;
  }
  if (status.ok()) return absl::UnavailableError("the server closed the stream");
  return rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message());
}

void ServerSession::WriteLoop(void* opaque) {
  auto& stream = *static_cast<Stream*>(opaque);
  while (true) {
    v1::AgentMessage message;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return broken_ || !unsent_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (broken_) return;
      message = std::move(unsent_.front());
      unsent_.pop_front();
    }
    if (!stream.Write(message)) return;  // The reader sees the end as well.
  }
}

void ServerSession::Receive(const v1::ServerMessage& message) {
  if (message.has_welcome()) {
    welcomed_ = true;
    complained_ = false;
    log_.Info("server_connected", {{"server", settings_.server},
                                   {"epoch", message.welcome().session_epoch()},
                                   {"version", message.welcome().server_version()}});
  } else if (message.has_desired()) {
    auto desired = FromWire(message.desired());
    if (desired.ok()) {
      callbacks_.on_desired(*std::move(desired));
    } else {
      log_.Error("desired_state_refused", {{"error", desired.status()}});
    }
  }
  // A report's acknowledgement needs no action: what is not acknowledged is said again by the Hello
  // of the next stream.
}

void ServerSession::Begin(const Greeting& greeting, const Nic& nic) {
  v1::AgentMessage message;
  *message.mutable_hello() = HelloToWire(settings_.identity, greeting, nic);
  absl::MutexLock lock(&mutex_);
  if (broken_ || greeted_) return;  // Too late: this stream is over. The next one asks again.
  greeted_ = true;
  unsent_.push_back(std::move(message));
}

void ServerSession::Report(const LendingReport& report) {
  v1::AgentMessage message;
  *message.mutable_report() = ReportToWire(report);
  Enqueue(std::move(message));
}

void ServerSession::Acknowledge(uint64_t desired_version) {
  v1::AgentMessage message;
  message.mutable_ack()->set_version(desired_version);
  Enqueue(std::move(message));
}

void ServerSession::Enqueue(v1::AgentMessage message) {
  absl::MutexLock lock(&mutex_);
  if (!greeted_) return;  // The next Hello says it.
  if (unsent_.size() >= kMaxUnsent) {
    greeted_ = false;
    if (context_ != nullptr) context_->TryCancel();
    return;
  }
  if (message.has_report()) message.mutable_report()->set_sequence(++last_sequence_);
  unsent_.push_back(std::move(message));
}

}  // namespace spoke::netagent
