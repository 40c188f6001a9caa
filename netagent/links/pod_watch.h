// Hears from the kernel in which pods something has changed, so that nobody need look into all of
// them for it: one socket for the notifications of rtnetlink(7) from every network namespace that
// the node's has a number for (NETLINK_LISTEN_ALL_NSID, linux/netlink.h), as it has for every pod's
// with a link of ours.
#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/links.h"

namespace spoke::netagent {

// Not thread-safe. It keeps no pod's namespace alive.
class PodWatch {
 public:
  // Opens one for the calling thread's network namespace, and tries with a namespace of its own
  // whether the kernel tells it anything: otherwise a silent kernel would pass for quiet pods.
  // Takes some ms. Errors: kPermissionDenied (no CAP_NET_BROADCAST, or no CAP_SYS_ADMIN);
  // kUnavailable (the kernel told nothing); what socket(2), setsockopt(2) and bind(2) say.
  static absl::StatusOr<PodWatch> Open();

  // Takes what the kernel has told, at most kMaxTold of it, and returns it as
  // Links::TakePodChanges() does. What a pod does to be heard often costs no more than that.
  static constexpr int kMaxTold = 4096;
  PodChanges Take();

 private:
  explicit PodWatch(os::UniqueFd fd) : fd_(std::move(fd)) {}

  os::UniqueFd fd_;
};

}  // namespace spoke::netagent
