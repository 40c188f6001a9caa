#include "netagent/shaping/shaped_traffic.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

// Counting that waits for a policy.
class WaitingTraffic : public PodTraffic {
 public:
  absl::Status Ready() const override { return ready; }
  absl::Status Attach(const TrafficPod& /*pod*/) override { return absl::OkStatus(); }
  absl::Status Detach(const std::string& /*host_link*/) override { return absl::OkStatus(); }

  absl::Status ready = absl::ResourceExhaustedError("waits for the policy");
};

TEST(ShapedTraffic, IsReadyWhenCountingIs) {
  WaitingTraffic traffic;
  const ShapedTraffic both(&traffic, /*shaping=*/nullptr);
  EXPECT_EQ(both.Ready(), traffic.ready);
  traffic.ready = absl::OkStatus();
  EXPECT_TRUE(both.Ready().ok());
  EXPECT_TRUE(ShapedTraffic(/*traffic=*/nullptr, /*shaping=*/nullptr).Ready().ok());
}

}  // namespace
}  // namespace spoke::netagent
