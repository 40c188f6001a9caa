#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MaintenanceTest : public CommandTest {
 protected:
  MaintenanceTest() {
    Change(FillCluster);
    Change([](FakeState& state) {
      v1::MaintenanceEvent& event = *state.nodes.at("node1").add_maintenance();
      event.set_id("C7061BAC");
      event.set_kind("Redeploy");
      event.set_duration_ms(9000);
      event.set_origin("Platform");
      event.set_description("Host is failing.");
      event.set_other_machines(2);
      event.add_others("pool_3");
    });
  }
};

TEST_F(MaintenanceTest, ListsWhatIsAnnounced) {
  const Outcome outcome = Run("maintenance list");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("node1"), HasSubstr("Redeploy"), HasSubstr("any time"),
                                 HasSubstr("9s"), HasSubstr("2 (pool_3, ...)")));
  EXPECT_THAT(Run("maintenance list -o json").out,
              AllOf(HasSubstr("\"kind\": \"Redeploy\""), HasSubstr("\"started\": false")));
  EXPECT_THAT(Run("node list").out, HasSubstr("Redeploy"));
  EXPECT_THAT(Run("node show node1").out, HasSubstr("Host is failing."));
}

TEST_F(MaintenanceTest, OtherMachinesMayHaveNoNames) {
  Change([](FakeState& state) { state.nodes.at("node1").mutable_maintenance(0)->clear_others(); });
  const Outcome outcome = Run("maintenance list");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Redeploy"), HasSubstr(" 2 ")));
}

TEST_F(MaintenanceTest, NothingIsAnnounced) {
  Change([](FakeState& state) { state.nodes.at("node1").clear_maintenance(); });
  const Outcome outcome = Run("maintenance list");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("no nodes with maintenance"));
}

TEST_F(MaintenanceTest, StartsWhatIsAnnouncedAndSaysWhat) {
  const Outcome outcome = Run("maintenance start node1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "node node1: maintenance C7061BAC may begin now\n");
  EXPECT_THAT(Run("maintenance list").out, HasSubstr("has begun"));
  const Outcome unknown = Run("maintenance start nobody");
  EXPECT_EQ(unknown.code, 4);
  EXPECT_THAT(unknown.err, HasSubstr("there is no node nobody"));
}

}  // namespace
}  // namespace spoke::ctl
