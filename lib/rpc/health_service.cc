#include "lib/rpc/health_service.h"

#include <grpcpp/alarm.h>
#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/os/unique_fd.h"
#include "lib/rpc/health_text.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"

namespace spoke::rpc {
namespace {

namespace health = grpc::health::v1;
using Status = health::HealthCheckResponse;

// The longest question. A probe is a handful of bytes; what is longer is none.
constexpr int kMaxMessageBytes = 4096;
constexpr size_t kQuotaBytes = 4U << 20U;
constexpr int kMaxThreads = 4;
constexpr int kMaxStreams = 64;  // The most streams of one connection.
constexpr int kMaxHeaderBytes = 4096;
constexpr int kHandshakeMs = 5'000;
constexpr int kIdleMs = 60'000;
constexpr int kKeepaliveMs = 60'000;
constexpr std::chrono::seconds kLivenessPeriod(1);

// Blocks signals for threads that are started while it lives: those are for the thread that waits
// for them.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

// Removes the socket of a dead program. gRPC would take that of a program that still listens there.
absl::Status ClearSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());  // Its length has been checked.
  const os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return base::ErrnoToStatus(errno, "open a socket");
  const int connected =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  if (connected == 0 || error == EAGAIN) {
    return absl::AlreadyExistsError(
        fmt::format("{}: another program listens there: stop it, or choose another path", path));
  }
  if (error == ENOENT) return absl::OkStatus();
  if (error != ECONNREFUSED) return base::ErrnoToStatus(error, path);
  struct stat file {};
  if (::lstat(path.c_str(), &file) == 0 && !S_ISSOCK(file.st_mode)) {
    return absl::AlreadyExistsError(
        fmt::format("{}: is there and is no socket: move it away, or choose another path", path));
  }
  if (::unlink(path.c_str()) < 0 && errno != ENOENT) {
    return base::ErrnoToStatus(errno, fmt::format("remove the old socket {}", path));
  }
  return absl::OkStatus();
}

}  // namespace

class HealthService::Server final : public health::Health::CallbackService {
 public:
  explicit Server(Settings settings)
      : address_(std::move(settings.address)),
        liveness_(std::move(settings.liveness)),
        not_ready_(std::move(settings.not_ready)) {}

  ~Server() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  absl::Status Start();
  void SetReadiness(Reasons not_ready);
  int port() const { return port_; }

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const health::HealthCheckRequest* request,
                                  health::HealthCheckResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto reasons = ReasonsOf(request->service());
    if (!reasons) {
      reactor->Finish({grpc::StatusCode::NOT_FOUND,
                       "no such service: there are readiness (or an empty name) and liveness"});
      return reactor;
    }
    response->set_status(reasons->empty() ? Status::SERVING : Status::NOT_SERVING);
    if (!reasons->empty()) context->AddTrailingMetadata(kReasonKey, JoinReasons(*reasons));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<health::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context, const health::HealthCheckRequest* request) override;

 private:
  class Watcher;

  // Returns the reasons; nullopt: no such service.
  std::optional<Reasons> ReasonsOf(const std::string& service) const {
    if (service == kLiveness) return liveness_ ? liveness_() : Reasons();
    if (!service.empty() && service != kReadiness) return std::nullopt;
    const absl::MutexLock lock(&mutex_);
    return not_ready_;
  }
  Status::ServingStatus StatusOf(const std::string& service) const {
    const auto reasons = ReasonsOf(service);
    if (!reasons) return Status::SERVICE_UNKNOWN;
    return reasons->empty() ? Status::SERVING : Status::NOT_SERVING;
  }
  void Forget(const std::shared_ptr<Watcher>& watcher) {
    const absl::MutexLock lock(&mutex_);
    watchers_.erase(watcher);
  }

  const std::string address_;
  const std::function<Reasons()> liveness_;
  int port_ = 0;
  mutable absl::Mutex mutex_;
  Reasons not_ready_ ABSL_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<Watcher>> watchers_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;  // The server is last: it calls all of the above.
};

// One Watch. It lives until gRPC is done with it; an alarm that is on its way then finds nobody.
class HealthService::Server::Watcher final
    : public grpc::ServerWriteReactor<health::HealthCheckResponse>,
      public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(Server& server, std::string service)
      : server_(server), service_(std::move(service)), ticks_(service_ == kLiveness) {}

  // Says the present status, unless that has been said.
  void Look() {
    const absl::MutexLock lock(&mutex_);
    if (finished_ || writing_) return;
    const Status::ServingStatus status = server_.StatusOf(service_);
    if (said_ == status) return;
    said_ = status;
    response_.set_status(status);
    writing_ = true;
    StartWrite(&response_);
  }

  void Tick() {
    Look();
    const absl::MutexLock lock(&mutex_);
    if (!ticks_ || finished_) return;
    alarm_.Set(std::chrono::system_clock::now() + kLivenessPeriod,
               [weak = weak_from_this()](bool due) {
                 const auto self = weak.lock();
                 if (due && self != nullptr) self->Tick();
               });
  }

  void End(const grpc::Status& status) {
    const absl::MutexLock lock(&mutex_);
    if (finished_) return;
    finished_ = true;
    Finish(status);
  }

  void OnWriteDone(bool ok) override {
    {
      const absl::MutexLock lock(&mutex_);
      writing_ = false;
    }
    if (!ok) return End({grpc::StatusCode::UNAVAILABLE, "the watcher has gone"});
    Look();
  }
  void OnCancel() override { End({grpc::StatusCode::CANCELLED, "the watcher has gone"}); }
  void OnDone() override {
    // Without this reference it would be gone before this has returned.
    const auto self = shared_from_this();
    alarm_.Cancel();
    server_.Forget(self);
  }

 private:
  Server& server_;
  const std::string service_;
  const bool ticks_;
  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Status::ServingStatus> said_ ABSL_GUARDED_BY(mutex_);
  health::HealthCheckResponse response_;  // The response of the write under way.
  grpc::Alarm alarm_;
};

grpc::ServerWriteReactor<health::HealthCheckResponse>* HealthService::Server::Watch(
    grpc::CallbackServerContext* /*context*/, const health::HealthCheckRequest* request) {
  const auto watcher = std::make_shared<Watcher>(*this, request->service());
  bool too_many = false;
  {
    const absl::MutexLock lock(&mutex_);
    too_many = watchers_.size() >= kMaxWatches;
    watchers_.insert(watcher);
  }
  if (too_many) {
    watcher->End({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watch already"});
  } else {
    watcher->Tick();
  }
  return watcher.get();
}

void HealthService::Server::SetReadiness(Reasons not_ready) {
  std::set<std::shared_ptr<Watcher>> watchers;
  {
    const absl::MutexLock lock(&mutex_);
    not_ready_ = std::move(not_ready);
    watchers = watchers_;
  }
  for (const auto& watcher : watchers) watcher->Look();
}

absl::Status HealthService::Server::Start() {
  const std::string path(SocketPathOf(address_));
  if (!path.empty()) {
    RETURN_IF_ERROR(CheckHealthAddress(address_));
    RETURN_IF_ERROR(ClearSocket(path));
    const std::string directory = os::DirectoryOf(path);
    if (::access(directory.c_str(), W_OK) < 0) {
      return base::ErrnoToStatus(errno, fmt::format("{}: directory {}", path, directory));
    }
  }
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("health");
  builder.SetResourceQuota(quota.Resize(kQuotaBytes).SetMaxThreads(kMaxThreads));
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(this);
  // gRPC's own health service, where the program has switched that on, would be in the way.
  builder.SetOption(std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxHeaderBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  const NoSignals no_signals;
  const mode_t old_mask = ::umask(0177);
  server_ = builder.BuildAndStart();
  ::umask(old_mask);
  if (server_ == nullptr) {
    return absl::UnavailableError(fmt::format(
        "cannot listen on {}: is it in use, or not an address of this machine?", address_));
  }
  if (!path.empty()) port_ = 0;
  return absl::OkStatus();
}

HealthService::HealthService(std::unique_ptr<Server> server) : server_(std::move(server)) {}
HealthService::~HealthService() = default;

absl::StatusOr<std::unique_ptr<HealthService>> HealthService::Listen(Settings settings) {
  auto server = std::make_unique<Server>(std::move(settings));
  RETURN_IF_ERROR(base::Annotate(server->Start(), "serve health"));
  return std::unique_ptr<HealthService>(new HealthService(std::move(server)));
}

void HealthService::SetReadiness(Reasons not_ready) { server_->SetReadiness(std::move(not_ready)); }
int HealthService::port() const { return server_->port(); }

}  // namespace spoke::rpc
