// What a server that stands by answers to operators: every call is told who leads.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace spoke::ipam {

// Thread-safe. Ends each call, of whatever service, with UNAVAILABLE and what was said last.
class StandbyService final : public grpc::CallbackGenericService {
 public:
  void Say(std::string why) {
    absl::MutexLock lock(&mutex_);
    why_ = std::move(why);
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  absl::Mutex mutex_;
  std::string why_ ABSL_GUARDED_BY(mutex_) = "this server is starting";
};

}  // namespace spoke::ipam
