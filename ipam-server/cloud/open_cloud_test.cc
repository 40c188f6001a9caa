#include "ipam-server/cloud/open_cloud.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "ipam-server/cloud/counted_transport.h"
#include "lib/telemetry/metrics.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {
namespace {

class OpenCloudTest : public testing::Test {
 protected:
  std::unique_ptr<Cloud> Open(CloudOptions options, CloudAnswer answer) {
    auto cloud =
        OpenCloud(std::move(options), {.clock = clock_, .log = log_, .metrics = server_metrics_},
                  std::move(answer));
    EXPECT_TRUE(cloud.ok()) << cloud.status();
    return *std::move(cloud);
  }

  os::RealClock clock_;
  testing_support::RecordingLog log_;
  telemetry::Metrics metrics_{ServerMetricSpecs()};
  ServerMetrics server_metrics_{metrics_, "test"};
};

TEST_F(OpenCloudTest, WithoutAzureItIsTheStaticCloud) {
  absl::Notification answered;
  const auto cloud = Open({}, [&](const NodeKey&, const absl::StatusOr<NicAddresses>& result) {
    EXPECT_TRUE(result.ok());
    answered.Notify();
  });
  EXPECT_FALSE(cloud->ChoosesAddresses());
  cloud->Request({.node = {"node1", "vm-1"}});
  answered.WaitForNotification();
}

// Nothing listens there, so no token comes: whoever waits is told when it stops.
TEST_F(OpenCloudTest, AzureThatCannotBeReachedStopsAtOnce) {
  azure::Settings settings;
  settings.endpoints = {.resource_manager = "http://127.0.0.1:9",
                        .authority = "http://127.0.0.1:9",
                        .metadata = "http://127.0.0.1:9"};
  settings.identities.resize(1);
  settings.scale_sets = {
      "/subscriptions/s/resourcegroups/g/providers/microsoft.compute/virtualmachinescalesets/a"};
  settings.listing = absl::Minutes(7);
  const auto cloud = Open({.azure = settings, .attachments_file = ""},
                          [](const NodeKey&, const absl::StatusOr<NicAddresses>&) {});
  EXPECT_TRUE(cloud->ChoosesAddresses());
  EXPECT_EQ(cloud->listing_period(), absl::Minutes(7));
  EXPECT_TRUE(cloud->Covers(settings.scale_sets[0] + "/virtualmachines/7"));
  EXPECT_FALSE(
      cloud->Covers("/subscriptions/s/resourcegroups/g/providers/"
                    "microsoft.compute/virtualmachines/other"));
  absl::Status listed;
  cloud->List([&](const CloudListing& listing) { listed = listing.status(); });
  cloud->Stop();
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
