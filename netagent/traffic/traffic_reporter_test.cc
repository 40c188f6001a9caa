#include "netagent/traffic/traffic_reporter.h"

#include <optional>
#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/session/testing/fake_server_link.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class TrafficReporterTest : public testing::Test {
 protected:
  os::SimClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  testing_support::RecordingLog log_;
  FakeServerLink server_;
  absl::StatusOr<TrafficTotals> totals_ = TrafficTotals{.epoch = absl::FromUnixSeconds(5)};
  std::optional<uint64_t> counted_;
  TrafficReporter reporter_{{.read = [this] { return totals_; },
                             .say_counted = [this](uint64_t packets) { counted_ = packets; },
                             .server = server_,
                             .clock = clock_,
                             .log = log_}};
};

TEST_F(TrafficReporterTest, ReportsAtOnceAndThenEveryTenSeconds) {
  totals_->namespaces["a"]["internet"] = {.sent = 1, .received = 2};
  reporter_.Tick();
  ASSERT_THAT(server_.traffic_reports, SizeIs(1));
  EXPECT_EQ(server_.traffic_reports[0].epoch, absl::FromUnixSeconds(5));
  EXPECT_EQ(server_.traffic_reports[0].namespaces.at("a").at("internet"), (node_api::Volume{1, 2}));
  clock_.Advance(absl::Seconds(9));
  reporter_.Tick();
  EXPECT_THAT(server_.traffic_reports, SizeIs(1));
  EXPECT_EQ(reporter_.NextWake(), clock_.Now() + absl::Seconds(1));
  clock_.Advance(absl::Seconds(1));
  reporter_.Tick();
  EXPECT_THAT(server_.traffic_reports, SizeIs(2));
}

TEST_F(TrafficReporterTest, SaysHowManyPacketsWereCountedOrDropped) {
  totals_->namespaces["a"]["internet"] = {.sent = 900, .sent_packets = 3, .received_packets = 5};
  totals_->namespaces["b"]["cluster"] = {.received_packets = 7};
  // The same packets once more, by pod and by hook.
  totals_->pods.push_back(
      {.pod_namespace = "b", .pod_name = "p", .volumes = {{"cluster", {.received_packets = 7}}}});
  totals_->node["forward"]["cluster"] = {.received_packets = 7};
  totals_->drops["unknown-source"] = {.packets = 11, .bytes = 1};
  // These have no class: they are what is to be noticed.
  totals_->uncounted = {.packets = 1000};
  reporter_.Tick();
  EXPECT_EQ(counted_, 26U);
}

TEST_F(TrafficReporterTest, WhatCannotBeReadIsNotSaidToBeCounted) {
  totals_ = absl::UnavailableError("no nf_tables");
  reporter_.Tick();
  EXPECT_EQ(counted_, std::nullopt);
}

TEST_F(TrafficReporterTest, AClockThatIsPutBackDoesNotSilenceIt) {
  reporter_.Tick();
  clock_.Advance(absl::Hours(-1));
  reporter_.Tick();
  EXPECT_THAT(server_.traffic_reports, SizeIs(2));
}

TEST_F(TrafficReporterTest, NamesThePodsWithMostTrafficOutsideTheCluster) {
  for (uint64_t i = 0; i < 30; ++i) {
    totals_->pods.push_back(
        {.pod_namespace = "a",
         .pod_name = fmt::format("p{}", i),
         .volumes = {{"internet", {.sent = i}}, {"cluster", {.sent = 1000 - i}}}});
  }
  reporter_.Tick();
  const auto& pods = server_.traffic_reports.at(0).pods;
  ASSERT_THAT(pods, SizeIs(TrafficReporter::kMaxPods));
  EXPECT_EQ(pods.front().pod_name, "p29");
  EXPECT_EQ(pods.back().pod_name, "p10");
}

TEST_F(TrafficReporterTest, TellsTheRestOfVeryManyNamespacesAsOneAndForGood) {
  for (size_t i = 0; i < TrafficReporter::kMaxNamespaces; ++i) {
    totals_->namespaces[fmt::format("n{}", i)]["internet"] = {.sent = 1};
  }
  reporter_.Tick();
  EXPECT_FALSE(server_.traffic_reports[0].namespaces.contains("_other"));
  // It comes first by name, and is still told with the rest.
  totals_->namespaces["a"]["internet"] = {.sent = 5};
  totals_->namespaces["b"]["internet"] = {.sent = 6};
  clock_.Advance(TrafficReporter::kPeriod);
  reporter_.Tick();
  const auto& namespaces = server_.traffic_reports.at(1).namespaces;
  EXPECT_THAT(namespaces, SizeIs(TrafficReporter::kMaxNamespaces + 1));
  EXPECT_EQ(namespaces.at("_other").at("internet").sent, 11U);
  EXPECT_TRUE(namespaces.contains("n999"));
}

TEST_F(TrafficReporterTest, ComplainsOnceWhenTotalsCannotBeRead) {
  totals_ = absl::UnavailableError("the kernel is busy");
  reporter_.Tick();
  clock_.Advance(TrafficReporter::kPeriod);
  reporter_.Tick();
  EXPECT_THAT(server_.traffic_reports, SizeIs(0));
  EXPECT_EQ(log_.Count("traffic_unreadable"), 1);
}

}  // namespace
}  // namespace spoke::netagent
