#include "ipam-server/nodes/node_sync.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/http/testing/fake_transport.h"
#include "lib/kubernetes/testing/fake_cluster.h"
#include "lib/os/file.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using kubernetes::FakeCluster;
using testing::HasSubstr;

const FitnessFacts kFit{.connected = true, .told = true, .usable = 16};

// The whole of it, with an API server in memory, on a clock that a test moves.
class NodeSyncTest : public testing::Test {
 protected:
  NodeSyncTest() {
    EXPECT_TRUE(
        os::WriteFileAtomic(dir_.File("token"), FakeCluster::kToken, os::Durability::kVisible)
            .ok());
  }

  void AddJoining(const std::string& name) {
    cluster_.AddNode(name, {{{"key", std::string(kNotReadyTaint)}, {"effect", "NoSchedule"}}});
  }
  void Run(int seconds) {
    for (int i = 0; i < seconds * 2; ++i) {
      sync_.RunOnce(absl::ZeroDuration());
      clock_.Advance(absl::Milliseconds(500));
    }
  }
  bool IsTainted(const std::string& name) const {
    return cluster_.HasTaint(name, std::string(kNotReadyTaint));
  }
  std::string ConditionOf(const std::string& name) const {
    const auto condition = cluster_.ConditionOf(name, std::string(kReadyCondition));
    return condition.is_null() ? "" : condition["status"].get<std::string>();
  }

  const testing_support::TempDir dir_;
  FakeCluster cluster_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  http::FakeTransport transport_{
      [this](const http::Request& request) { return cluster_.Answer(request); }};
  kubernetes::NodeClient client_{
      {.access = {.url = "http://cluster", .token_file = dir_.File("token")}}, transport_, clock_};
  absl::StatusOr<FleetFacts> facts_ = FleetFacts();
  std::vector<std::string> problems_;
  StandingBoard board_;
  NodeSync sync_{{},
                 {.client = client_,
                  .read_facts = [this] { return facts_; },
                  .clock = clock_,
                  .log = log_,
                  .board = board_,
                  .tell = [this](const std::string& problem) { problems_.push_back(problem); }}};
};

TEST_F(NodeSyncTest, LiftsTheTaintOfANodeThatIsFitWithTwoWrites) {
  AddJoining("a");
  AddJoining("b");
  facts_->nodes["a"] = kFit;
  Run(30);
  EXPECT_FALSE(IsTainted("a"));
  EXPECT_TRUE(IsTainted("b")) << "nobody has spoken for it";
  EXPECT_EQ(ConditionOf("a"), "True");
  EXPECT_EQ(cluster_.writes(), 2U);
  EXPECT_TRUE(problems_.empty());
  const NodesStanding standing = board_.Get();
  EXPECT_TRUE(standing.usable);
  EXPECT_EQ(standing.nodes, 2U);
  EXPECT_EQ(standing.joining, 1U);
  EXPECT_EQ(standing.writes[0], 2U);
  Run(600);
  EXPECT_EQ(cluster_.writes(), 3U) << "why b does not join";
  EXPECT_EQ(ConditionOf("b"), "False");
}

TEST_F(NodeSyncTest, MaintenanceIsATaintAConditionAndAnEvent) {
  cluster_.AddNode("a");
  facts_->nodes["a"] = kFit;
  facts_->nodes["a"].maintenance = MaintenanceFacts();
  Run(40);
  const uint64_t before = cluster_.writes();
  facts_->nodes["a"].maintenance = MaintenanceFacts{
      .reason = "Redeploy", .message = "Redeploy is announced.", .interrupts = true};
  Run(20);
  EXPECT_TRUE(cluster_.HasTaint("a", std::string(kMaintenanceTaint)));
  const auto condition = cluster_.ConditionOf("a", std::string(kMaintenanceCondition));
  EXPECT_EQ(condition["status"], "True");
  EXPECT_EQ(condition["reason"], "Redeploy");
  EXPECT_EQ(ConditionOf("a"), "True") << "its own condition is beside it";
  ASSERT_EQ(cluster_.events_created().size(), 1U);
  EXPECT_EQ(cluster_.events_created()[0]["reason"], "SpokeMaintenanceRedeploy");
  EXPECT_EQ(cluster_.events_created()[0]["involvedObject"]["name"], "a");
  facts_->nodes["a"].maintenance = MaintenanceFacts();
  Run(60);
  EXPECT_FALSE(cluster_.HasTaint("a", std::string(kMaintenanceTaint)));
  EXPECT_EQ(cluster_.ConditionOf("a", std::string(kMaintenanceCondition))["status"], "False");
  EXPECT_LE(cluster_.writes() - before, 5U);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(NodeSyncTest, NodesThatAreTheSameCostNoWrites) {
  for (int i = 0; i < 50; ++i) {
    const std::string name = "node-" + std::to_string(i);
    AddJoining(name);
    facts_->nodes[name] = kFit;
  }
  Run(60);
  EXPECT_EQ(cluster_.writes(), 100U);
  for (int i = 0; i < 50; ++i) {  // What kubelets do.
    cluster_.Change("node-" + std::to_string(i), [](auto& node) { node["status"]["beat"] = 1; });
  }
  Run(600);
  EXPECT_EQ(cluster_.writes(), 100U);
}

TEST_F(NodeSyncTest, AnApiServerThatIsAwayIsToldAndGoneOnFromLater) {
  AddJoining("a");
  Run(5);
  cluster_.FailWith(503);
  facts_->nodes["a"] = kFit;
  Run(60);
  ASSERT_FALSE(problems_.empty());
  EXPECT_THAT(problems_.front(), HasSubstr("the Kubernetes API tells nothing of nodes"));
  EXPECT_THAT(problems_.front(), HasSubstr("503"));
  EXPECT_FALSE(board_.Get().usable);
  EXPECT_TRUE(IsTainted("a"));
  cluster_.FailWith(0);
  cluster_.Forget();
  Run(90);
  EXPECT_FALSE(IsTainted("a"));
  EXPECT_EQ(problems_.back(), "");
  EXPECT_TRUE(board_.Get().usable);
}

TEST_F(NodeSyncTest, AnApiServerThatForbidsIsTold) {
  AddJoining("a");
  facts_->nodes["a"] = kFit;
  cluster_.FailNext(403, 1000, "PATCH");
  Run(60);
  ASSERT_FALSE(problems_.empty());
  EXPECT_THAT(problems_.back(), HasSubstr("cannot be written"));
  EXPECT_THAT(problems_.back(), HasSubstr("403"));
  EXPECT_LE(board_.Get().writes[static_cast<size_t>(WriteResult::kDenied)], 10U)
      << "it is not tried all the time";
  cluster_.FailNext(0, 0);
  Run(120);
  EXPECT_FALSE(IsTainted("a"));
  EXPECT_EQ(problems_.back(), "");
}

TEST_F(NodeSyncTest, ASlowFleetStopsWritesAndIsTold) {
  AddJoining("a");
  facts_ = absl::DeadlineExceededError("busy");
  Run(60);
  EXPECT_EQ(cluster_.writes(), 0U);
  ASSERT_FALSE(problems_.empty());
  EXPECT_THAT(problems_.back(), HasSubstr("busy"));
}

TEST_F(NodeSyncTest, NothingIsWrittenWhileReleasesAreFrozen) {
  AddJoining("a");
  facts_->nodes["a"] = kFit;
  facts_->frozen = "releases are frozen";
  Run(60);
  EXPECT_EQ(cluster_.writes(), 0U);
  ASSERT_FALSE(problems_.empty());
  EXPECT_THAT(problems_.back(), HasSubstr("releases are frozen"));
  facts_->frozen.clear();
  Run(30);
  EXPECT_FALSE(IsTainted("a"));
  EXPECT_EQ(problems_.back(), "");
}

TEST_F(NodeSyncTest, OthersThatWriteToTheNodeMeanwhileLoseNothing) {
  AddJoining("a");
  Run(5);
  // The mirror has not seen it yet when the patch is made.
  cluster_.FailNext(503, 1, "GET");
  cluster_.Change("a", [](auto& node) {
    const FakeCluster::json theirs = {{"key", "theirs"}, {"effect", "NoExecute"}};
    node["spec"]["taints"].insert(node["spec"]["taints"].begin(), theirs);
  });
  facts_->nodes["a"] = kFit;
  Run(90);
  EXPECT_FALSE(IsTainted("a"));
  EXPECT_TRUE(cluster_.HasTaint("a", "theirs"));
}

}  // namespace
}  // namespace spoke::ipam
