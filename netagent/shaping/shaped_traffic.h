// Has a pod's traffic shaped, and then counted and let out: both owners behind the one interface
// that attachments know.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "netagent/attach/pod_traffic.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/shaping/shaping.h"

namespace spoke::netagent {

// The object is not thread-safe.
class ShapedTraffic final : public PodTraffic {
 public:
  // Borrows both. Either may be null: then nothing is counted, or nothing is shaped.
  ShapedTraffic(PodTraffic* traffic, Shaping* shaping) : traffic_(traffic), shaping_(shaping) {}

  absl::Status Ready() const override {
    return traffic_ == nullptr ? absl::OkStatus() : traffic_->Ready();
  }

  absl::Status Attach(const TrafficPod& pod) override {
    absl::Status status;
    if (shaping_ != nullptr) status = shaping_->Attach(pod);
    if (status.ok() && traffic_ != nullptr) status = traffic_->Attach(pod);
    if (!status.ok() && shaping_ != nullptr) shaping_->Detach(pod.host_link);
    return status;
  }

  absl::Status Detach(const std::string& host_link) override {
    if (shaping_ != nullptr) shaping_->Detach(host_link);
    return traffic_ == nullptr ? absl::OkStatus() : traffic_->Detach(host_link);
  }

 private:
  PodTraffic* traffic_;
  Shaping* shaping_;
};

}  // namespace spoke::netagent
