#include "ipam-server/readiness.h"

#include <grpcpp/health_check_service_interface.h>

namespace spoke::ipam {

void Readiness::ShowOn(grpc::Server& server, std::string service) {
  absl::MutexLock lock(&mutex_);
  shown_.emplace_back(&server, std::move(service));
}

void Readiness::SetWritable(bool writable) {
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [server, service] : shown_) {
      server->GetHealthCheckService()->SetServingStatus(service, writable);
    }
  }
  if (writable) return health_.Say({});
  health_.Say(
      {"the store cannot be written, so that no node gets another address; spokectl status "
       "says why: free its disk, or make it writable"});
}

}  // namespace spoke::ipam
