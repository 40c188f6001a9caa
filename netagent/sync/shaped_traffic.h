// A pod's traffic is counted and let out, and then shaped: both owners behind the one interface
// that attachments know.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "lib/base/status.h"
#include "netagent/core/traffic_pod.h"
#include "netagent/sync/pod_traffic.h"
#include "netagent/sync/shaping.h"

namespace spoke::netagent {

// Not thread-safe.
class ShapedTraffic final : public PodTraffic {
 public:
  // Borrows both. `shaping` may be null: nothing is shaped.
  ShapedTraffic(PodTraffic& traffic, Shaping* shaping) : traffic_(traffic), shaping_(shaping) {}

  absl::Status Attach(const TrafficPod& pod) override {
    RETURN_IF_ERROR(traffic_.Attach(pod));
    if (shaping_ != nullptr) shaping_->Attach(pod);
    return absl::OkStatus();
  }

  absl::Status Detach(const std::string& host_link) override {
    if (shaping_ != nullptr) shaping_->Detach(host_link);
    return traffic_.Detach(host_link);
  }

 private:
  PodTraffic& traffic_;
  Shaping* shaping_;
};

}  // namespace spoke::netagent
