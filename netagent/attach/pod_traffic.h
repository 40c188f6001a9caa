// The steps that a pod's traffic needs around ADD and DEL. Implemented by Shaping and Traffic.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "netagent/classes/traffic_pod.h"

namespace spoke::netagent {

// Not thread-safe.
class PodTraffic {
 public:
  virtual ~PodTraffic() = default;

  // Whether pods can be attached. Errors: kResourceExhausted (it is not known yet by which policy;
  // the message says what is waited for).
  virtual absl::Status Ready() const = 0;

  // Counts the pod's traffic and puts its policy in force before this returns; what it sent before
  // was dropped. Or shapes it: what the pod asks for itself before this returns, what only policy
  // limits a moment later. A pod with the same host link is replaced; one that has gone and
  // whose address this is has its counts settled first. Errors: kUnavailable (try again),
  // kResourceExhausted, kInternal; nothing has changed then.
  virtual absl::Status Attach(const TrafficPod& pod) = 0;

  // Drops what would still come from the pod, and keeps its counts. Its link is down already. OK
  // when there is none. Errors: the same as Attach()'s; its address must not be assigned to another
  // pod then.
  virtual absl::Status Detach(const std::string& host_link) = 0;
};

}  // namespace spoke::netagent
