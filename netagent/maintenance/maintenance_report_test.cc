#include "netagent/maintenance/maintenance_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const node_api::Maintenance kNone;
const node_api::Maintenance kReboot{{{.id = "1", .kind = node_api::MaintenanceKind::kReboot}}};

class MaintenanceReportTest : public testing::Test {
 protected:
  void Look() {
    clock_.Advance(MaintenanceReport::kLook);
    report_.Tick();
  }

  os::SimClock clock_;
  std::optional<node_api::Maintenance> known_;
  std::vector<node_api::Maintenance> told_;
  MaintenanceReport report_{{.clock = clock_,
                             .read = [this] { return known_; },
                             .tell = [this](const auto& said) { told_.push_back(said); }}};
};

TEST_F(MaintenanceReportTest, IsSaidOnceInEachSessionAndWhenItChanges) {
  known_ = kNone;
  Look();
  EXPECT_THAT(told_, IsEmpty()) << "nobody listens yet";
  report_.OnSession();
  Look();
  Look();
  EXPECT_THAT(told_, ElementsAre(kNone));
  known_ = kReboot;
  Look();
  Look();
  EXPECT_THAT(told_, ElementsAre(kNone, kReboot));
  report_.OnSession();
  Look();
  EXPECT_THAT(told_, ElementsAre(kNone, kReboot, kReboot));
  known_ = kNone;
  Look();
  EXPECT_THAT(told_, ElementsAre(kNone, kReboot, kReboot, kNone));
}

TEST_F(MaintenanceReportTest, WhatIsNotKnownIsNotSaid) {
  report_.OnSession();
  Look();
  EXPECT_THAT(told_, IsEmpty());
  known_ = kReboot;
  Look();
  EXPECT_THAT(told_, ElementsAre(kReboot));
}

TEST_F(MaintenanceReportTest, WhereNobodyAnnouncesThatIsSaidAndNothingIsLookedForAnyMore) {
  MaintenanceReport report({.clock = clock_, .read = nullptr, .tell = [this](const auto& said) {
                              told_.push_back(said);
                            }});
  EXPECT_EQ(report.NextWake(), absl::InfiniteFuture());
  report.OnSession();
  report.Tick();
  EXPECT_THAT(told_, ElementsAre(kNone));
  EXPECT_EQ(report.NextWake(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace spoke::netagent
