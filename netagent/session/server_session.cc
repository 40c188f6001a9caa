#include "netagent/session/server_session.h"

#include <grpcpp/channel.h>

#include <random>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/os/clock.h"
#include "lib/rpc/version_key.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::netagent {
namespace {

using Stream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>;

// Reads a message; nullopt: one that only a newer agent knows.
std::optional<SessionMachine::FromServer> Read(const v1::ServerMessage& message) {
  auto said = node_api::FromWire(message);
  if (!said.ok()) {
    return SessionMachine::Unreadable{.why = said.status(), .is_desired = message.has_desired()};
  }
  if (!*said) return std::nullopt;
  return **std::move(said);
}

}  // namespace

ServerSession::ServerSession(Settings settings, Callbacks callbacks, telemetry::Log& log)
    : settings_(std::move(settings)),
      callbacks_(std::move(callbacks)),
      log_(log),
      machine_({.servers = settings_.servers,
                .agent_version = settings_.agent_version,
                .farewell = settings_.farewell,
                .reconnect = settings_.reconnect}),
      dialer_({settings_.servers, settings_.server_name, settings_.tls},
              [this](size_t server, absl::StatusOr<std::shared_ptr<grpc::Channel>> connection) {
                OnDialled(server, std::move(connection));
              }) {}

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

absl::Time ServerSession::Now() { return absl::FromUnixMillis(os::MonotonicMs()); }

double ServerSession::Random() {
  thread_local std::mt19937_64 random(std::random_device{}());
  return std::uniform_real_distribution<double>(0.0, 1.0)(random);
}

void ServerSession::Run() {
  {
    absl::MutexLock lock(&mutex_);
    const auto count = static_cast<double>(settings_.servers.size());
    machine_.Start(static_cast<size_t>(Random() * count), Now(), Random());
  }
  while (true) {
    SessionMachine::Effects effects;
    std::shared_ptr<grpc::Channel> connection;
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time wake = machine_.NextWake();
      const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopped_ || connect_ || machine_.NextWake() != wake;
      };
      mutex_.AwaitWithTimeout(absl::Condition(&ready), wake - Now());
      if (stopped_) return;
      if (!connect_) {
        effects = machine_.Tick(Now());
        CarryOut(effects);
      }
      if (std::exchange(connect_, false)) connection = std::exchange(connection_, nullptr);
    }
    Tell(effects);
    if (connection == nullptr) continue;
    const End end = RunStream(connection);
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_) return;
      effects = machine_.OnDisconnected(end.status, end.refused_by, Now(), Random());
      CarryOut(effects);
    }
    Tell(effects);
  }
}

void ServerSession::OnDialled(size_t server,
                              absl::StatusOr<std::shared_ptr<grpc::Channel>> connection) {
  SessionMachine::Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    effects = machine_.OnDialled(server, connection.status(), Now(), Random());
    if (connection.ok() && !effects.empty()) connection_ = *std::move(connection);
    CarryOut(effects);
  }
  Tell(effects);
}

ServerSession::End ServerSession::RunStream(const std::shared_ptr<grpc::Channel>& connection) {
  if (callbacks_.on_connection) callbacks_.on_connection(connection);
  const auto stub = v1::NodeService::NewStub(connection);
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return {absl::CancelledError("stopping")};
    context_ = &context;
    if (cut_) context.TryCancel();
  }
  const std::unique_ptr<Stream> stream = stub->Connect(&context);
  std::thread writer([&] { WriteLoop(stream.get()); });
  std::thread timer([this] { KeepTime(); });
  callbacks_.on_connecting();
  v1::ServerMessage message;
  while (stream->Read(&message)) Receive(message);
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
  }
  writer.join();
  timer.join();
  const grpc::Status status = stream->Finish();
  {
    absl::MutexLock lock(&mutex_);
    context_ = nullptr;
  }
  End end{status.ok()
              ? absl::OkStatus()
              : rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message())};
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto version = metadata.find(rpc::kVersionKey);
  if (absl::IsFailedPrecondition(end.status) && version != metadata.end()) {
    end.refused_by = std::string(version->second.data(), version->second.size());
  }
  return end;
}

void ServerSession::WriteLoop(void* opaque) {
  auto& stream = *static_cast<Stream*>(opaque);
  while (true) {
    std::optional<v1::AgentMessage> message;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return broken_ || end_writes_ || outgoing_.has_value();
      };
      mutex_.Await(absl::Condition(&ready));
      if (broken_) return;
      if (outgoing_) {
        message = node_api::ToWire(*std::exchange(outgoing_, std::nullopt));
      } else {
        end_writes_ = false;
      }
    }
    if (!message) {
      stream.WritesDone();
      continue;
    }
    if (!stream.Write(*message)) return;  // The reader sees the error too.
    absl::MutexLock lock(&mutex_);
    CarryOut(machine_.OnSent(Now()));
  }
}

// Does what is due while the stream lasts, whatever its writer waits for.
void ServerSession::KeepTime() {
  absl::MutexLock lock(&mutex_);
  while (!broken_) {
    const absl::Time wake = machine_.NextWake();
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return broken_ || machine_.NextWake() != wake;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&ready), wake - Now());
    if (!broken_) CarryOut(machine_.Tick(Now()));
  }
}

void ServerSession::Receive(const v1::ServerMessage& message) {
  auto received = Read(message);
  if (!received) return;
  SessionMachine::Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    effects = machine_.OnReceived(*std::move(received), Now());
    CarryOut(effects);
  }
  Tell(effects);
}

void ServerSession::CarryOut(const SessionMachine::Effects& effects) {
  for (const SessionMachine::Effect& effect : effects) {
    if (const auto* dial = std::get_if<SessionMachine::Dial>(&effect)) dialer_.Dial(dial->server);
    if (std::holds_alternative<SessionMachine::StopDials>(effect)) dialer_.Stop();
    if (std::holds_alternative<SessionMachine::Connect>(effect)) {
      // From here on the hello is taken, so what is left of the stream before goes first.
      broken_ = cut_ = end_writes_ = false;
      outgoing_.reset();
      connect_ = true;
    }
    if (const auto* send = std::get_if<SessionMachine::Send>(&effect)) outgoing_ = send->message;
    if (std::holds_alternative<SessionMachine::EndWrites>(effect)) end_writes_ = true;
    if (std::holds_alternative<SessionMachine::Cut>(effect)) {
      cut_ = true;
      if (context_ != nullptr) context_->TryCancel();
    }
  }
}

void ServerSession::Tell(const SessionMachine::Effects& effects) {
  for (const SessionMachine::Effect& effect : effects) {
    if (const auto* apply = std::get_if<SessionMachine::Apply>(&effect)) {
      callbacks_.on_request(apply->request);
    } else if (const auto* refused = std::get_if<SessionMachine::Refused>(&effect)) {
      log_.Error("server_message_refused", {{"error", refused->why}});
    } else if (const auto* connected = std::get_if<SessionMachine::Connected>(&effect)) {
      const node_api::Welcome& welcome = connected->welcome;
      log_.Info("server_connected", {{"server", settings_.servers[connected->server]},
                                     {"epoch", welcome.session_epoch},
                                     {"version", welcome.server_version}});
      if (!welcome.warning.empty()) log_.Warn("server_warning", {{"warning", welcome.warning}});
      if (callbacks_.on_outcome) callbacks_.on_outcome(absl::OkStatus());
    } else if (const auto* end = std::get_if<SessionMachine::Disconnected>(&effect)) {
      if (end->is_news) Log(*end);
      if (callbacks_.on_outcome) callbacks_.on_outcome(end->why);
    }
  }
}

void ServerSession::Log(const SessionMachine::Disconnected& end) {
  const std::string server = end.server ? settings_.servers[*end.server]
                                        : fmt::format("{}", fmt::join(settings_.servers, ","));
  if (end.is_skew) {
    log_.Error("server_version_skew", {{"server", server}, {"error", end.why}});
  } else if (absl::IsAborted(end.why)) {
    log_.Info("session_begun_anew", {{"why", base::MessageOf(end.why)}});
  } else {
    log_.Warn("server_unreachable", {{"server", server}, {"error", end.why}});
  }
}

bool ServerSession::AwaitsGreeting() {
  absl::MutexLock lock(&mutex_);
  return machine_.awaits_greeting();
}

void ServerSession::Begin(const Greeting& greeting) {
  absl::MutexLock lock(&mutex_);
  CarryOut(machine_.Begin(greeting, Now()));
}

void ServerSession::BeginAnew(std::string_view why) {
  absl::MutexLock lock(&mutex_);
  CarryOut(machine_.BeginAnew(why, Now()));
}

}  // namespace spoke::netagent
