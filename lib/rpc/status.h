// Turns our status into gRPC's; the codes have the same numbers by design. The way back is
// FromGrpc() in lib/rpc/credentials.h, which needs no gRPC header.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace spoke::rpc {

inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace spoke::rpc
