// Any cloud, with its calls counted and timed.
#pragma once

#include "absl/time/time.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/os/clock.h"

namespace spoke::ipam {

// Thread-safe. Borrows all.
class CountedCloud final : public Cloud {
 public:
  CountedCloud(Cloud& cloud, ServerMetrics& metrics, const os::Clock& clock)
      : cloud_(cloud), metrics_(metrics), clock_(clock) {}

  absl::StatusOr<NicAddresses> Apply(const NicRequest& desired) override {
    const absl::Time begin = clock_.Now();
    absl::StatusOr<NicAddresses> result = cloud_.Apply(desired);
    metrics_.CountCloudCall(CloudCall::kApply, result.status(), clock_.Now() - begin);
    return result;
  }
  absl::StatusOr<std::vector<NicAddresses>> List() override {
    const absl::Time begin = clock_.Now();
    absl::StatusOr<std::vector<NicAddresses>> result = cloud_.List();
    metrics_.CountCloudCall(CloudCall::kList, result.status(), clock_.Now() - begin);
    return result;
  }
  bool Covers(const std::string& instance) const override { return cloud_.Covers(instance); }
  bool ChoosesAddresses() const override { return cloud_.ChoosesAddresses(); }
  std::string Describe() const override { return cloud_.Describe(); }

 private:
  Cloud& cloud_;
  ServerMetrics& metrics_;
  const os::Clock& clock_;
};

}  // namespace spoke::ipam
