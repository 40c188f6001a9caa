// Unregisters detached links behind everybody's back: the part of a DEL that takes the kernel 20 ms
// and that nobody need wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/netlink/socket.h"
#include "lib/telemetry/log.h"
#include "netagent/links/deletion_plan.h"
#include "netagent/links/fault_points.h"

namespace spoke::netagent {

// Thread-safe. Has a thread and a socket of its own, in the namespace it was made in. The class of
// links/deletion_plan.h says which links go together and when.
//
// Only what has a name of ours is ever removed: a link of somebody else's in one of our groups
// (claims.h) is left alone, and ours are then removed one by one.
class DeferredDeletion {
 public:
  struct Settings {
    telemetry::Log* log = nullptr;  // Borrowed; may be null.
    FaultPoint fault_point = {};
  };
  // The longest wait of a caller: the kernel has then been stuck for many times what it takes.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // Makes one for the calling thread's network namespace. Unregisters what a dead agent has left in
  // our groups before it returns. Errors: kUnavailable (the list of links kept changing);
  // kPermissionDenied; what errno says.
  static absl::StatusOr<std::unique_ptr<DeferredDeletion>> Create(Settings settings);

  // Leaves what is still deferred for the next agent to find.
  ~DeferredDeletion();
  DeferredDeletion(const DeferredDeletion&) = delete;
  DeferredDeletion& operator=(const DeferredDeletion&) = delete;

  // Calls `retire` with the group that the link is to be put into, and takes it over from there if
  // that was done. A link that is deferred already is not retired again. Waits while too many are
  // deferred. Errors: what `retire` returns; kUnavailable (too many still, after kPatience: this
  // one is deferred all the same).
  absl::Status DeleteLater(DeferredLink link,
                           absl::FunctionRef<absl::Status(uint32_t group)> retire);

  // Waits until nothing of the spec's name or addresses is deferred. Errors: kUnavailable (the
  // kernel refuses, or takes longer than kPatience).
  absl::Status FinishWhatClashes(const AttachSpec& spec);

  // Waits until nothing is deferred. Errors: those of FinishWhatClashes().
  absl::Status FinishAll();

  // Whether nothing is deferred.
  bool empty() const;

 private:
  DeferredDeletion(Settings settings, netlink::Socket socket);

  void Work();
  // Waits until `done` or a batch is refused, and hurries meanwhile.
  absl::Status Await(absl::FunctionRef<bool()> done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Unregister(uint32_t group);
  // The name of a device in the group that has no name of ours; empty: there is none.
  absl::StatusOr<std::string> FindOther(uint32_t group);
  absl::Status UnregisterEach(uint32_t group);
  absl::Status Sweep();

  const Settings settings_;
  netlink::Socket socket_;         // Used by the thread alone, once that runs.
  bool warned_of_others_ = false;  // Used by the thread alone, once that runs.

  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  DeletionPlan plan_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status last_refusal_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spoke::netagent
