#include "lib/rpc/health_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "lib/rpc/credentials.h"
#include "lib/rpc/health_service.h"
#include "lib/rpc/health_text.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"

namespace spoke::rpc {

absl::StatusOr<Health> AskHealth(const std::string& address, const std::string& service,
                                 absl::Duration within) {
  namespace health = grpc::health::v1;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto stub = health::Health::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(within));
  health::HealthCheckRequest request;
  request.set_service(service);
  health::HealthCheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  if (!status.ok()) {
    return FromGrpc(static_cast<int>(status.error_code()), status.error_message());
  }
  Health out{.serving = response.status() == health::HealthCheckResponse::SERVING};
  const auto& metadata = context.GetServerTrailingMetadata();
  if (const auto it = metadata.find(kReasonKey); !out.serving && it != metadata.end()) {
    out.reasons = SplitReasons({it->second.data(), it->second.size()});
  }
  return out;
}

}  // namespace spoke::rpc
