#include "ipam-server/loop/loop_call.h"

#include <map>
#include <thread>

#include "fmt/core.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"

namespace spoke::ipam {
namespace {

constexpr int kNodes = 1500;

class VisitNodesTest : public FleetLoopTest {
 protected:
  VisitNodesTest() {
    settings_.pools = {{.name = "default", .cidr = ip::Prefix::Parse("10.0.0.0/16").value()}};
    settings_.fleet.target = {.min = 8, .batch = 8, .spare = 0.5, .max = 64};
    loop_ = NewLoop();
    for (int node = 0; node < kNodes; ++node) Post(node);
    while (loop_->mailbox().waiting_hellos() > 0) Step();
    thread_ = std::thread([this] { loop_->Run(); });
  }
  ~VisitNodesTest() override {
    loop_->Stop();
    thread_.join();
  }
  static NodeKey KeyOf(int node) { return {fmt::format("node{:04}", node), "vm"}; }
  void Post(int node) {
    loop_->PostHello(static_cast<SessionId>(node) + 1, {.node = IdentityOf(KeyOf(node))});
  }

  std::thread thread_;
};

// Nodes come and change between the queries, before and behind the place where the visit is.
TEST_F(VisitNodesTest, EveryNodeThatIsThereAllTheTimeIsVisitedOnceInQueriesOfBoundedWork) {
  std::map<NodeKey, int> visits;
  size_t in_query = 0;
  size_t most = 0;
  int queries = 0;
  const absl::Status status = VisitNodes(
      *loop_, absl::Seconds(30),
      [&](const FleetView&, const NodeRecord& record) {
        ++visits[record.key];
        in_query += record.configurations.size();
      },
      [&](uint64_t, uint64_t) {
        most = std::max(most, std::exchange(in_query, 0));
        Post(10'000 + queries);  // Sorts before node1000, behind node0999: wherever the visit is.
        Post(++queries);         // Says hello again.
        EXPECT_TRUE(ChangeInLoop(*loop_, absl::Seconds(30), [&](ServerState& state, RawRecords&) {
                      return SetMode(state.fleet, KeyOf(kNodes - queries).name, NodeMode::kFrozen,
                                     clock_.Now());
                    }).ok());
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(queries, 5);
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, 1100U);
  for (int node = 0; node < kNodes; ++node) EXPECT_EQ(visits[KeyOf(node)], 1) << node;
}

}  // namespace
}  // namespace spoke::ipam
