// The calls of the admin API: a connection, a deadline, and errors that say what to do.
// Thread-safe; connects with the first call and again when the connection is lost.
//
// Errors of every call: kUnavailable (no server there, or one that has gone away: the message has
// where it was looked for), kPermissionDenied (this user may not open the server's socket, or the
// caller's role does not do), kDeadlineExceeded (it did not answer in time; what was asked may have
// happened), kAborted (the server itself says that it cannot now, such as with a full disk), and
// what admin.proto says of the call, with the server's message. Beyond kGetStatus, a server whose
// version does not work with ours answers kFailedPrecondition, and says which to upgrade first.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/base/status.h"
#include "lib/rpc/credentials.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {

// Takes one message of a stream. An error ends the call and becomes its result.
template <typename Message>
using Each = std::function<absl::Status(const Message&)>;

// The calls of AdminService: what is asked, and what is answered, once or by a stream.
template <typename Request, typename Response>
struct Call {
  std::string_view method = "";  // Empty: what the request is named for ("GetNodeRequest").
};
template <typename Request, typename Response>
struct Stream {
  std::string_view method = "";
};

inline constexpr Call<v1::GetStatusRequest, v1::GetStatusResponse> kGetStatus;
inline constexpr Call<v1::GetRecoveryRequest, v1::RecoveryInfo> kGetRecovery;
inline constexpr Call<v1::ConfirmRecoveryRequest, v1::RecoveryInfo> kConfirmRecovery;
inline constexpr Call<v1::UnfreezeRequest, v1::UnfreezeResponse> kUnfreeze;
inline constexpr Call<v1::ListPoolsRequest, v1::ListPoolsResponse> kListPools;
inline constexpr Call<v1::GetNodeRequest, v1::GetNodeResponse> kGetNode;
inline constexpr Call<v1::SetNodeModeRequest, v1::NodeInfo> kSetNodeMode;
inline constexpr Call<v1::RetryNodeRequest, v1::NodeInfo> kRetryNode;
inline constexpr Call<v1::StartMaintenanceRequest, v1::StartMaintenanceResponse> kStartMaintenance;
inline constexpr Call<v1::GetNodeDataRequest, v1::GetNodeDataResponse> kGetNodeData;
inline constexpr Call<v1::ForgetNodeRequest, v1::ForgetNodeResponse> kForgetNode;
inline constexpr Call<v1::RevokeIdentityRequest, v1::RevokeIdentityResponse> kRevokeIdentity;
inline constexpr Call<v1::UnrevokeIdentityRequest, v1::UnrevokeIdentityResponse> kUnrevokeIdentity;
inline constexpr Call<v1::ListRevokedRequest, v1::ListRevokedResponse> kListRevoked;
inline constexpr Call<v1::ListRootsRequest, v1::ListRootsResponse> kListRoots;
inline constexpr Call<v1::RotateAuthorityRequest, v1::ListRootsResponse> kRotateAuthority;
inline constexpr Call<v1::GetAddressRequest, v1::AddressInfo> kGetAddress;
inline constexpr Call<v1::GetAddressHistoryRequest, v1::GetAddressHistoryResponse>
    kGetAddressHistory;
inline constexpr Call<v1::ReleaseAddressRequest, v1::AddressInfo> kReleaseAddress;
inline constexpr Call<v1::QuarantineAddressRequest, v1::AddressInfo> kQuarantineAddress;
inline constexpr Call<v1::CreateReservationRequest, v1::ReservationInfo> kCreateReservation;
inline constexpr Call<v1::ListReservationsRequest, v1::ListReservationsResponse> kListReservations;
inline constexpr Call<v1::DeleteReservationRequest, v1::ReservationInfo> kDeleteReservation;
inline constexpr Call<v1::ApplyRequest, v1::ApplyResponse> kApply;
inline constexpr Call<v1::DeleteObjectsRequest, v1::DeleteObjectsResponse> kDeleteObjects;
inline constexpr Call<v1::GetObjectsRequest, v1::GetObjectsResponse> kGetObjects;
inline constexpr Call<v1::GetRolloutRequest, v1::GetRolloutResponse> kGetRollout;
inline constexpr Call<v1::ResumeRolloutRequest, v1::ResumeRolloutResponse> kResumeRollout;
inline constexpr Call<v1::UndoRolloutRequest, v1::ApplyResponse> kUndoRollout;
inline constexpr Call<v1::ListOperatorLogRequest, v1::ListOperatorLogResponse> kListOperatorLog;
inline constexpr Call<v1::ApplyRequest, v1::EstimateCutsResponse> kEstimateCuts{"EstimateCuts"};
inline constexpr Call<v1::ExplainRequest, v1::ExplainResponse> kExplain;
inline constexpr Call<v1::WhatIfRequest, v1::WhatIfResponse> kWhatIf;
inline constexpr Call<v1::GetTopRequest, v1::GetTopResponse> kGetTop;
inline constexpr Call<v1::GetTrafficRequest, v1::GetTrafficResponse> kGetTraffic;
inline constexpr Call<v1::GetTrafficCourseRequest, v1::GetTrafficCourseResponse> kGetTrafficCourse;
inline constexpr Call<v1::GetBudgetsRequest, v1::GetBudgetsResponse> kGetBudgets;
inline constexpr Call<v1::GetReachabilityRequest, v1::GetReachabilityResponse> kGetReachability;

inline constexpr Stream<v1::ListNodesRequest, v1::ListNodesResponse> kListNodes;
inline constexpr Stream<v1::ListAddressesRequest, v1::ListAddressesResponse> kListAddresses;
inline constexpr Stream<v1::AuditRequest, v1::AuditResponse> kAudit;
inline constexpr Stream<v1::VerifyPolicyRequest, v1::VerifyPolicyResponse> kVerifyPolicy;
inline constexpr Stream<v1::CheckNodesRequest, v1::CheckNodesResponse> kCheckNodes;
inline constexpr Stream<v1::ListEventsRequest, v1::ListEventsResponse> kListEvents;
inline constexpr Stream<v1::BackupRequest, v1::BackupResponse> kBackup;

// Where servers are, and what they are shown.
struct Target {
  // Each "host:port", or "unix:/run/spoke/ipam-admin.sock". Of several, the first that lets us in
  // is asked; one that only stands by does not.
  std::vector<std::string> servers;
  rpc::TlsFiles tls;        // Over the network; sockets have no TLS.
  std::string server_name;  // What the server's certificate bears; empty: the host.
};

class Client {
 public:
  // Makes a client. With an error in place of `target`, that is what each call returns. `timeout`
  // is for the answer to a call, and for each further message of a stream.
  Client(absl::StatusOr<Target> target, absl::Duration timeout);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Returns the servers, for people; empty: none is known.
  const std::string& server() const;

  // Makes a call.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Ask(const Call<Request, Response>& call,
                               const Request& request = {}) const {
    Response response;
    RETURN_IF_ERROR(Ask(call.method, request, response));
    return response;
  }

  // Makes a call that is answered by a stream. `patient`: once the first message is here, the next
  // ones may take as long as they like.
  template <typename Request, typename Response>
  absl::Status Read(const Stream<Request, Response>& call, const Request& request,
                    const std::type_identity_t<Each<Response>>& each, bool patient = false) const {
    Response response;
    return Read(
        call.method, request, response, [&] { return each(response); }, patient);
  }

 private:
  struct Calls;  // The part that needs gRPC's headers.
  using MessageLite = google::protobuf::MessageLite;

  // `method` may be empty, as above.
  absl::Status Ask(std::string_view method, const MessageLite& request,
                   MessageLite& response) const;
  // Calls `each` whenever `response` is the next message.
  absl::Status Read(std::string_view method, const MessageLite& request, MessageLite& response,
                    const std::function<absl::Status()>& each, bool patient) const;

  std::unique_ptr<Calls> calls_;
};

}  // namespace spoke::ctl
