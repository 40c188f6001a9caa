#include "ipam-server/admin/admin_gate.h"

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/method_handler.h>

#include <utility>

#include "ipam-server/operators/caller.h"
#include "lib/base/status.h"
#include "lib/base/version_skew.h"
#include "lib/rpc/status.h"
#include "lib/rpc/version_key.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::ipam {
namespace {

using grpc::internal::RpcMethod;

// Whoever has any certificate of the authority can be refused as often as it likes.
constexpr absl::Duration kTellPause = absl::Seconds(1);

constexpr std::string_view kAnyVersion = "GetStatus";

// What gRPC's generated code makes of a method: a kind, and a handler that reads the request.
template <typename Request, typename Answer>
struct Method {
  static constexpr auto kType = RpcMethod::NORMAL_RPC;
  using Handler = grpc::internal::RpcMethodHandler<AdminGate, Request, Answer>;
};
template <typename Request, typename Row>
struct Method<Request, grpc::ServerWriter<Row>> {
  static constexpr auto kType = RpcMethod::SERVER_STREAMING;
  using Handler = grpc::internal::ServerStreamingHandler<AdminGate, Request, Row>;
};

template <typename Request>
Asked Asks(std::string_view method, const Request& request) {
  Asked asked{.method = method};
  if constexpr (requires { request.dry_run(); }) asked.dry_run = request.dry_run();
  if constexpr (requires { request.force(); }) asked.force = request.force();
  return asked;
}

}  // namespace

template <typename Request, typename Answer>
void AdminGate::Serve(std::string_view name,
                      absl::Status (AdminService::*call)(const grpc::ServerContext&, const Request&,
                                                         Answer&)) {
  using Served = Method<Request, Answer>;
  methods_.push_back("/spoke.v1.AdminService/" + std::string(name));
  const auto pass = [name, call](AdminGate* gate, grpc::ServerContext* context,
                                 const Request* request, Answer* answer) {
    absl::Status status = gate->Check(*context, Asks(name, *request));
    if (status.ok()) status = (gate->behind_.*call)(*context, *request, *answer);
    return rpc::ToGrpc(status);
  };
  AddMethod(new grpc::internal::RpcServiceMethod(methods_.back().c_str(), Served::kType,
                                                 new typename Served::Handler(pass, this)));
}

AdminGate::AdminGate(std::string version, AdminService& behind, const Edges& edges)
    : version_(std::move(version)), behind_(behind), edges_(edges) {
  Serve("GetStatus", &AdminService::GetStatus);
  Serve("GetRecovery", &AdminService::GetRecovery);
  Serve("ConfirmRecovery", &AdminService::ConfirmRecovery);
  Serve("Unfreeze", &AdminService::Unfreeze);
  Serve("ListPools", &AdminService::ListPools);
  Serve("ListNodes", &AdminService::ListNodes);
  Serve("GetNode", &AdminService::GetNode);
  Serve("SetNodeMode", &AdminService::SetNodeMode);
  Serve("RetryNode", &AdminService::RetryNode);
  Serve("StartMaintenance", &AdminService::StartMaintenance);
  Serve("GetNodeData", &AdminService::GetNodeData);
  Serve("ForgetNode", &AdminService::ForgetNode);
  Serve("RevokeIdentity", &AdminService::RevokeIdentity);
  Serve("UnrevokeIdentity", &AdminService::UnrevokeIdentity);
  Serve("ListRevoked", &AdminService::ListRevoked);
  Serve("ListRoots", &AdminService::ListRoots);
  Serve("RotateAuthority", &AdminService::RotateAuthority);
  Serve("ListAddresses", &AdminService::ListAddresses);
  Serve("GetAddress", &AdminService::GetAddress);
  Serve("GetAddressHistory", &AdminService::GetAddressHistory);
  Serve("ReleaseAddress", &AdminService::ReleaseAddress);
  Serve("QuarantineAddress", &AdminService::QuarantineAddress);
  Serve("CreateReservation", &AdminService::CreateReservation);
  Serve("ListReservations", &AdminService::ListReservations);
  Serve("DeleteReservation", &AdminService::DeleteReservation);
  Serve("Apply", &AdminService::Apply);
  Serve("DeleteObjects", &AdminService::DeleteObjects);
  Serve("GetObjects", &AdminService::GetObjects);
  Serve("GetRollout", &AdminService::GetRollout);
  Serve("ResumeRollout", &AdminService::ResumeRollout);
  Serve("UndoRollout", &AdminService::UndoRollout);
  Serve("ListOperatorLog", &AdminService::ListOperatorLog);
  Serve("EstimateCuts", &AdminService::EstimateCuts);
  Serve("Audit", &AdminService::Audit);
  Serve("Explain", &AdminService::Explain);
  Serve("WhatIf", &AdminService::WhatIf);
  Serve("GetTop", &AdminService::GetTop);
  Serve("GetTraffic", &AdminService::GetTraffic);
  Serve("GetTrafficCourse", &AdminService::GetTrafficCourse);
  Serve("GetBudgets", &AdminService::GetBudgets);
  Serve("VerifyPolicy", &AdminService::VerifyPolicy);
  Serve("GetReachability", &AdminService::GetReachability);
  Serve("CheckNodes", &AdminService::CheckNodes);
  Serve("ListEvents", &AdminService::ListEvents);
  Serve("Backup", &AdminService::Backup);
}

absl::Status AdminGate::Check(const grpc::ServerContext& context, const Asked& asked) {
  if (absl::Status status = CheckRole(context, asked); !status.ok()) {
    TellRefused(context, asked, status);
    return status;
  }
  return asked.method == kAnyVersion ? absl::OkStatus() : CheckVersion(context);
}

absl::Status AdminGate::CheckRole(const grpc::ServerContext& context, const Asked& asked) const {
  ASSIGN_OR_RETURN(const Operator caller, CallerOf(context, edges_.clock.Now()));
  RETURN_IF_ERROR(edges_.revocations.Check({.node = "", .serial = caller.serial, .machines = {}}));
  return Authorize(caller, asked);
}

absl::Status AdminGate::CheckVersion(const grpc::ServerContext& context) const {
  const auto& metadata = context.client_metadata();
  const auto it = metadata.find(rpc::kVersionKey);
  if (it == metadata.end()) return absl::OkStatus();
  return base::CheckSkew({"spokectl", {it->second.data(), it->second.size()}},
                         {"spoke-ipam-server", version_});
}

void AdminGate::TellRefused(const grpc::ServerContext& context, const Asked& asked,
                            const absl::Status& refused) {
  uint64_t count = 0;
  {
    absl::MutexLock lock(&mutex_);
    ++untold_;
    const absl::Time now = edges_.clock.Now();
    if (now < tell_at_) return;
    tell_at_ = now + kTellPause;
    count = std::exchange(untold_, 0);
  }
  edges_.log.Warn(
      "operator_refused",
      {{"peer", context.peer()}, {"method", asked.method}, {"error", refused}, {"count", count}});
}

}  // namespace spoke::ipam
