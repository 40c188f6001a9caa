#include "ipam-server/admin/admin_gate.h"

#include "ipam-server/operators/caller.h"
#include "lib/base/status.h"
#include "lib/base/version_skew.h"
#include "lib/rpc/status.h"
#include "lib/rpc/version_key.h"

namespace spoke::ipam {
namespace {

// Whoever has any certificate of the authority can be refused as often as it likes.
constexpr absl::Duration kTellPause = absl::Seconds(1);

}  // namespace

grpc::Status AdminGate::Refusal(const grpc::ServerContext& context, const Asked& asked) {
  const auto caller = CallerOf(context, clock_.Now());
  absl::Status status = caller.status();
  if (status.ok()) {
    status = revocations_.Check({.node = "", .serial = caller->serial, .machines = {}});
  }
  if (status.ok()) status = Authorize(*caller, asked);
  if (!status.ok()) TellRefused(context, asked, status);
  return rpc::ToGrpc(status);
}

grpc::Status AdminGate::SkewOf(const grpc::ServerContext& context) const {
  const auto& metadata = context.client_metadata();
  const auto it = metadata.find(rpc::kVersionKey);
  if (it == metadata.end()) return grpc::Status::OK;
  return rpc::ToGrpc(base::CheckSkew({"spokectl", {it->second.data(), it->second.size()}},
                                     {"spoke-ipam-server", version_}));
}

void AdminGate::TellRefused(const grpc::ServerContext& context, const Asked& asked,
                            const absl::Status& refused) {
  uint64_t count = 0;
  {
    absl::MutexLock lock(&mutex_);
    ++untold_;
    const absl::Time now = clock_.Now();
    if (now < tell_at_) return;
    tell_at_ = now + kTellPause;
    count = std::exchange(untold_, 0);
  }
  log_.Warn(
      "operator_refused",
      {{"peer", context.peer()}, {"method", asked.method}, {"error", refused}, {"count", count}});
}

}  // namespace spoke::ipam
