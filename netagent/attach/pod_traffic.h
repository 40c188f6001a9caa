// What has to happen to a pod's traffic around ADD and DEL. Implemented by Traffic.
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
  virtual absl::Status Ready() const { return absl::OkStatus(); }

  // The pod's traffic is counted, and its policy in force, when this returns. What it sent before
  // was dropped. A pod with the same host link is replaced; one that has gone and whose address
  // this is has its counts settled first. Errors: kUnavailable (try again), kResourceExhausted,
  // kInternal; nothing has changed then.
  virtual absl::Status Attach(const TrafficPod& pod) = 0;

  // What would still come from the pod is dropped, and its counts are kept. Its link is down
  // already. OK when there is none. Errors: as Attach(); its address must not be assigned to
  // another then.
  virtual absl::Status Detach(const std::string& host_link) = 0;
};

}  // namespace spoke::netagent
