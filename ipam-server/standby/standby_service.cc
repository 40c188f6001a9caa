#include "ipam-server/standby/standby_service.h"

#include <memory>

#include "lib/base/version.h"
#include "lib/rpc/version_key.h"

namespace spoke::ipam {
namespace {

// Lives until gRPC is done with it.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const std::string& why) { Finish({grpc::StatusCode::UNAVAILABLE, why}); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* StandbyService::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  context->AddTrailingMetadata(rpc::kVersionKey, std::string(base::kVersion));
  absl::MutexLock lock(&mutex_);
  return new Refusal(why_);
}

}  // namespace spoke::ipam
