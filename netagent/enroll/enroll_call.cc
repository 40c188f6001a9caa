#include "netagent/enroll/enroll_call.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <random>

#include "absl/time/clock.h"
#include "lib/base/status.h"
#include "lib/rpc/credentials.h"
#include "proto/spoke/v1/enroll.grpc.pb.h"

namespace spoke::netagent {
namespace {

// The limit has room for a chain of a few certificates.
constexpr int kMaxReplyBytes = 256 << 10;

}  // namespace

EnrollCall::EnrollCall(EnrollServers servers) : servers_(std::move(servers)) {
  std::random_device random;
  first_ = random() % servers_.servers.size();
}

void EnrollCall::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

absl::StatusOr<EnrollAnswer> EnrollCall::Ask(const EnrollAsk& ask, absl::Duration patience) {
  const size_t count = servers_.servers.size();
  const auto part = patience / static_cast<int64_t>(count);
  std::string why;
  absl::Status last;
  for (size_t i = 0; i < count; ++i) {
    const size_t number = (first_ + i) % count;
    const std::string& server = servers_.servers[number];
    auto answer = AskOne(server, ask, part);
    last = answer.status();
    if (!absl::IsUnavailable(last) && !absl::IsDeadlineExceeded(last)) {
      first_ = number;
      return answer;
    }
    if (!why.empty()) why += "; ";
    why += server + ": ";
    why += base::MessageOf(last);
  }
  return count == 1 ? last : absl::Status(last.code(), why);
}

absl::StatusOr<EnrollAnswer> EnrollCall::AskOne(const std::string& server, const EnrollAsk& ask,
                                                absl::Duration patience) {
  ASSIGN_OR_RETURN(const auto credentials, rpc::AnonymousCredentials(servers_.ca_file));
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Each call has a new connection: the server's certificate, or `ca_file`, may have changed.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  if (!servers_.server_name.empty()) arguments.SetSslTargetNameOverride(servers_.server_name);
  const auto stub =
      v1::EnrollService::NewStub(grpc::CreateCustomChannel(server, credentials, arguments));
  v1::EnrollRequest request;
  request.set_csr(ask.csr);
  request.set_node_name(ask.node_name);
  request.set_vm_id(ask.vm_id);
  request.set_token(ask.token);
  request.set_certificate(ask.certificate);
  request.set_proof(ask.proof);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
  {
    absl::MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("stopping");
    context_ = &context;
  }
  v1::EnrollReply reply;
  const grpc::Status status = stub->Enroll(&context, request, &reply);
  {
    absl::MutexLock lock(&mutex_);
    context_ = nullptr;
  }
  RETURN_IF_ERROR(rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message()));
  return EnrollAnswer{.certificate = reply.certificate_chain(), .roots = reply.ca()};
}

}  // namespace spoke::netagent
