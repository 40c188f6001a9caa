#include "tests/bench/swarm/agent.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <stdlib.h>
#include <time.h>

#include <utility>

#include "absl/strings/str_replace.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::swarm {
namespace {

// The numbers of netagent/session/server_session.cc: what the server sees is the same.
constexpr int kConnectDeadlineMs = 20'000;
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr size_t kMaxWaitingAnswers = 16;

std::shared_ptr<grpc::Channel> NewChannel(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectDeadlineMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Without this all share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // What follows only spares this side: thousands of channels share the machine with the server.
  arguments.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

// As rpc::ClientCredentials(), but with gRPC's default for the authority's certificate, which
// ShareAuthority() has set: gRPC decodes that once, and any other anew for each connection.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const rpc::TlsFiles& files) {
  constexpr size_t kMaxPemBytes = 64U << 10U;
  RETURN_IF_ERROR(files.Validate());
  if (files.insecure) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  ASSIGN_OR_RETURN(options.pem_cert_chain, os::ReadFile(files.certificate, kMaxPemBytes));
  ASSIGN_OR_RETURN(options.pem_private_key, os::ReadFile(files.key, kMaxPemBytes));
  return grpc::SslCredentials(options);
}

// A channel that has failed waits before it tries again, which a real agent's new one does not.
bool CanConnect(grpc_connectivity_state state) {
  return state != GRPC_CHANNEL_TRANSIENT_FAILURE && state != GRPC_CHANNEL_SHUTDOWN;
}

int64_t ClockNs(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void ShareAuthority(const std::string& ca) {
  // This names the file to gRPC (doc/environment_variables.md of gRPC).
  ::setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", ca.c_str(), /*overwrite=*/1);
}

int64_t NowNs() { return ClockNs(CLOCK_MONOTONIC); }

absl::StatusOr<std::shared_ptr<grpc::Channel>> Agent::FindChannel() {
  std::shared_ptr<grpc::Channel>& channel = channels_[server_];
  if (channel != nullptr && CanConnect(channel->GetState(/*try_to_connect=*/false))) return channel;
  rpc::TlsFiles tls = target_.tls;
  for (std::string* path : {&tls.ca, &tls.certificate, &tls.key}) {
    *path = absl::StrReplaceAll(*path, {{"{}", NamesOf(index_).name}});
  }
  ASSIGN_OR_RETURN(const auto credentials, MakeCredentials(tls));
  channel = NewChannel(target_.servers[server_], credentials);
  return channel;
}

absl::Status Agent::Connect() {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(auto channel, FindChannel());
  auto stream = std::make_unique<Stream>(*this, std::move(channel));
  stream_ = stream.release();  // OnDone() hands it on.
  writing_ = false;
  answers_.clear();
  outgoing_.Clear();
  node_.Greet(*answers_.emplace_back().mutable_hello(), NowNs());
  stream_->Start();
  Pump();
  return absl::OkStatus();
}

void Agent::TurnToNextServer() {
  absl::MutexLock lock(&mutex_);
  server_ = (server_ + 1) % target_.servers.size();
}

void Agent::TurnTo(size_t server) {
  absl::MutexLock lock(&mutex_);
  server_ = server;
}

size_t Agent::server() const {
  absl::MutexLock lock(&mutex_);
  return server_;
}

void Agent::Cancel() {
  absl::MutexLock lock(&mutex_);
  if (stream_ != nullptr) stream_->Cancel();
}

bool Agent::ReportBudgets() {
  absl::MutexLock lock(&mutex_);
  // The server does not read: the next report will say the same.
  if (stream_ == nullptr || answers_.size() > kMaxWaitingAnswers) return false;
  v1::AgentMessage message;
  if (!node_.FillBudgetReport(*message.mutable_budget_report())) return false;
  answers_.push_back(std::move(message));
  Pump();
  return true;
}

void Agent::OnRead(const v1::ServerMessage& message) {
  SimNode::Outcome outcome;
  const int64_t now = NowNs();
  {
    absl::MutexLock lock(&mutex_);
    node_.Take(message, now, outcome);
    for (v1::AgentMessage& answer : outcome.answers) answers_.push_back(std::move(answer));
    Pump();
  }
  if (message.has_welcome()) {
    events_.OnWelcomed(*this, absl::Milliseconds(message.welcome().reconnect_within_ms()));
  }
  for (const int64_t latency : outcome.latencies) events_.OnLatency(latency);
  if (outcome.written >= 0)
    events_.OnAcknowledged(*this, {.sent = outcome.written, .wanted = outcome.wanted});
}

void Agent::OnWritten() {
  bool synced = false;
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    synced = outgoing_.has_ack() && node_.synced() && node_.usable() >= target_.addresses;
    Pump();
  }
  if (synced) events_.OnSynced(*this);
}

void Agent::OnBroken() {
  absl::MutexLock lock(&mutex_);
  stream_ = nullptr;
}

// Answers go first: they were due before the reports that have not been put together yet.
void Agent::Pump() {
  if (stream_ == nullptr || writing_) return;
  if (!answers_.empty()) {
    outgoing_ = std::move(answers_.front());
    answers_.pop_front();
  } else if (node_.HasReport()) {
    node_.FillReport(*outgoing_.mutable_report(), NowNs(), ClockNs(CLOCK_REALTIME) / 1'000'000);
  } else {
    return;
  }
  writing_ = true;
  stream_->StartWrite(&outgoing_);
}

Stream::Stream(Agent& agent, std::shared_ptr<grpc::Channel> channel)
    : agent_(agent), channel_(std::move(channel)), stub_(v1::NodeService::NewStub(channel_)) {}

void Stream::Start() {
  stub_->async()->Connect(&context_, this);
  AddHold();  // Writes are started from other threads than gRPC's, until the stream breaks.
  StartRead(&incoming_);
  StartCall();
}

void Stream::OnReadDone(bool ok) {
  if (ok) {
    agent_.OnRead(incoming_);
    StartRead(&incoming_);
    return;
  }
  agent_.OnBroken();
  RemoveHold();
}

void Stream::OnWriteDone(bool ok) {
  if (ok) agent_.OnWritten();  // If it failed, the read fails as well.
}

void Stream::OnDone(const grpc::Status& status) {
  agent_.events_.OnEnded(agent_, std::unique_ptr<Stream>(this), status);
}

}  // namespace spoke::swarm
