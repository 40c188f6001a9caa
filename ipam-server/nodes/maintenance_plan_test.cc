#include "ipam-server/nodes/maintenance_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using kubernetes::Node;
using node_api::Maintenance;
using node_api::MaintenanceKind;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

TEST(MaintenanceFacts, TheWorstIsTold) {
  EXPECT_EQ(FactsOf(Maintenance()), MaintenanceFacts());
  const MaintenanceFacts facts =
      FactsOf({{{.id = "1", .kind = MaintenanceKind::kFreeze, .started = true},
                {.id = "2",
                 .kind = MaintenanceKind::kReboot,
                 .not_before = kNow,
                 .description = "Host is being updated.",
                 .origin = "Platform"}}});
  EXPECT_EQ(facts.reason, "Reboot");
  EXPECT_EQ(facts.message,
            "Reboot of this node's machine begins not before 2023-11-14T22:13:20Z, announced by "
            "Platform: Host is being updated.");
  EXPECT_TRUE(facts.interrupts);
}

TEST(MaintenanceFacts, AMachineThatStandsStillKeepsItsPods) {
  const MaintenanceFacts facts =
      FactsOf({{{.id = "1", .kind = MaintenanceKind::kFreeze, .started = true}}});
  EXPECT_EQ(facts.message, "Freeze of this node's machine has begun.");
  EXPECT_FALSE(facts.interrupts);
  EXPECT_EQ(FactsOf({{{.id = "1", .kind = MaintenanceKind::kTerminate}}}).message,
            "Terminate of this node's machine may begin at any time.");
}

const MaintenanceFacts kReboot{.reason = "Reboot", .message = "m", .interrupts = true};

TEST(DesiredMaintenance, NobodyKnows) {
  EXPECT_TRUE(DesiredOf(std::nullopt, Node(), {}, absl::ZeroDuration()).unknown);
}

TEST(DesiredMaintenance, ANodeThatNeverHadAnyNeedsNoCondition) {
  EXPECT_EQ(DesiredOf(MaintenanceFacts(), Node(), {}, absl::ZeroDuration()), DesiredMaintenance());
}

TEST(DesiredMaintenance, WhatWasAnnouncedIsTakenBack) {
  Node node{.conditions = {{.type = std::string(kMaintenanceCondition), .status = "True"}}};
  const DesiredMaintenance desired = DesiredOf(MaintenanceFacts(), node, {}, absl::ZeroDuration());
  ASSERT_TRUE(desired.condition);
  EXPECT_EQ(desired.condition->status, "False");
  EXPECT_EQ(desired.taint, std::nullopt);
  node.conditions = {*desired.condition};
  EXPECT_EQ(DesiredOf(MaintenanceFacts(), node, {}, absl::ZeroDuration()).condition, std::nullopt)
      << "once is enough";
}

TEST(DesiredMaintenance, TheEffectIsTheOperators) {
  const auto effect = [](const MaintenanceFacts& facts, const Remedy& remedy,
                         absl::Duration after) {
    const auto taint = DesiredOf(facts, Node(), remedy, after).taint;
    return taint ? taint->value + ":" + taint->effect : "";
  };
  EXPECT_EQ(effect(kReboot, {}, absl::Hours(1)), "Reboot:NoSchedule");
  EXPECT_EQ(effect(kReboot, {.effect = TaintEffect::kNone}, absl::Hours(1)), "");
  const Remedy evicts{.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(5)};
  EXPECT_EQ(effect(kReboot, evicts, absl::Seconds(299)), "Reboot:NoSchedule");
  EXPECT_EQ(effect(kReboot, evicts, absl::Seconds(300)), "Reboot:NoExecute");
  EXPECT_EQ(effect({.reason = "Freeze", .message = "m"}, evicts, absl::Hours(1)), "");
}

}  // namespace
}  // namespace spoke::ipam
