#include "netagent/node/node_watch.h"

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using node_checks::Finding;
using node_checks::Report;
using node_checks::Severity;
using testing::ElementsAre;
using testing::IsEmpty;

Finding Of(Severity severity, const std::string& object) {
  return {.id = "nic", .severity = severity, .object = object, .what = "is down", .remedy = "up"};
}

class NodeWatchTest : public testing::Test {
 protected:
  Report report_;
  testing_support::RecordingLog log_;
};

TEST_F(NodeWatchTest, AChangeOfWhatIsNotCheckedIsSaidOnce) {
  NodeWatch watch([&] { return report_; }, log_);
  report_.not_made = {{"metadata", "no cloud"}, {"dns-cluster", "none"}};
  watch.Look();
  watch.Look();
  EXPECT_EQ(log_.Count("node_check_not_made"), 2);
  EXPECT_THAT(log_.lines(), testing::Contains(testing::AllOf(testing::HasSubstr("dns-cluster"),
                                                             testing::HasSubstr("none"))));
  report_.not_made = {{"metadata", "another reason"}};
  watch.Look();
  EXPECT_EQ(log_.Count("node_check_not_made"), 3);
}

TEST_F(NodeWatchTest, FindingsAreLoggedWhenTheyComeAndWhenTheyGo) {
  NodeWatch watch([&] { return report_; }, log_);
  report_.findings = {Of(Severity::kBlocking, "eth0"), Of(Severity::kWarning, "eth1")};
  watch.Look();
  report_.findings[0].what = "is still down";  // It is the same finding.
  watch.Look();
  EXPECT_EQ(log_.Count("node_check_blocking"), 1);
  EXPECT_EQ(log_.Count("node_check_warning"), 1);
  EXPECT_EQ(log_.Count("node_check_over"), 0);
  report_.findings.erase(report_.findings.begin());
  watch.Look();
  EXPECT_EQ(log_.Count("node_check_over"), 1);
  report_.findings.clear();
  watch.Look();
  EXPECT_EQ(log_.Count("node_check_over"), 2);
  report_.findings = {Of(Severity::kBlocking, "eth0")};
  watch.Look();
  EXPECT_EQ(log_.Count("node_check_blocking"), 2);
}

TEST_F(NodeWatchTest, OnlyBlockingOnesAreReasons) {
  NodeWatch watch([&] { return report_; }, log_);
  EXPECT_THAT(watch.Reasons(), IsEmpty());
  report_.findings = {Of(Severity::kWarning, "eth1"), Of(Severity::kBlocking, "eth0")};
  watch.Look();
  EXPECT_THAT(watch.Reasons(), ElementsAre("nic: eth0 is down; remedy: up"));
  EXPECT_EQ(watch.counts().blocking, 1U);
  EXPECT_EQ(watch.counts().warnings, 1U);
  report_.findings.clear();
  watch.Look();
  EXPECT_THAT(watch.Reasons(), IsEmpty());
}

TEST_F(NodeWatchTest, ItLooksOnAThreadOfItsOwnAndEndsAtOnce) {
  absl::Notification looked;
  {
    NodeWatch watch(
        [&] {
          if (!looked.HasBeenNotified()) looked.Notify();
          return report_;
        },
        log_);
    watch.Start();
    EXPECT_TRUE(looked.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }  // It does not wait for a minute.
}

}  // namespace
}  // namespace spoke::netagent
