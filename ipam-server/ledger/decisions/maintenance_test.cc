#include "ipam-server/ledger/decisions/maintenance.h"

#include <string>

#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"
#include "ipam-server/ledger/targets.h"

namespace spoke::ipam {
namespace {

using node_api::Maintenance;
using node_api::MaintenanceKind;

const Maintenance kNone;
const Maintenance kPreempt{{{.id = "p", .kind = MaintenanceKind::kPreempt}}};
const Maintenance kReboot{{{.id = "r", .kind = MaintenanceKind::kReboot}}};

class MaintenanceDecisionTest : public testing::Test {
 protected:
  // Others hold addresses too: never do all there are go at once.
  MaintenanceDecisionTest() {
    for (int i = 0; i < 10; ++i) {
      const NodeKey other{"other" + std::to_string(i), "vm"};
      OnHello(fleet_, HelloOf(other), kNow);
      Attach(fleet_, other);
    }
  }
  bool Ending() const { return IsLeaving(fleet_, *fleet_.ledger.Find(kNode1)); }
  Effects Say(const Maintenance& maintenance) {
    return OnMaintenance(fleet_, kNode1, maintenance, now_);
  }
  Effects Wait(absl::Duration time) {
    now_ += time;
    Effects effects;
    ExpireMaintenance(fleet_, effects, now_);
    return effects;
  }

  absl::Time now_ = kNow;
  Fleet fleet_ = WithAttachedNode({Pool("default", "10.1.0.0/24")});
};

TEST_F(MaintenanceDecisionTest, WhatIsDeletedGivesBackAndWhatIsNotStays) {
  EXPECT_FALSE(Say(kReboot).Stores());
  EXPECT_FALSE(Ending());
  EXPECT_FALSE(Say(kPreempt).reclaim.empty());
  EXPECT_TRUE(Ending());
  EXPECT_TRUE(Say(kPreempt).reclaim.empty()) << "that is no news";
  Say(kReboot);
  EXPECT_FALSE(Ending()) << "it was called off";
}

TEST_F(MaintenanceDecisionTest, WhoSaysBothByTurnsIsBelievedOnce) {
  int asked = 0;
  for (int i = 0; i < 100; ++i) {
    asked += Say(kPreempt).reclaim.empty() ? 0 : 1;
    Wait(absl::Seconds(1));
    Say(kNone);
    Wait(absl::Seconds(1));
  }
  EXPECT_EQ(asked, 1);
  // What is said and stays is believed in time.
  Say(kPreempt);
  EXPECT_FALSE(Ending());
  Wait(kNotBelieved - absl::Seconds(2));
  EXPECT_FALSE(Ending());
  EXPECT_FALSE(Wait(absl::Seconds(2)).reclaim.empty());
  EXPECT_TRUE(Ending());
  Say(kNone);
  Wait(kNotBelieved);
  EXPECT_TRUE(fleet_.ending.empty()) << "nothing is kept of it";
}

TEST_F(MaintenanceDecisionTest, ANewSessionGoesOnWithItUntilItsAgentSaysNothingForLong) {
  Say(kPreempt);
  OnHello(fleet_, HelloOf(kNode1), now_);
  EXPECT_TRUE(Ending()) << "nothing is put on the NIC of a machine that goes";
  Say(kPreempt);
  Wait(2 * kUnsaidFor);
  EXPECT_TRUE(Ending());
  OnHello(fleet_, HelloOf(kNode1), now_);
  Wait(kUnsaidFor - absl::Seconds(1));
  EXPECT_TRUE(Ending());
  Wait(absl::Seconds(1));
  EXPECT_FALSE(Ending()) << "an older agent knows of no maintenance";
}

TEST_F(MaintenanceDecisionTest, AMachineThatHasBootedIsAnother) {
  Say(kPreempt);
  node_api::Hello hello = HelloOf(kNode1);
  hello.node.boot_id = "another boot";
  OnHello(fleet_, hello, now_);
  EXPECT_TRUE(Ending()) << "its agent says before long whether it still goes";
  Say(kNone);
  EXPECT_FALSE(Ending());
}

}  // namespace
}  // namespace spoke::ipam
