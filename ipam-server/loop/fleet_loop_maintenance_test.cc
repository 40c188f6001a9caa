// The loop, where clouds announce maintenance of nodes.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/targets.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"

namespace spoke::ipam {
namespace {

using node_api::MaintenanceKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const node_api::MaintenanceEvent kReboot{.id = "r", .kind = MaintenanceKind::kReboot};
const node_api::MaintenanceEvent kPreempt{.id = "p", .kind = MaintenanceKind::kPreempt};

class MaintenanceTest : public FleetLoopTest {
 protected:
  void Say(std::vector<node_api::MaintenanceEvent> events, SessionId session = 1) {
    loop_->PostFromAgent(MaintenanceEvent{session, {std::move(events)}});
    Step();
  }
  std::optional<node_api::Maintenance> Known() {
    std::optional<node_api::Maintenance> known;
    loop_->PostQuery([&](const FleetView& view) {
      const auto session = view.sessions.find(kNode);
      if (session != view.sessions.end()) known = session->second.maintenance;
    });
    Step();
    return known;
  }
  uint64_t Target() {
    uint64_t target = 99;
    loop_->PostQuery([&](const FleetView& view) {
      target = TargetOf(view.fleet, *view.fleet.ledger.Find(kNode));
    });
    Step();
    return target;
  }
  absl::StatusOr<std::vector<std::string>> Start(std::vector<std::string> events) {
    absl::StatusOr<std::vector<std::string>> told = absl::UnknownError("not answered");
    loop_->PostStartMaintenance("node1", std::move(events),
                                [&](auto answer) { told = std::move(answer); });
    Step();
    return told;
  }
  // What the agent was asked to give back, and has not answered.
  std::vector<ip::Prefix> Asked() {
    const auto requests = SentTo<node_api::ReclaimRequest>(1);
    return requests.empty() ? std::vector<ip::Prefix>() : requests.back().ranges;
  }
};

TEST_F(MaintenanceTest, IsKnownAsLongAsTheSession) {
  JoinWithAPod();
  EXPECT_EQ(Known(), std::nullopt) << "it has not said";
  Say({});
  EXPECT_EQ(Known(), node_api::Maintenance());
  Say({kReboot});
  Say({kReboot});
  EXPECT_THAT(Known()->events, ElementsAre(kReboot));
  EXPECT_EQ(log_.Count("maintenance_announced"), 1) << "once";
  node_api::MaintenanceEvent started = kReboot;
  started.started = true;
  Say({started});
  EXPECT_EQ(log_.Count("maintenance_announced"), 2);
  Say({});
  EXPECT_EQ(log_.Count("maintenance_over"), 1);
  loop_->PostClosed(1);
  Step();
  EXPECT_EQ(Known(), std::nullopt);
}

TEST_F(MaintenanceTest, AMachineThatComesBackKeepsItsAddresses) {
  JoinWithAPod();
  const uint64_t before = Target();
  Say({kReboot});
  EXPECT_EQ(Target(), before);
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(MaintenanceTest, AMachineThatIsDeletedGivesBackWhatNoPodUses) {
  JoinWithAPod();
  const auto counts = CountAddresses(Stored());
  Say({kReboot, kPreempt});
  EXPECT_EQ(Target(), 0U);
  EXPECT_THAT(Asked(), SizeIs(counts.available)) << "and nothing that is in use";
  EXPECT_THAT(cloud_.waiting(), IsEmpty()) << "nothing more is put on its NIC";
  const auto requests = SentTo<node_api::ReclaimRequest>(1);
  loop_->PostFromAgent(
      ReclaimAnswerEvent{1, {.id = requests.back().id, .agreed = requests.back().ranges}});
  Step();
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).available, 0U);
  EXPECT_EQ(CountAddresses(Stored()).in_use, 1U);

  // Pods that wait there are told why, until it is called off.
  loop_->PostFromAgent(DemandEvent{1, {.waiting = {{"web", 3}}}});
  Step();
  EXPECT_THAT(SentTo<node_api::Forecast>(1).back().reason,
              HasSubstr("the cloud is about to delete the machine of node node1 (Preempt)"));
  EXPECT_THAT(cloud_.waiting(), IsEmpty());
  Say({kReboot});
  EXPECT_GT(Target(), 1U);
  EXPECT_THAT(cloud_.waiting(), SizeIs(1)) << "it gets addresses again";
  Say({kPreempt});
  EXPECT_GT(Target(), 1U) << "not so soon again";
}

TEST_F(MaintenanceTest, ManyThatSayTheyAreDeletedDoNotEmptyTheFleetWhileReleasesAreFrozen) {
  JoinWithAPod();
  loop_->PostChange(
      [](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
        EXPECT_FALSE(state.fleet.breaker.Judge(10'000, 9'000, absl::UnixEpoch()).allowed);
        return Effects();
      },
      [](const absl::Status&) {});
  Step();
  Say({kPreempt});
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(MaintenanceTest, StartsWhatWasAnnounced) {
  JoinWithAPod();
  EXPECT_TRUE(absl::IsFailedPrecondition(Start({}).status()));
  Say({kReboot, kPreempt});
  EXPECT_TRUE(absl::IsNotFound(Start({"r", "x"}).status()));
  EXPECT_THAT(SentTo<node_api::MaintenanceStart>(1), IsEmpty());
  EXPECT_THAT(*Start({"r"}), ElementsAre("r"));
  EXPECT_THAT(*Start({}), ElementsAre("r", "p"));
  const auto told = SentTo<node_api::MaintenanceStart>(1);
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_THAT(told[0].events, ElementsAre("r"));
  EXPECT_NE(told[0].id, told[1].id);
  loop_->PostClosed(1);
  Step();
  EXPECT_THAT(Start({}).status().message(), HasSubstr("is not connected"));
}

}  // namespace
}  // namespace spoke::ipam
