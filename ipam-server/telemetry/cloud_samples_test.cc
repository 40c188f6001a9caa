#include "ipam-server/telemetry/cloud_samples.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Render(const CloudLoad& load) {
  telemetry::Metrics metrics(CloudLoadMetricSpecs());
  metrics.AddSource([&load] { return CloudLoadSamples(load); });
  return metrics.Render();
}

TEST(CloudLoadSamples, SayEachLimitAndEachLane) {
  const std::string text = Render(
      {.limits_left = {{"GetVMScaleSetVMs", 1}, {"network reads", 0.25}}, .waiting = {3, 0, 2}});
  EXPECT_THAT(text, HasSubstr("spoke_ipam_cloud_limit_left_ratio{limit=\"GetVMScaleSetVMs\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("spoke_ipam_cloud_limit_left_ratio{limit=\"network reads\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("spoke_ipam_cloud_waiting_nodes{lane=\"blocking\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("spoke_ipam_cloud_waiting_nodes{lane=\"warm-up\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("spoke_ipam_cloud_waiting_nodes{lane=\"release\"} 2\n"));
}

TEST(CloudLoadSamples, ACloudWithoutLimitsHasNone) {
  const std::string text = Render({});
  EXPECT_THAT(text, Not(HasSubstr("limit=")));
  EXPECT_THAT(text, HasSubstr("spoke_ipam_cloud_waiting_nodes{lane=\"blocking\"} 0\n"));
}

}  // namespace
}  // namespace spoke::ipam
