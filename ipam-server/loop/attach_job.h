// Carries attach requests to the cloud on a thread of its own, since a cloud may take seconds.
#pragma once

#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/loop/fleet_loop.h"

namespace spoke::ipam {

// Thread-safe. At most one request a node waits: a newer one replaces it.
class AttachJob final : public CloudRequests {
 public:
  using Answer = std::function<void(const NodeKey&, absl::StatusOr<NicAddresses>)>;

  // Borrows `cloud`. `answer` is called on the job's thread.
  AttachJob(Cloud& cloud, Answer answer);
  AttachJob(const AttachJob&) = delete;
  AttachJob& operator=(const AttachJob&) = delete;
  // Finishes the call under way and drops what waits: it is in the store and asked for again.
  ~AttachJob() override;

  void Request(NicRequest desired) override;

 private:
  void Run();

  Cloud& cloud_;
  const Answer answer_;
  absl::Mutex mutex_;
  std::map<NodeKey, NicRequest> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // It stands last, since it uses all of the above.
};

}  // namespace spoke::ipam
