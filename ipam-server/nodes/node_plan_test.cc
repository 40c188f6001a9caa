#include "ipam-server/nodes/node_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using kubernetes::Condition;
using kubernetes::Node;
using kubernetes::Taint;
using testing::HasSubstr;

const FitnessFacts kFit{.connected = true, .told = true, .usable = 16};
const FitnessFacts kAway{.connected = false, .told = false, .usable = 16};
const FitnessFacts kFull{
    .connected = true, .told = true, .usable = 16, .exhausted = "pool a has no address left"};
constexpr size_t kRoom = 1'000'000;

// A cluster on which plans are carried out, and a fleet.
class NodePlanTest : public testing::Test {
 protected:
  void AddNodes(size_t count, const std::vector<Taint>& taints, const FitnessFacts& facts) {
    for (size_t i = 0; i < count; ++i) {
      const std::string name = "node-" + std::to_string(nodes_.size());
      nodes_[name] = {.name = name, .uid = name, .resource_version = "1", .taints = taints};
      facts_[name] = facts;
    }
  }
  void SetAll(const FitnessFacts& facts) {
    for (auto& [name, known] : facts_) known = facts;
  }

  NodePlan Turn(absl::Duration after, size_t room = kRoom) {
    now_ += after;
    NodePlan plan = planner_->Plan({nodes_, facts_, frozen_, room, remedies_}, now_);
    for (const NodeWrite& write : plan.writes) Apply(write);
    return plan;
  }
  // Turns every `step` seconds for so long, and returns the most requests in a turn.
  size_t Turns(int seconds, int step = 1) {
    size_t most = 0;
    for (int i = 0; i < seconds; i += step) {
      size_t requests = 0;
      for (const NodeWrite& write : Turn(absl::Seconds(step)).writes) requests += write.requests();
      most = std::max(most, requests);
    }
    return most;
  }
  void Apply(const NodeWrite& write) {
    Node& node = nodes_.at(write.node);
    std::erase_if(node.taints, [&](const Taint& taint) {
      return std::find(write.remove.begin(), write.remove.end(), taint.key) != write.remove.end();
    });
    for (const Taint& taint : write.add) node.taints.push_back(taint);
    for (const kubernetes::ConditionChange& change : write.conditions) {
      std::erase_if(node.conditions,
                    [&](const Condition& c) { return c.type == change.condition.type; });
      node.conditions.push_back(change.condition);
    }
    requests_[write.node] += write.requests();
    for (size_t i = 0; i < write.requests(); ++i) {
      planner_->OnWritten(write.node, absl::OkStatus(), false, now_);
    }
  }
  size_t Tainted(std::string_view key) const {
    return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
      return entry.second.FindTaint(key) != nullptr;
    }));
  }
  std::string ReasonOf(const std::string& name) const {
    const Condition* condition = nodes_.at(name).FindCondition(kReadyCondition);
    return condition == nullptr ? "" : condition->status + " " + condition->reason;
  }

  // The effect of the taint of a node that is unfit; empty: it has none.
  std::string EffectOf(const std::string& name) const {
    const Taint* taint = nodes_.at(name).FindTaint(kNotReadyTaint);
    return taint == nullptr ? "" : taint->effect;
  }

  // The condition and the taint of a node's maintenance.
  std::string MaintenanceOf(const std::string& name) const {
    const Condition* condition = nodes_.at(name).FindCondition(kMaintenanceCondition);
    const Taint* taint = nodes_.at(name).FindTaint(kMaintenanceTaint);
    return (condition == nullptr ? "" : condition->status + " " + condition->reason) + " " +
           (taint == nullptr ? "" : taint->effect);
  }

  const std::vector<Taint> joining_ = {{"other", "", "NoSchedule"},
                                       {std::string(kNotReadyTaint), "", "NoSchedule"}};
  const HoldTimes times_{};
  const WriteLimits limits_{};
  std::optional<NodePlanner> planner_{std::in_place, times_, limits_};
  std::map<std::string, Node> nodes_;
  std::map<std::string, FitnessFacts> facts_;
  std::string frozen_;
  NodeRemedies remedies_;
  std::map<std::string, size_t> requests_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(NodePlanTest, ANodeThatJoinsIsLiftedAtOnceWithTwoWritesInAll) {
  AddNodes(1, joining_, kAway);
  EXPECT_TRUE(Turn(absl::ZeroDuration()).writes.empty());
  facts_["node-0"] = kFit;
  const NodePlan plan = Turn(absl::Seconds(20));
  ASSERT_EQ(plan.writes.size(), 1U);
  EXPECT_EQ(plan.writes[0].remove, std::vector<std::string>{std::string(kNotReadyTaint)});
  Turns(600);
  EXPECT_EQ(requests_["node-0"], 2U);
  EXPECT_EQ(ReasonOf("node-0"), "True AgentReady");
  EXPECT_THAT(nodes_["node-0"].taints, testing::ElementsAre(joining_[0]));
}

TEST_F(NodePlanTest, SaysWhyANodeDoesNotJoin) {
  AddNodes(1, joining_, kAway);
  facts_.clear();
  Turn(absl::ZeroDuration());
  Turn(times_.joining);
  EXPECT_EQ(ReasonOf("node-0"), "False AgentNotSeen");
  EXPECT_EQ(Tainted(kNotReadyTaint), 1U);
  Turns(600);
  EXPECT_EQ(requests_["node-0"], 1U);
}

TEST_F(NodePlanTest, WhatChecksFindKeepsNoNodeOutAndIsATaintInTime) {
  FitnessFacts blocked = kFit;
  blocked.blocked = "forwarding: net.ipv4.ip_forward is 0";
  AddNodes(1, joining_, blocked);
  AddNodes(29, {}, kFit);
  Turn(absl::ZeroDuration());
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U) << "it joins";
  Turns(295);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U);
  Turns(10);
  EXPECT_EQ(Tainted(kNotReadyTaint), 1U);
  EXPECT_EQ(ReasonOf("node-0"), "False NodeCheckFailed");
  EXPECT_EQ(nodes_["node-0"].FindCondition(kReadyCondition)->message, blocked.blocked);
  facts_["node-0"] = kFit;
  Turns(40);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U);
  EXPECT_EQ(ReasonOf("node-0"), "True AgentReady");
}

TEST_F(NodePlanTest, AnAgentsCheckThatIsWrongEverywhereEmptiesNoCluster) {
  FitnessFacts blocked = kFit;
  blocked.blocked = "mtu: eth0 is 1400";
  AddNodes(100, joining_, blocked);
  Turns(10);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U) << "all join";
  Turns(1200);
  EXPECT_EQ(Tainted(kNotReadyTaint), 5U);
}

TEST_F(NodePlanTest, ANodeWithoutAnAgentIsNotOurs) {
  AddNodes(30, {}, kFit);
  facts_.clear();
  Turns(1000);
  EXPECT_TRUE(requests_.empty());
}

TEST_F(NodePlanTest, JoinsGoAtTheirOwnPaceAndTaintsBeforeConditions) {
  AddNodes(1500, joining_, kFit);
  Turn(absl::ZeroDuration());
  EXPECT_EQ(Turns(3), 300U);
  EXPECT_EQ(Tainted(kNotReadyTaint), 300U);
  EXPECT_EQ(ReasonOf("node-7"), "");
  Turns(1);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U);
  Turns(6);
  EXPECT_EQ(ReasonOf("node-7"), "True AgentReady");
}

TEST_F(NodePlanTest, WhatIsUnfitForLongIsTaintedAndTold) {
  AddNodes(30, {}, kFit);
  Turns(60);
  facts_["node-3"] = kAway;
  Turns(299);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U);
  requests_.clear();
  Turns(3);
  EXPECT_EQ(Tainted(kNotReadyTaint), 1U);
  EXPECT_EQ(ReasonOf("node-3"), "False AgentAway");
  EXPECT_EQ(requests_["node-3"], 2U) << "a write for each";
  facts_["node-3"] = kFit;
  Turns(40);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U);
  EXPECT_EQ(ReasonOf("node-3"), "True AgentReady");
  EXPECT_EQ(requests_["node-3"], 4U);
}

TEST_F(NodePlanTest, WhenAllAreUnfitAtOnceFewAreTainted) {
  AddNodes(1000, {}, kFit);
  Turns(60, 20);
  SetAll(kAway);
  Turns(320, 20);
  Turns(50);
  EXPECT_EQ(Tainted(kNotReadyTaint), 20U) << "in the first minute";
  Turns(60);
  EXPECT_EQ(Tainted(kNotReadyTaint), 40U);
  Turns(60);
  EXPECT_EQ(Tainted(kNotReadyTaint), 50U) << "5 % in all";
  const NodePlan plan = Turn(absl::Seconds(60));
  EXPECT_EQ(plan.held_back, 950U);
  EXPECT_EQ(plan.unfit, 1000U);
  EXPECT_THAT(plan.problem, HasSubstr("950 nodes are not fit for pods and get no taint"));
  SetAll(kFit);
  Turns(30, 30);
  Turns(60);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U);
  EXPECT_EQ(Turn(absl::Seconds(1)).problem, "");
}

TEST_F(NodePlanTest, ALargeClusterMayHaveAShareTaintedAMinute) {
  AddNodes(4000, {}, kFit);
  Turns(60, 60);
  SetAll(kAway);
  Turn(absl::Seconds(1));
  Turn(times_.unfit);
  Turns(5);
  EXPECT_EQ(Tainted(kNotReadyTaint), 40U);
}

TEST_F(NodePlanTest, ASmallClusterLosesOneNodeAtTheMost) {
  AddNodes(3, {}, kFit);
  Turns(60);
  SetAll(kAway);
  Turns(2000);
  EXPECT_EQ(Tainted(kNotReadyTaint), 1U);
}

FitnessFacts Announced(const MaintenanceFacts& maintenance) {
  FitnessFacts facts = kFit;
  facts.maintenance = maintenance;
  return facts;
}
const MaintenanceFacts kNoMaintenance;
const MaintenanceFacts kReboot{.reason = "Reboot", .message = "soon", .interrupts = true};
const MaintenanceFacts kFreeze{.reason = "Freeze", .message = "now"};

TEST_F(NodePlanTest, MaintenanceIsACompleteStoryOfFewWrites) {
  AddNodes(30, {}, Announced(kNoMaintenance));
  Turns(60);
  requests_.clear();
  facts_["node-3"] = Announced(kReboot);
  const NodePlan plan = Turn(absl::Seconds(1));
  ASSERT_EQ(plan.writes.size(), 1U);
  ASSERT_TRUE(plan.writes[0].event);
  EXPECT_EQ(plan.writes[0].event->reason, "Reboot");
  EXPECT_EQ(requests_["node-3"], 3U) << "a taint, a condition and an event";
  EXPECT_EQ(MaintenanceOf("node-3"), "True Reboot NoSchedule");
  Turns(600);
  EXPECT_EQ(requests_["node-3"], 3U);
  EXPECT_EQ(ReasonOf("node-3"), "True AgentReady") << "its network is as it was";

  // It goes, and comes back as the next session of its agent.
  facts_["node-3"] = kAway;
  Turns(100);
  EXPECT_EQ(MaintenanceOf("node-3"), "True Reboot NoSchedule") << "nobody knows better";
  facts_["node-3"] = Announced(kNoMaintenance);
  Turns(2);
  EXPECT_EQ(MaintenanceOf("node-3"), "False None ");
  EXPECT_EQ(Tainted(kMaintenanceTaint), 0U);
}

TEST_F(NodePlanTest, AMachineThatStandsStillKeepsItsPodsAndGetsNew) {
  AddNodes(30, {}, Announced(kFreeze));
  Turns(60);
  EXPECT_EQ(Tainted(kMaintenanceTaint), 0U);
  EXPECT_EQ(MaintenanceOf("node-29"), "True Freeze ");
}

TEST_F(NodePlanTest, ASourceThatFlapsIsWrittenAboutNowAndThen) {
  AddNodes(30, {}, Announced(kNoMaintenance));
  Turns(60);
  requests_.clear();
  for (int i = 0; i < 60; ++i) {
    facts_["node-3"] = Announced(i % 2 == 0 ? kReboot : kNoMaintenance);
    Turn(absl::Seconds(1));
  }
  EXPECT_LE(requests_["node-3"], 12U);
}

TEST_F(NodePlanTest, MaintenanceOfAllAtOnceEmptiesNoCluster) {
  AddNodes(100, {}, Announced(kReboot));
  Turns(600, 5);
  EXPECT_EQ(Tainted(kMaintenanceTaint), 5U);
  EXPECT_THAT(Turn(absl::Seconds(1)).problem, HasSubstr("95 nodes are not fit for pods"));
  EXPECT_EQ(MaintenanceOf("node-99"), "True Reboot ") << "all are told";
}

TEST_F(NodePlanTest, PodsHaveToGoWhenTheOperatorWantsIt) {
  remedies_.maintenance = {.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(2)};
  AddNodes(20, {}, Announced(kNoMaintenance));
  Turns(60);
  facts_["node-3"] = Announced(kReboot);
  facts_["node-4"] = Announced(kReboot);
  Turns(110);
  EXPECT_EQ(MaintenanceOf("node-3"), "True Reboot NoSchedule");
  EXPECT_EQ(MaintenanceOf("node-4"), "True Reboot ") << "one of twenty may be tainted";
  Turns(20);
  EXPECT_EQ(MaintenanceOf("node-3"), "True Reboot NoExecute") << "it has its place already";
  EXPECT_EQ(MaintenanceOf("node-4"), "True Reboot ");
}

// A server that becomes the leader while pods have to go lets none of them off.
TEST_F(NodePlanTest, PodsThatHaveToGoHaveToGoUnderTheNextLeader) {
  remedies_.maintenance = {.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(2)};
  AddNodes(20, {}, Announced(kNoMaintenance));
  Turns(60);
  facts_["node-3"] = Announced(kReboot);
  Turns(130);
  ASSERT_EQ(MaintenanceOf("node-3"), "True Reboot NoExecute");
  requests_.clear();
  planner_.emplace(times_, limits_);
  Turns(60);
  EXPECT_EQ(MaintenanceOf("node-3"), "True Reboot NoExecute");
  EXPECT_EQ(requests_["node-3"], 0U);
}

TEST_F(NodePlanTest, PodsLeaveANodeThatHurtsThemWhereTheOperatorWantsIt) {
  remedies_.unfit = {.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(10)};
  FitnessFacts loses = kFit;
  loses.loses = "18 of 90 were lost";
  AddNodes(60, {}, kFit);
  Turns(60);
  facts_["node-3"] = loses;
  facts_["node-4"] = kAway;
  Turns(310);
  EXPECT_EQ(EffectOf("node-3"), "NoSchedule");
  EXPECT_EQ(EffectOf("node-4"), "NoSchedule");
  Turns(580);
  EXPECT_EQ(EffectOf("node-3"), "NoSchedule");
  Turns(20);
  EXPECT_EQ(EffectOf("node-3"), "NoExecute");
  EXPECT_EQ(EffectOf("node-4"), "NoSchedule") << "pods' traffic does not pass an agent";
  EXPECT_EQ(ReasonOf("node-3"), "False PacketsLost");

  facts_["node-3"] = kAway;
  Turns(100);
  EXPECT_EQ(EffectOf("node-3"), "NoExecute") << "nobody says that it is well";
  facts_["node-3"] = kFit;
  Turns(40);
  EXPECT_EQ(EffectOf("node-3"), "");
}

TEST_F(NodePlanTest, AnOperatorCanHaveNodesBeToldOfAlone) {
  remedies_.unfit.effect = TaintEffect::kNone;
  remedies_.no_addresses.effect = TaintEffect::kNone;
  AddNodes(60, {}, kFit);
  Turns(60);
  facts_["node-3"] = kAway;
  facts_["node-4"] = kFull;
  Turns(400);
  EXPECT_EQ(Tainted(kNotReadyTaint) + Tainted(kNoAddressesTaint), 0U);
  EXPECT_EQ(ReasonOf("node-3"), "False AgentAway");
  EXPECT_EQ(ReasonOf("node-4"), "True AddressesExhausted");

  remedies_ = {};
  Turns(10);
  EXPECT_EQ(Tainted(kNotReadyTaint), 1U);
  remedies_.unfit.effect = TaintEffect::kNone;
  Turns(10);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U) << "the policy holds for taints that are there";
}

TEST_F(NodePlanTest, PodsOfFewNodesHaveToGoInAMinute) {
  remedies_.unfit = {.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(10)};
  planner_.emplace(times_, WriteLimits{.taints_floor = 2, .taints_share_a_minute = 0});
  FitnessFacts loses = kFit;
  loses.loses = "18 of 90 were lost";
  AddNodes(100, {}, kFit);
  Turns(60);
  for (const char* name : {"node-1", "node-2", "node-3", "node-4"}) facts_[name] = loses;
  Turns(310 + 595);
  const auto evicting = [&] {
    size_t count = 0;
    for (const auto& [name, node] : nodes_) count += EffectOf(name) == "NoExecute" ? 1U : 0U;
    return count;
  };
  EXPECT_EQ(evicting(), 2U);
  EXPECT_EQ(Tainted(kNotReadyTaint), 4U) << "a taint whose change has to wait stays";
  Turns(60);
  EXPECT_EQ(evicting(), 4U);
}

TEST_F(NodePlanTest, HalfOfAFaultDomainStaysWhatever) {
  AddNodes(400, {}, kFit);
  for (int i = 0; i < 6; ++i) facts_["node-" + std::to_string(i)].domain = "rack-1";
  for (int i = 6; i < 400; ++i) facts_["node-" + std::to_string(i)].domain = "rack-2";
  Turns(60);
  for (int i = 0; i < 7; ++i) facts_["node-" + std::to_string(i)].connected = false;
  Turns(400);
  EXPECT_EQ(Tainted(kNotReadyTaint), 4U) << "three of six, and the one of another rack";
  EXPECT_EQ(EffectOf("node-6"), "NoSchedule");
  EXPECT_THAT(Turn(absl::Seconds(1)).problem, HasSubstr("50 % of a fault domain"));
}

TEST_F(NodePlanTest, AWarningIsToldInOneWriteAndIsNoTaint) {
  FitnessFacts warned = kFit;
  warned.warned = "dns-node: 10.0.0.1 is silent";
  AddNodes(30, {}, kFit);
  Turns(400);
  requests_.clear();
  SetAll(warned);
  Turns(60);
  EXPECT_EQ(ReasonOf("node-3"), "True NodeCheckWarned");
  EXPECT_EQ(nodes_["node-3"].FindCondition(kReadyCondition)->message, warned.warned);
  Turns(600);
  EXPECT_EQ(requests_["node-3"], 1U);
  EXPECT_EQ(Tainted(kNotReadyTaint) + Tainted(kNoAddressesTaint), 0U);
}

TEST_F(NodePlanTest, AWarningThatComesAndGoesIsWrittenOncePerTimeThatANodeIsUnfit) {
  FitnessFacts warned = kFit;
  warned.warned = "nic-errors: eth0 loses packets";
  AddNodes(1, {}, kFit);
  Turns(400);
  requests_.clear();
  for (int minute = 0; minute < 60; ++minute) {
    facts_["node-0"] = minute % 2 == 0 ? warned : kFit;
    Turns(60);
  }
  EXPECT_LE(requests_["node-0"], static_cast<size_t>(absl::Hours(1) / times_.unfit) + 1);
}

TEST_F(NodePlanTest, AServerThatTakesOverLeavesWhatLosesPacketsAsItIs) {
  FitnessFacts loses = kFit;
  loses.loses = "18 of 90 probes were lost";
  AddNodes(30, {}, kFit);
  facts_["node-3"] = loses;
  Turns(400, 5);
  ASSERT_EQ(ReasonOf("node-3"), "False PacketsLost");
  ASSERT_EQ(Tainted(kNotReadyTaint), 1U);
  const std::string message = nodes_["node-3"].FindCondition(kReadyCondition)->message;

  // Another server begins: it has seen no probes.
  planner_.emplace(times_, limits_);
  FitnessFacts unknown = kFit;
  unknown.reach_unknown = true;
  SetAll(unknown);
  requests_.clear();
  Turns(600, 5);
  EXPECT_EQ(ReasonOf("node-3"), "False PacketsLost");
  EXPECT_EQ(nodes_["node-3"].FindCondition(kReadyCondition)->message, message);
  EXPECT_EQ(Tainted(kNotReadyTaint), 1U);
  EXPECT_EQ(requests_["node-3"], 0U);
  EXPECT_EQ(ReasonOf("node-4"), "True AgentReady") << "nobody else is accused";

  SetAll(kFit);
  Turns(60, 5);
  EXPECT_EQ(ReasonOf("node-3"), "True AgentReady");
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U);
}

TEST_F(NodePlanTest, NothingIsWrittenWhileReleasesAreFrozen) {
  AddNodes(10, joining_, kFit);
  frozen_ = "releases are frozen";
  const NodePlan plan = Turn(absl::ZeroDuration());
  EXPECT_TRUE(plan.writes.empty());
  EXPECT_THAT(plan.problem,
              HasSubstr("10 nodes keep their taints and conditions as they are: rel"));
  Turns(600);
  EXPECT_TRUE(requests_.empty());
  frozen_.clear();
  Turns(2);
  EXPECT_EQ(Tainted(kNotReadyTaint), 0U);
}

TEST_F(NodePlanTest, ANodeWithoutAddressesIsTaintedUntilThereIsRoom) {
  AddNodes(30, {}, kFit);
  Turns(60);
  facts_["node-3"] = kFull;
  Turns(59);
  EXPECT_EQ(Tainted(kNoAddressesTaint), 0U);
  Turns(3);
  EXPECT_EQ(Tainted(kNoAddressesTaint), 1U);
  EXPECT_EQ(ReasonOf("node-3"), "True AddressesExhausted");
  facts_["node-3"] = kFit;
  Turns(29);
  EXPECT_EQ(Tainted(kNoAddressesTaint), 1U);
  Turns(3);
  EXPECT_EQ(Tainted(kNoAddressesTaint), 0U);
  EXPECT_EQ(ReasonOf("node-3"), "True AgentReady");
}

TEST_F(NodePlanTest, ANodeThatFlapsIsWrittenAboutSeldom) {
  AddNodes(30, {}, kFit);
  Turns(60);
  requests_.clear();
  for (int i = 0; i < 360; ++i) {  // Three hours: ten seconds away, then twenty back.
    facts_["node-3"] = kAway;
    Turns(10);
    facts_["node-3"] = kFit;
    Turns(20);
  }
  EXPECT_EQ(requests_["node-3"], 0U);
}

TEST_F(NodePlanTest, ChangesOfManyNodesKeepToTheSteadyRate) {
  AddNodes(200, {}, kFit);
  Turns(60, 5);
  SetAll(kAway);
  Turns(320, 20);
  size_t requests = 0;
  for (int i = 0; i < 50; ++i) {  // Ten seconds.
    for (const NodeWrite& write : Turn(absl::Milliseconds(200)).writes) {
      requests += write.requests();
    }
  }
  EXPECT_GE(requests, 180U);
  EXPECT_LE(requests, 205U);
}

TEST_F(NodePlanTest, PlansNoMoreThanThereIsRoomFor) {
  AddNodes(100, joining_, kFit);
  const NodePlan plan = Turn(absl::Seconds(1), 7);
  EXPECT_EQ(plan.writes.size(), 7U);
  EXPECT_EQ(plan.waiting, 93U);
}

TEST_F(NodePlanTest, WhatFailsIsTriedAgainLaterAndWhatChangedAtOnce) {
  AddNodes(1, joining_, kFit);
  const auto plan = [&] { return planner_->Plan({nodes_, facts_, "", kRoom}, now_).writes.size(); };
  EXPECT_EQ(plan(), 1U);
  EXPECT_EQ(plan(), 0U) << "it is under way";
  planner_->OnWritten("node-0", absl::AbortedError("changed"), false, now_);
  EXPECT_EQ(plan(), 1U);
  planner_->OnWritten("node-0", absl::UnavailableError("away"), false, now_);
  EXPECT_EQ(plan(), 0U);
  now_ += absl::Seconds(1);
  EXPECT_EQ(plan(), 1U);
  planner_->OnWritten("node-0", absl::UnavailableError("away"), false, now_);
  now_ += absl::Seconds(1);
  EXPECT_EQ(plan(), 0U);
  now_ += absl::Seconds(1);
  EXPECT_EQ(plan(), 1U);
}

TEST_F(NodePlanTest, NoRoomAtTheServerSlowsWritesDown) {
  AddNodes(900, joining_, kFit);
  Turn(absl::ZeroDuration());
  planner_->OnWritten("node-0", absl::UnavailableError("429"), true, now_);
  EXPECT_LE(Turn(absl::Seconds(1)).writes.size(), 150U);
}

}  // namespace
}  // namespace spoke::ipam
