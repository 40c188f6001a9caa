// Finds attachments whose DEL never comes: the runtime was killed and has forgotten the pod. Each
// leaves an assignment without a pod. Pure: no I/O, no clock.
//
// One is taken for lost when both its link and its pod's network namespace have been gone for a
// while. The namespace has to be proved gone, since a link alone may have been deleted by anybody,
// the pod included, and the pod is still there, in Kubernetes too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {

// Whether the namespace that had `before` when its pod was attached is gone, with what is at its
// path `now`: a trace whose inode is 0 where nothing is there. It is gone if the directory that had
// it is there, and has nothing of that name any more or another namespace. It is there if the path
// still leads to it, or if that cannot be told apart.
// Errors: kFailedPrecondition (nothing is known of it, or its path does not lead into the same
// directory: from here it may be invisible); that of `now`.
absl::StatusOr<bool> IsNetnsGone(const netns::Trace& before,
                                 const absl::StatusOr<netns::Trace>& now);

// Not thread-safe.
class LostDels {
 public:
  // An attachment whose link is gone.
  struct Candidate {
    AttachmentKey key;
    uint64_t generation = 0;
    absl::StatusOr<bool> netns_gone;  // What IsNetnsGone() returned.
  };
  struct Verdict {
    std::vector<AttachmentKey> lost;      // The lost ones, in every look until released.
    std::vector<AttachmentKey> unproved;  // Those that lack only the proof, each once.
  };

  // How long link and namespace have to be gone, in every look meanwhile; positive.
  explicit LostDels(absl::Duration after) : after_(after) {}

  // Looks once at all candidates. One that is missing begins anew when it comes back.
  Verdict Look(const std::vector<Candidate>& candidates, absl::Time now);

 private:
  struct Entry {
    uint64_t generation = 0;
    bool proved = false;
    absl::Time since;
    bool told = false;
  };

  absl::Duration after_;
  std::map<AttachmentKey, Entry> entries_;
};

}  // namespace spoke::netagent
