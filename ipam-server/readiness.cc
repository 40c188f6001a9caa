#include "ipam-server/readiness.h"

#include <grpcpp/health_check_service_interface.h>

namespace spoke::ipam {

void Readiness::ShowOn(grpc::Server& server, std::string service) {
  absl::MutexLock lock(&mutex_);
  shown_.emplace_back(&server, std::move(service));
}

void Readiness::SetWritable(bool writable) {
  absl::MutexLock lock(&mutex_);
  writable_ = writable;
  Say();
}

void Readiness::SetLeading(bool leading) {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(leading_, leading) != leading) Say();
}

void Readiness::Say() {
  for (const auto& [server, service] : shown_) {
    server->GetHealthCheckService()->SetServingStatus(service, writable_ && leading_);
  }
  rpc::Reasons reasons;
  if (!writable_) {
    reasons.emplace_back(
        "the store cannot be written, so that no node gets another address; spokectl status says "
        "why: free its disk, or make it writable");
  }
  if (!leading_) {
    reasons.emplace_back(
        "it cannot renew its leadership at etcd, and has sent its agents to the next server: "
        "etcd has no quorum, or cannot be reached from here");
  }
  health_.Say(std::move(reasons));
}

}  // namespace spoke::ipam
