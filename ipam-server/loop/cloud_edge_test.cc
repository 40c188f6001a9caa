#include "ipam-server/loop/cloud_edge.h"

#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/cloud/counted_transport.h"
#include "lib/telemetry/metrics.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

class CloudEdgeTest : public testing::Test {
 protected:
  CloudEdge::Edges edges() { return {clock_, log_, server_metrics_}; }

  os::RealClock clock_;
  testing_support::RecordingLog log_;
  telemetry::Metrics metrics_{ServerMetricSpecs()};
  ServerMetrics server_metrics_{metrics_, "test"};
};

TEST_F(CloudEdgeTest, TheStaticCloudAnswersAndIsCounted) {
  absl::Notification answered;
  auto edge =
      CloudEdge::Open({}, edges(), [&](const NodeKey&, absl::StatusOr<NicAddresses> result) {
        EXPECT_TRUE(result.ok());
        answered.Notify();
      });
  ASSERT_TRUE(edge.ok()) << edge.status();
  EXPECT_FALSE((*edge)->cloud().ChoosesAddresses());
  (*edge)->requests().Request({.node = {"node1", "vm-1"}});
  answered.WaitForNotification();
  EXPECT_TRUE((*edge)->cloud().List().ok());
  (*edge)->Stop();
  EXPECT_THAT(metrics_.Render(), HasSubstr("cloud_calls_total{call=\"apply\",result=\"ok\"} 1"));
}

// Nothing listens there, so no token comes: whoever waits is told when it stops.
TEST_F(CloudEdgeTest, AzureThatCannotBeReachedStopsAtOnce) {
  azure::Settings settings;
  settings.endpoints = {.resource_manager = "http://127.0.0.1:9",
                        .authority = "http://127.0.0.1:9",
                        .metadata = "http://127.0.0.1:9"};
  settings.identities.resize(1);
  settings.scale_sets = {
      "/subscriptions/s/resourcegroups/g/providers/microsoft.compute/virtualmachinescalesets/a"};
  auto edge = CloudEdge::Open({.azure = settings}, edges(),
                              [](const NodeKey&, absl::StatusOr<NicAddresses>) {});
  ASSERT_TRUE(edge.ok()) << edge.status();
  EXPECT_TRUE((*edge)->cloud().ChoosesAddresses());
  EXPECT_TRUE((*edge)->cloud().Covers(settings.scale_sets[0] + "/virtualmachines/7"));
  EXPECT_FALSE(
      (*edge)->cloud().Covers("/subscriptions/s/resourcegroups/g/providers/"
                              "microsoft.compute/virtualmachines/other"));
  absl::Status listed;
  std::thread lister([&] { listed = (*edge)->cloud().List().status(); });
  (*edge)->Stop();
  lister.join();
  EXPECT_EQ(listed.code(), absl::StatusCode::kUnavailable);
}

TEST(CountedTransport, TellsWhatAStatusMeans) {
  const auto code = [](int status) {
    return CountedTransport::ResultOf(http::Response{.status = status}).code();
  };
  EXPECT_EQ(code(202), absl::StatusCode::kOk);
  EXPECT_EQ(code(429), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(403), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(503), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(412), absl::StatusCode::kUnknown);
  EXPECT_EQ(CountedTransport::ResultOf(absl::DeadlineExceededError("lost")).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace spoke::ipam
