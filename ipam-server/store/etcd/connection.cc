#include "ipam-server/store/etcd/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <netdb.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ipam::etcd {
namespace {

namespace pb = etcdserverpb;

constexpr size_t kMaxPemBytes = 1U << 20U;
// Between two rounds over all members.
constexpr absl::Duration kPause = absl::Milliseconds(50);
// A member that has come back is to be noticed well within the time that a lease lasts.
constexpr int kFirstReconnectMs = 100;
constexpr int kSlowestReconnectMs = 1000;
// etcd takes pings every 5 s or less often.
constexpr int kPingMs = 10'000;
constexpr int kPingTimeoutMs = 2000;
// Whoever leaves does not wait for long.
constexpr CallTime kRevokeTime{.attempt = absl::Milliseconds(500), .patience = absl::Seconds(1)};
constexpr CallTime kUpkeepTime{.attempt = absl::Seconds(5), .patience = absl::Seconds(10)};
// It reads and writes the whole database, and the member does nothing else meanwhile.
constexpr absl::Duration kDefragmentTime = absl::Seconds(60);

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(const Access& access) {
  if (!access.endpoints.front().secure) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  ASSIGN_OR_RETURN(options.pem_root_certs, os::ReadFile(access.ca, kMaxPemBytes));
  if (!access.certificate.empty()) {
    ASSIGN_OR_RETURN(options.pem_cert_chain, os::ReadFile(access.certificate, kMaxPemBytes));
    ASSIGN_OR_RETURN(options.pem_private_key, os::ReadFile(access.key, kMaxPemBytes));
  }
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> NewChannel(
    const Endpoint& endpoint, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // A page of records, or a large revision of a watch.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kSlowestReconnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt("grpc.http2.bdp_probe", 0);
  return grpc::CreateCustomChannel(endpoint.HostAndPort(), credentials, arguments);
}

// One attempt at a call that has one request and one answer. Borrows all.
template <typename Member, typename Stub, typename Request, typename Response>
auto Unary(std::unique_ptr<Stub> Member::*stub,
           grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Response*),
           const Request& request, Response& response) {
  return [=, &request, &response](Member& member, grpc::ClientContext& context,
                                  const pb::ResponseHeader*& header) {
    response.Clear();
    const grpc::Status status = ((*(member.*stub)).*call)(&context, request, &response);
    header = &response.header();  // Another one than before the call.
    return status;
  };
}

// Whether one of the names has an address. gRPC would say the same, but only call by call.
absl::Status CheckNames(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> why;
  for (const Endpoint& endpoint : endpoints) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int result = ::getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &found);
    if (result == 0) {
      ::freeaddrinfo(found);
      return absl::OkStatus();
    }
    why.push_back(fmt::format("{}: {}", endpoint.host, ::gai_strerror(result)));
  }
  return absl::NotFoundError(
      fmt::format("no endpoint of etcd has an address ({})", absl::StrJoin(why, "; ")));
}

}  // namespace

Connection::Member::Member(const std::shared_ptr<grpc::Channel>& channel)
    : kv(pb::KV::NewStub(channel)),
      watch(pb::Watch::NewStub(channel)),
      lease(pb::Lease::NewStub(channel)),
      maintenance(pb::Maintenance::NewStub(channel)),
      auth(pb::Auth::NewStub(channel)) {}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(Access access) {
  std::unique_ptr<Connection> connection(new Connection(std::move(access)));
  RETURN_IF_ERROR(base::Annotate(connection->Start(), "etcd " + connection->Describe()));
  return connection;
}

std::string Connection::Describe() const {
  return absl::StrJoin(access_.endpoints, ",", [](std::string* out, const Endpoint& endpoint) {
    *out += endpoint.ToString();
  });
}

absl::Status Connection::Start() {
  RETURN_IF_ERROR(CheckNames(access_.endpoints));
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(access_));
  for (const Endpoint& endpoint : access_.endpoints) {
    members_.push_back(std::make_unique<Member>(NewChannel(endpoint, credentials)));
  }
  cluster_id_ = access_.cluster_id;
  return CheckMembers();
}

// A member that does not answer is not held against the others.
absl::Status Connection::CheckMembers() {
  absl::Status last;
  bool found = false;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!access_.user.empty()) {
      const absl::Status shown = Authenticate(i, absl::Now() + CallTime().attempt);
      if (!shown.ok() && !absl::IsUnavailable(shown)) return shown;
    }
    const auto status = StatusOf(i);
    if (!status.ok()) {
      if (!absl::IsUnavailable(status.status())) return status.status();
      last = status.status();
      continue;
    }
    RETURN_IF_ERROR(
        base::Annotate(CheckVersion(status->version()), access_.endpoints[i].ToString()));
    if (cluster_id_ == 0) cluster_id_ = status->header().cluster_id();
    if (!std::exchange(found, true)) {
      absl::MutexLock lock(&mutex_);
      current_ = i;
    }
  }
  return found ? absl::OkStatus() : last;
}

absl::Status Connection::CheckCluster(const pb::ResponseHeader& header) const {
  // Answers about alarms do not name it.
  if (cluster_id_ == 0 || header.cluster_id() == 0 || header.cluster_id() == cluster_id_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(fmt::format(
      "this is another cluster of etcd ({:x}) than the one that holds the records ({:x}): correct "
      "the endpoints; if etcd was restored or made anew on purpose, remove the file etcd-cluster "
      "beside the server's other files",
      header.cluster_id(), cluster_id_));
}

void Connection::Prepare(grpc::ClientContext& context, absl::Time deadline) const {
  context.set_deadline(absl::ToChronoTime(deadline));
  absl::MutexLock lock(&mutex_);
  if (!token_.empty()) context.AddMetadata("token", token_);
}

absl::Status Connection::Authenticate(size_t index, absl::Time deadline) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  pb::AuthenticateRequest request;
  request.set_name(access_.user);
  request.set_password(access_.password);
  pb::AuthenticateResponse response;
  const grpc::Status status = members_[index]->auth->Authenticate(&context, request, &response);
  if (!status.ok()) {
    return base::Annotate(Judge(status.error_code(), status.error_message()).status,
                          access_.endpoints[index].ToString());
  }
  absl::MutexLock lock(&mutex_);
  token_ = response.token();
  return absl::OkStatus();
}

Verdict Connection::TryMember(size_t index, const Attempt& attempt, absl::Time deadline) {
  Member& member = *members_[index];
  Verdict verdict;
  for (int round = 0; round < 2; ++round) {
    grpc::ClientContext context;
    Prepare(context, deadline);
    const pb::ResponseHeader* header = nullptr;
    const grpc::Status status = attempt(member, context, header);
    if (status.ok()) {
      if (header != nullptr) {
        verdict.status = base::Annotate(CheckCluster(*header), access_.endpoints[index].ToString());
      }
      return verdict;
    }
    verdict = Judge(status.error_code(), status.error_message());
    verdict.status = base::Annotate(verdict.status, access_.endpoints[index].ToString());
    if (!verdict.authenticate || access_.user.empty() || round > 0) return verdict;
    const absl::Status shown = Authenticate(index, deadline);
    if (!shown.ok()) return {.status = shown, .try_next = absl::IsUnavailable(shown)};
    verdict = {};
  }
  return verdict;
}

absl::Status Connection::Try(const Attempt& attempt, const CallTime& time, bool* in_doubt) {
  const absl::Time end = absl::Now() + time.patience;
  size_t index = 0;
  {
    absl::MutexLock lock(&mutex_);
    index = current_;
  }
  std::vector<std::string> said(members_.size());  // By each member that had no answer.
  for (size_t tried = 1;; ++tried) {
    const Verdict verdict = TryMember(index, attempt, std::min(end, absl::Now() + time.attempt));
    if (in_doubt != nullptr) *in_doubt |= verdict.in_doubt;
    if (!verdict.try_next) {
      NoteTrouble(verdict.status);
      return verdict.status;
    }
    // The last attempts have little time, and end without saying what those before have said.
    if (!verdict.silent || said[index].empty()) said[index] = base::MessageOf(verdict.status);
    if (absl::Now() >= end) {
      std::erase(said, "");
      const absl::Status all(verdict.status.code(), absl::StrJoin(said, "; "));
      NoteTrouble(all);
      return all;
    }
    NextMember(index);
    index = (index + 1) % members_.size();
    if (tried % members_.size() == 0) absl::SleepFor(kPause);
  }
}

absl::Status Connection::TryOnly(size_t index, const Attempt& attempt, absl::Duration time) {
  return TryMember(index, attempt, absl::Now() + time).status;
}

absl::Status Connection::TryForRecords(const Attempt& attempt, const CallTime& time,
                                       bool* in_doubt) {
  RETURN_IF_ERROR(Try(attempt, time, in_doubt));
  absl::MutexLock lock(&mutex_);
  trouble_ = absl::OkStatus();
  return absl::OkStatus();
}

void Connection::NoteTrouble(const absl::Status& failure) {
  absl::MutexLock lock(&mutex_);
  switch (failure.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
      trouble_ = failure;
      return;
    default:  // There is none, or it is about this call.
      return;
  }
}

absl::Status Connection::Trouble() const {
  absl::MutexLock lock(&mutex_);
  return trouble_;
}

void Connection::NextMember(size_t failed) {
  absl::MutexLock lock(&mutex_);
  if (current_ == failed) current_ = (failed + 1) % members_.size();
}

absl::Status Connection::Range(const pb::RangeRequest& request, pb::RangeResponse& response,
                               const CallTime& time) {
  return TryForRecords(Unary(&Member::kv, &pb::KV::Stub::Range, request, response), time, nullptr);
}

absl::Status Connection::Txn(const pb::TxnRequest& request, pb::TxnResponse& response,
                             bool& in_doubt, const CallTime& time) {
  return TryForRecords(Unary(&Member::kv, &pb::KV::Stub::Txn, request, response), time, &in_doubt);
}

absl::Status Connection::Compact(int64_t revision, bool wait) {
  pb::CompactionRequest request;
  request.set_revision(revision);
  request.set_physical(wait);
  pb::CompactionResponse response;
  const absl::Status status =
      Try(Unary(&Member::kv, &pb::KV::Stub::Compact, request, response), kUpkeepTime, nullptr);
  // Somebody else has compacted further, or this is the second attempt.
  return absl::IsOutOfRange(status) ? absl::OkStatus() : status;
}

absl::StatusOr<int64_t> Connection::Grant(int64_t seconds) {
  pb::LeaseGrantRequest request;
  request.set_ttl(seconds);
  pb::LeaseGrantResponse response;
  RETURN_IF_ERROR(
      Try(Unary(&Member::lease, &pb::Lease::Stub::LeaseGrant, request, response), {}, nullptr));
  return response.id();
}

absl::Status Connection::Revoke(int64_t lease) {
  pb::LeaseRevokeRequest request;
  request.set_id(lease);
  pb::LeaseRevokeResponse response;
  return Try(Unary(&Member::lease, &pb::Lease::Stub::LeaseRevoke, request, response), kRevokeTime,
             nullptr);
}

absl::StatusOr<int64_t> Connection::KeepAlive(int64_t lease, const CallTime& time) {
  pb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  pb::LeaseKeepAliveResponse response;
  RETURN_IF_ERROR(Try(
      [&](Member& member, grpc::ClientContext& context, const pb::ResponseHeader*& header) {
        const auto stream = member.lease->LeaseKeepAlive(&context);
        const bool answered = stream->Write(request) && stream->Read(&response);
        if (answered) {
          header = &response.header();
          context.TryCancel();
          stream->Finish();
          return grpc::Status::OK;
        }
        stream->WritesDone();
        const grpc::Status status = stream->Finish();
        return status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "no answer") : status;
      },
      time, nullptr));
  return std::max<int64_t>(response.ttl(), 0);
}

absl::StatusOr<pb::AlarmResponse> Connection::Alarm(const pb::AlarmRequest& request) {
  pb::AlarmResponse response;
  RETURN_IF_ERROR(Try(Unary(&Member::maintenance, &pb::Maintenance::Stub::Alarm, request, response),
                      kUpkeepTime, nullptr));
  return response;
}

absl::StatusOr<pb::StatusResponse> Connection::StatusOf(size_t member) {
  const pb::StatusRequest request;
  pb::StatusResponse response;
  RETURN_IF_ERROR(TryOnly(
      member, Unary(&Member::maintenance, &pb::Maintenance::Stub::Status, request, response),
      CallTime().attempt));
  return response;
}

absl::Status Connection::Defragment(size_t member) {
  const pb::DefragmentRequest request;
  pb::DefragmentResponse response;
  return TryOnly(member,
                 Unary(&Member::maintenance, &pb::Maintenance::Stub::Defragment, request, response),
                 kDefragmentTime);
}

std::unique_ptr<Connection::WatchStream> Connection::Watch(grpc::ClientContext& context,
                                                           size_t& member) {
  absl::MutexLock lock(&mutex_);
  if (!token_.empty()) context.AddMetadata("token", token_);
  member = current_;
  return members_[member]->watch->Watch(&context);
}

}  // namespace spoke::ipam::etcd
