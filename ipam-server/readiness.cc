#include "ipam-server/readiness.h"

#include <grpcpp/health_check_service_interface.h>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ipam {

void Readiness::ShowOn(grpc::Server& server, std::string service) {
  absl::MutexLock lock(&mutex_);
  shown_.emplace_back(&server, std::move(service));
}

void Readiness::SetWritable(absl::Status why_not) {
  absl::MutexLock lock(&mutex_);
  not_writable_ = std::move(why_not);
  Say();
}

void Readiness::SetLeading(absl::Status why_not) {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(not_leading_, why_not) != why_not) Say();
}

void Readiness::Say() {
  const bool ready = not_writable_.ok() && not_leading_.ok();
  for (const auto& [server, service] : shown_) {
    server->GetHealthCheckService()->SetServingStatus(service, ready);
  }
  rpc::Reasons reasons;
  if (!not_writable_.ok()) {
    reasons.push_back(
        fmt::format("the store cannot be written, so that no node gets another address: {}",
                    base::MessageOf(not_writable_)));
  }
  if (!not_leading_.ok()) {
    reasons.push_back(
        fmt::format("it cannot renew its leadership at etcd, and has sent its agents to the next "
                    "server: {}",
                    base::MessageOf(not_leading_)));
  }
  health_.Say(std::move(reasons));
}

}  // namespace spoke::ipam
