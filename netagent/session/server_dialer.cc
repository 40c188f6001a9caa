#include "netagent/session/server_dialer.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "absl/time/clock.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"
#include "netagent/session/certificate_times.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::netagent {
namespace {

// gRPC takes the least reconnect backoff for the connect deadline too. When 7,500 agents shake
// hands with one server at once, a short one makes it repeat handshakes until it collapses.
constexpr int kConnectDeadlineMs = 20'000;
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// How often a dial looks whether it is to stop.
constexpr absl::Duration kLook = absl::Milliseconds(100);
// A call on a connection that has failed ends at once; this is for one that has come back.
constexpr absl::Duration kWhyPatience = absl::Milliseconds(200);
constexpr size_t kMaxPemBytes = 1U << 20U;

std::shared_ptr<grpc::Channel> NewChannel(
    const std::string& server, const std::string& server_name,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectDeadlineMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Each attempt has a new channel, so that our backoff is the only one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!server_name.empty()) arguments.SetSslTargetNameOverride(server_name);
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

// Returns why a channel that has failed did so, which only a call is told.
absl::Status WhyItFailed(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kWhyPatience));
  const auto stub = v1::NodeService::NewStub(channel);
  const auto stream = stub->Connect(&context);
  const grpc::Status status = stream->Finish();
  if (status.ok()) return absl::UnavailableError("the server closed the connection");
  return rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message());
}

}  // namespace

ServerDialer::ServerDialer(Settings settings, Done done)
    : settings_(std::move(settings)), done_(std::move(done)) {}

ServerDialer::~ServerDialer() {
  Stop();
  std::list<Job> jobs;
  {
    absl::MutexLock lock(&mutex_);
    jobs.swap(jobs_);
  }
  for (Job& job : jobs) job.thread.join();
}

void ServerDialer::Dial(size_t server) {
  absl::MutexLock lock(&mutex_);
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    if (!job->over) {
      ++job;
      continue;
    }
    job->thread.join();
    job = jobs_.erase(job);
  }
  Job& job = jobs_.emplace_back();
  job.thread = std::thread([this, server, &job] { Run(server, job); });
}

void ServerDialer::Stop() {
  absl::MutexLock lock(&mutex_);
  for (Job& job : jobs_) job.stopped = true;
}

void ServerDialer::Run(size_t server, Job& job) {
  auto connection = Open(server, job);
  if (!job.stopped) done_(server, std::move(connection));
  job.over = true;
}

absl::Status ServerDialer::Explained(const absl::Status& failure) const {
  if (settings_.tls.insecure) return failure;
  const auto pem = os::ReadFile(settings_.tls.certificate, kMaxPemBytes);
  const auto own = tls::ReadCertificate(pem.value_or(""));
  if (!own.ok()) return failure;
  return WithTimes(failure, {.not_before = own->not_before, .not_after = own->not_after},
                   absl::Now());
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ServerDialer::Open(size_t server,
                                                                  const Job& job) const {
  ASSIGN_OR_RETURN(const auto credentials, rpc::ClientCredentials(settings_.tls));
  auto channel = NewChannel(settings_.servers[server], settings_.server_name, credentials);
  while (!job.stopped) {
    const grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return channel;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) {
      return Explained(WhyItFailed(channel));
    }
    channel->WaitForStateChange(state, absl::ToChronoTime(absl::Now() + kLook));
  }
  return absl::CancelledError("given up");
}

}  // namespace spoke::netagent
