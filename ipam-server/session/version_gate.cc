#include "ipam-server/session/version_gate.h"

#include "lib/base/version_skew.h"
#include "lib/rpc/status.h"
#include "lib/rpc/version_key.h"

namespace spoke::ipam {

grpc::Status VersionGate::Refusal(const grpc::ServerContext& context) const {
  const auto& metadata = context.client_metadata();
  const auto it = metadata.find(rpc::kVersionKey);
  if (it == metadata.end()) return grpc::Status::OK;
  return rpc::ToGrpc(base::CheckSkew({"spokectl", {it->second.data(), it->second.size()}},
                                     {"spoke-ipam-server", version_}));
}

}  // namespace spoke::ipam
