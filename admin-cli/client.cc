#include "admin-cli/client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/version_key.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::ctl {
namespace {

using Stub = v1::AdminService::Stub;

// The largest message. One of the server's with 1,000 rows, or a piece of a backup, has less than
// this.
constexpr int kMaxMessageBytes = 64 << 20;

// How long one of several servers has to let us in, before the next is tried.
constexpr absl::Duration kConnectTime = absl::Seconds(3);

bool IsSocket(std::string_view server) { return server.starts_with("unix:"); }

std::chrono::system_clock::time_point In(absl::Duration duration) {
  return std::chrono::system_clock::now() + absl::ToChronoMicroseconds(duration);
}

// Returns whether the code came in the server's answer; else the library made it up because there
// was none. Only the library's own words tell the two apart.
bool SaidByServer(const grpc::ClientContext& context) {
  return context.debug_error_string().find("received from peer") != std::string::npos;
}

}  // namespace

struct Client::Calls {
  Calls(absl::StatusOr<Target> where, absl::Duration limit)
      : target(std::move(where)), timeout(limit) {
    if (target.ok()) server = absl::StrJoin(target->servers, ", ");
  }

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Open(const std::string& at) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    if (IsSocket(at)) {
      return grpc::CreateCustomChannel(at, grpc::InsecureChannelCredentials(), arguments);
    }
    ASSIGN_OR_RETURN(const auto credentials, rpc::ClientCredentials(target->tls));
    if (!target->server_name.empty()) {
      arguments.SetSslTargetNameOverride(target->server_name);
    }
    return grpc::CreateCustomChannel(at, credentials, arguments);
  }

  // Returns the stub of the first server that lets us in, or else of the last, whose refusal the
  // call then tells. Nothing is asked before that is known: what has been sent to one server may
  // have happened there, and is not sent to another.
  absl::StatusOr<Stub*> Chosen() const {
    absl::MutexLock lock(&mutex);
    if (stub != nullptr) return stub.get();
    RETURN_IF_ERROR(target.status());
    for (const std::string& at : target->servers) {
      ASSIGN_OR_RETURN(const auto channel, Open(at));
      const bool last = &at == &target->servers.back();
      if (!last && !LetsIn(*channel)) continue;
      stub = v1::AdminService::NewStub(channel);
      return stub.get();
    }
    return absl::InvalidArgumentError("no server is named");
  }

  bool LetsIn(grpc::Channel& channel) const {
    const auto until = In(std::min(timeout, kConnectTime));
    for (auto state = channel.GetState(true);; state = channel.GetState(true)) {
      if (state == GRPC_CHANNEL_READY) return true;
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) return false;
      if (!channel.WaitForStateChange(state, until)) return false;
    }
  }

  absl::Status ToStatus(const grpc::Status& status, const grpc::ClientContext& context) const {
    if (status.ok()) return absl::OkStatus();
    const std::string& message = status.error_message();
    const bool said = SaidByServer(context);
    switch (status.error_code()) {
      case grpc::StatusCode::UNAVAILABLE:
        if (said) return absl::AbortedError(message);
        return absl::UnavailableError(fmt::format(
            "no server answers at {}: {} [{}]", server,
            IsSocket(server) ? "is spoke-ipam-server running here, and may you open its socket? "
                               "(--server or SPOKE_SERVER names another)"
                             : "does one of them lead, is this its listen.operators, and is the "
                               "certificate of the context of its authority?",
            message));
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        // The library at the server's end watches our deadline too, in the same two words.
        if (said && message != "Deadline Exceeded") return absl::DeadlineExceededError(message);
        return absl::DeadlineExceededError(
            fmt::format("the server at {} did not answer within {}; what was asked may have "
                        "happened all the same (--timeout waits longer)",
                        server, absl::FormatDuration(timeout)));
      case grpc::StatusCode::UNIMPLEMENTED:
        return absl::UnimplementedError(
            "the server does not know this call: it is older than this spokectl (spokectl version "
            "shows both); update it");
      default:
        return rpc::FromGrpc(static_cast<int>(status.error_code()), message);
    }
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> One(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
                               const Request& request) const {
    ASSIGN_OR_RETURN(Stub* const chosen, Chosen());
    grpc::ClientContext context;
    context.AddMetadata(rpc::kVersionKey, base::kVersion);
    context.set_deadline(In(timeout));
    Response response;
    const grpc::Status status = (chosen->*method)(&context, request, &response);
    if (!status.ok()) return ToStatus(status, context);
    return response;
  }

  // Reads a stream. With `patient`, the next message may take for ever once the first one is here.
  // A queue of our own gives each message its own deadline, which a call as a whole cannot have: a
  // backup may take an hour, but not be silent for a minute.
  template <typename Request, typename Response>
  absl::Status Many(std::unique_ptr<grpc::ClientAsyncReader<Response>> (Stub::*method)(
                        grpc::ClientContext*, const Request&, grpc::CompletionQueue*, void*),
                    const Request& request, const Each<Response>& each, bool patient) const {
    ASSIGN_OR_RETURN(Stub* const chosen, Chosen());
    grpc::ClientContext context;
    context.AddMetadata(rpc::kVersionKey, base::kVersion);
    grpc::CompletionQueue queue;
    absl::Status mine;  // An end that this side has made.
    bool silent_for_too_long = false;
    bool waiting_for_ever = false;
    // Returns true when the operation under way has succeeded. There is never more than one.
    const auto done = [&] {
      void* tag = nullptr;
      bool ok = false;
      const auto until =
          waiting_for_ever ? std::chrono::system_clock::time_point::max() : In(timeout);
      if (queue.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) return ok;
      silent_for_too_long = true;
      context.TryCancel();
      queue.Next(&tag, &ok);
      return false;
    };
    const auto reader = (chosen->*method)(&context, request, &queue, nullptr);
    bool more = done();
    while (more) {
      Response response;
      waiting_for_ever = patient;
      reader->Read(&response, nullptr);
      more = done();
      if (!more) break;
      mine = each(response);
      if (!mine.ok()) {
        context.TryCancel();
        break;
      }
    }
    grpc::Status status;
    waiting_for_ever = true;  // Cancelled or ended by the server: this comes at once.
    reader->Finish(&status, nullptr);
    done();
    queue.Shutdown();
    if (!mine.ok()) return mine;
    if (silent_for_too_long) {
      return absl::DeadlineExceededError(
          fmt::format("the server at {} said nothing for {} (--timeout waits longer)", server,
                      absl::FormatDuration(timeout)));
    }
    return ToStatus(status, context);
  }

  const absl::StatusOr<Target> target;
  std::string server;  // The text for messages: all of them.
  const absl::Duration timeout;
  mutable absl::Mutex mutex;
  mutable std::unique_ptr<Stub> stub ABSL_GUARDED_BY(mutex);
};

Client::Client(absl::StatusOr<Target> target, absl::Duration timeout)
    : calls_(std::make_unique<Calls>(std::move(target), timeout)) {}

Client::~Client() = default;

const std::string& Client::server() const { return calls_->server; }

absl::StatusOr<v1::GetStatusResponse> Client::GetStatus() const {
  return calls_->One(&Stub::GetStatus, v1::GetStatusRequest());
}
absl::StatusOr<v1::RecoveryInfo> Client::GetRecovery() const {
  return calls_->One(&Stub::GetRecovery, v1::GetRecoveryRequest());
}

absl::StatusOr<v1::RecoveryInfo> Client::ConfirmRecovery(
    const v1::ConfirmRecoveryRequest& request) const {
  return calls_->One(&Stub::ConfirmRecovery, request);
}

absl::StatusOr<v1::UnfreezeResponse> Client::Unfreeze() const {
  return calls_->One(&Stub::Unfreeze, v1::UnfreezeRequest());
}
absl::StatusOr<v1::ListPoolsResponse> Client::ListPools(const v1::ListPoolsRequest& request) const {
  return calls_->One(&Stub::ListPools, request);
}
absl::Status Client::ListNodes(const v1::ListNodesRequest& request,
                               const Each<v1::ListNodesResponse>& each) const {
  return calls_->Many(&Stub::AsyncListNodes, request, each, false);
}
absl::StatusOr<v1::GetNodeResponse> Client::GetNode(const v1::GetNodeRequest& request) const {
  return calls_->One(&Stub::GetNode, request);
}
absl::StatusOr<v1::NodeInfo> Client::SetNodeMode(const v1::SetNodeModeRequest& request) const {
  return calls_->One(&Stub::SetNodeMode, request);
}
absl::StatusOr<v1::NodeInfo> Client::RetryNode(const v1::RetryNodeRequest& request) const {
  return calls_->One(&Stub::RetryNode, request);
}
absl::StatusOr<v1::ForgetNodeResponse> Client::ForgetNode(
    const v1::ForgetNodeRequest& request) const {
  return calls_->One(&Stub::ForgetNode, request);
}
absl::StatusOr<v1::RevokeIdentityResponse> Client::RevokeIdentity(
    const v1::RevokeIdentityRequest& request) const {
  return calls_->One(&Stub::RevokeIdentity, request);
}
absl::StatusOr<v1::UnrevokeIdentityResponse> Client::UnrevokeIdentity(
    const v1::UnrevokeIdentityRequest& request) const {
  return calls_->One(&Stub::UnrevokeIdentity, request);
}
absl::StatusOr<v1::ListRevokedResponse> Client::ListRevoked() const {
  return calls_->One(&Stub::ListRevoked, v1::ListRevokedRequest());
}
absl::StatusOr<v1::ListRootsResponse> Client::ListRoots() const {
  return calls_->One(&Stub::ListRoots, v1::ListRootsRequest());
}
absl::StatusOr<v1::ListRootsResponse> Client::RotateAuthority() const {
  return calls_->One(&Stub::RotateAuthority, v1::RotateAuthorityRequest());
}
absl::Status Client::ListAddresses(const v1::ListAddressesRequest& request,
                                   const Each<v1::ListAddressesResponse>& each) const {
  return calls_->Many(&Stub::AsyncListAddresses, request, each, false);
}
absl::StatusOr<v1::AddressInfo> Client::GetAddress(const v1::GetAddressRequest& request) const {
  return calls_->One(&Stub::GetAddress, request);
}
absl::StatusOr<v1::GetAddressHistoryResponse> Client::GetAddressHistory(
    const v1::GetAddressHistoryRequest& request) const {
  return calls_->One(&Stub::GetAddressHistory, request);
}
absl::StatusOr<v1::AddressInfo> Client::ReleaseAddress(
    const v1::ReleaseAddressRequest& request) const {
  return calls_->One(&Stub::ReleaseAddress, request);
}
absl::StatusOr<v1::AddressInfo> Client::QuarantineAddress(
    const v1::QuarantineAddressRequest& request) const {
  return calls_->One(&Stub::QuarantineAddress, request);
}
absl::StatusOr<v1::ReservationInfo> Client::CreateReservation(
    const v1::CreateReservationRequest& request) const {
  return calls_->One(&Stub::CreateReservation, request);
}
absl::StatusOr<v1::ListReservationsResponse> Client::ListReservations() const {
  return calls_->One(&Stub::ListReservations, v1::ListReservationsRequest());
}
absl::StatusOr<v1::ReservationInfo> Client::DeleteReservation(
    const v1::DeleteReservationRequest& request) const {
  return calls_->One(&Stub::DeleteReservation, request);
}
absl::StatusOr<v1::ApplyResponse> Client::Apply(const v1::ApplyRequest& request) const {
  return calls_->One(&Stub::Apply, request);
}
absl::StatusOr<v1::DeleteObjectsResponse> Client::DeleteObjects(
    const v1::DeleteObjectsRequest& request) const {
  return calls_->One(&Stub::DeleteObjects, request);
}
absl::StatusOr<v1::GetObjectsResponse> Client::GetObjects(
    const v1::GetObjectsRequest& request) const {
  return calls_->One(&Stub::GetObjects, request);
}
absl::StatusOr<v1::GetRolloutResponse> Client::GetRollout() const {
  return calls_->One(&Stub::GetRollout, v1::GetRolloutRequest());
}
absl::StatusOr<v1::ResumeRolloutResponse> Client::ResumeRollout(
    const v1::ResumeRolloutRequest& request) const {
  return calls_->One(&Stub::ResumeRollout, request);
}
absl::StatusOr<v1::ApplyResponse> Client::UndoRollout(const v1::UndoRolloutRequest& request) const {
  return calls_->One(&Stub::UndoRollout, request);
}
absl::StatusOr<v1::ListOperatorLogResponse> Client::ListOperatorLog(
    const v1::ListOperatorLogRequest& request) const {
  return calls_->One(&Stub::ListOperatorLog, request);
}
absl::StatusOr<v1::EstimateCutsResponse> Client::EstimateCuts(
    const v1::ApplyRequest& request) const {
  return calls_->One(&Stub::EstimateCuts, request);
}
absl::Status Client::Audit(const v1::AuditRequest& request,
                           const Each<v1::AuditResponse>& each) const {
  return calls_->Many(&Stub::AsyncAudit, request, each, false);
}
absl::StatusOr<v1::ExplainResponse> Client::Explain(const v1::ExplainRequest& request) const {
  return calls_->One(&Stub::Explain, request);
}
absl::StatusOr<v1::WhatIfResponse> Client::WhatIf(const v1::WhatIfRequest& request) const {
  return calls_->One(&Stub::WhatIf, request);
}
absl::StatusOr<v1::GetTopResponse> Client::GetTop(const v1::GetTopRequest& request) const {
  return calls_->One(&Stub::GetTop, request);
}
absl::StatusOr<v1::GetTrafficResponse> Client::GetTraffic(
    const v1::GetTrafficRequest& request) const {
  return calls_->One(&Stub::GetTraffic, request);
}
absl::StatusOr<v1::GetBudgetsResponse> Client::GetBudgets(
    const v1::GetBudgetsRequest& request) const {
  return calls_->One(&Stub::GetBudgets, request);
}
absl::Status Client::VerifyPolicy(const v1::VerifyPolicyRequest& request,
                                  const Each<v1::VerifyPolicyResponse>& each) const {
  return calls_->Many(&Stub::AsyncVerifyPolicy, request, each, false);
}
absl::Status Client::ListEvents(const v1::ListEventsRequest& request,
                                const Each<v1::ListEventsResponse>& each) const {
  return calls_->Many(&Stub::AsyncListEvents, request, each, request.follow());
}
absl::Status Client::Backup(const Each<v1::BackupResponse>& each) const {
  return calls_->Many(&Stub::AsyncBackup, v1::BackupRequest(), each, false);
}

}  // namespace spoke::ctl
