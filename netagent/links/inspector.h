// Looks at built attachments as the node's kernel holds them, and puts back what is missing.
// Implemented by NetlinkInspector and, in tests, FakeInspector; inspector_contract.h holds the
// promises below as tests for both.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/links/attach_plan.h"
#include "netagent/links/attachment_state.h"

namespace spoke::netagent {

// Not thread-safe.
class Inspector {
 public:
  virtual ~Inspector() = default;

  // The node's side of every host link of ours that is not detached, by name. Takes the same number
  // of questions to the kernel however many there are.
  // Errors: kUnavailable (links kept changing meanwhile: look again later); kInternal.
  virtual absl::StatusOr<std::map<std::string, HostSide>> ReadHostSides() = 0;

  // The pod's side of `spec`, in the namespace of `pod_netns` (borrowed for the call).
  //
  // The path of a namespace may come to mean another one (/proc/PID is used again), so this makes
  // sure that the host link's peer is in it.
  // Errors: kNotFound (the host link is gone); kFailedPrecondition (its peer is not in there, or it
  // is no network namespace); kUnavailable (as above); kResourceExhausted; kInternal.
  virtual absl::StatusOr<PodSide> ReadPodSide(const AttachSpec& spec, int pod_netns) = 0;

  // Puts right what `differences` name, and changes nothing else: what somebody else has put in
  // the place of ours stays, and is an error. Idempotent. One that fails does not keep the others
  // from being mended; the first error is returned. The MAC that neighbour entries on the node get
  // and the MTU of the host link are those of the pod's end where there is a `pod_netns`, else as
  // in `spec`.
  // Errors: kInvalidArgument (one that cannot be mended, or is in the pod and there is no
  // `pod_netns`); kNotFound and kFailedPrecondition as for ReadPodSide(): nothing has been changed;
  // kAlreadyExists (something of somebody else's is in the way); kUnavailable; kInternal.
  virtual absl::Status Mend(const AttachSpec& spec, const std::vector<Difference>& differences,
                            std::optional<int> pod_netns) = 0;
};

}  // namespace spoke::netagent
