// Budgets end to end: agents over gRPC, the policy that an operator applies, and what is shown.
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/session/testing/services_for_test.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMbit = 1'000'000;
constexpr uint64_t kCapacity = 100 * kMbit;

constexpr const char* kPolicy = R"(apiVersion: spoke/v1
kind: Team
metadata: {name: vision}
spec: {namespaces: [vision]}
---
apiVersion: spoke/v1
kind: BandwidthBudget
metadata: {name: downloads}
spec:
  direction: Ingress
  capacity: 100Mbit
  teams: [{name: vision, weight: 2}]
)";

// What a node of the test uses.
struct NodeUse {
  uint64_t usage = 0;
  uint64_t demand = 0;
  uint64_t held = 0;
  uint64_t throttled = 0;
};

class BudgetsTest : public ServicesTest {
 protected:
  // An agent that has said hello.
  class Agent {
   public:
    Agent(BudgetsTest& test, const std::string& name) : stream_(test.Connect(context_)) {
      EXPECT_TRUE(stream_->Write(HelloMessage(name)));
      v1::ServerMessage message;
      while (stream_->Read(&message) && !message.has_welcome()) {
      }
    }
    ~Agent() { context_.TryCancel(); }

    void Report(const NodeUse& use) {
      v1::AgentMessage message;
      v1::BudgetReport& report = *message.mutable_budget_report();
      report.set_sequence(++sequence_);
      report.set_applied(applied_);
      v1::BudgetReport::Use& of = *report.add_uses();
      of.set_budget("downloads");
      of.set_team("vision");
      of.set_usage(use.usage);
      of.set_demand(use.demand);
      of.set_held(use.held);
      of.set_throttled(use.throttled);
      ASSERT_TRUE(stream_->Write(message));
    }
    // Reads until there are grants that answer the last report, and holds them from then on.
    uint64_t Granted() {
      v1::ServerMessage message;
      while (stream_->Read(&message)) {
        if (!message.has_budget_grants()) continue;
        const v1::BudgetGrants& grants = message.budget_grants();
        EXPECT_GT(grants.sequence(), applied_);
        applied_ = grants.sequence();
        if (grants.answers() < sequence_) continue;
        uint64_t rate = 0;
        for (const auto& grant : grants.grants()) {
          EXPECT_EQ(grant.budget(), "downloads");
          EXPECT_EQ(grant.team(), "vision");
          EXPECT_GT(grant.duration_ms(), 0U);
          rate += grant.rate();
        }
        return rate;
      }
      ADD_FAILURE() << "the stream ended";
      return 0;
    }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<Stream> stream_;
    uint64_t sequence_ = 0;
    uint64_t applied_ = 0;
  };

  BudgetsTest() {
    clock_.Advance(absl::Hours(24));  // Nothing is unknown any more.
    grpc::ClientContext context;
    v1::ApplyRequest request;
    request.add_files()->set_name("budget.yaml");
    request.mutable_files(0)->set_text(kPolicy);
    v1::ApplyResponse response;
    const grpc::Status status = admin_stub_->Apply(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  std::unique_ptr<Stream> Connect(grpc::ClientContext& context) {
    return node_stub_->Connect(&context);
  }

  grpc::Status GetBudgets(const std::string& name, const std::string& team,
                          v1::GetBudgetsResponse& response) {
    grpc::ClientContext context;
    v1::GetBudgetsRequest request;
    request.set_name(name);
    request.set_team(team);
    return admin_stub_->GetBudgets(&context, request, &response);
  }
};

TEST_F(BudgetsTest, TwoNodesShareWhatThereIsAndTheOperatorSeesIt) {
  Agent first(*this, "node1");
  first.Report({.usage = 30 * kMbit, .demand = 80 * kMbit, .throttled = 50 * kMbit});
  const uint64_t first_alone = first.Granted();
  EXPECT_GE(first_alone, 80 * kMbit);
  EXPECT_LE(first_alone, kCapacity);

  // The other gets what is free; then the first gives up a part and says so.
  Agent second(*this, "node2");
  second.Report({.usage = 5 * kMbit, .demand = 80 * kMbit, .throttled = 75 * kMbit});
  const uint64_t second_at_first = second.Granted();
  EXPECT_LE(first_alone + second_at_first, kCapacity);
  clock_.Advance(BudgetBook::kTick);  // A node hears once a tick, unless it reports.
  const uint64_t first_now = first.Granted();
  EXPECT_LT(first_now, first_alone);
  clock_.Advance(BudgetBook::kTick);
  first.Report({.usage = first_now, .demand = 80 * kMbit, .held = first_now, .throttled = kMbit});
  uint64_t second_now = second.Granted();
  while (second_now <= second_at_first) second_now = second.Granted();
  EXPECT_LE(first_now + second_now, kCapacity);

  v1::GetBudgetsResponse response;
  ASSERT_TRUE(GetBudgets("downloads", "vision", response).ok());
  ASSERT_EQ(response.budgets_size(), 1);
  const v1::BudgetInfo& budget = response.budgets(0);
  EXPECT_EQ(budget.capacity(), kCapacity);
  EXPECT_EQ(budget.unknown(), 0U);
  EXPECT_EQ(budget.learning_s(), 0U);
  EXPECT_LE(budget.granted() + budget.floors(), kCapacity);
  EXPECT_EQ(budget.usage(), first_now + 5 * kMbit);
  ASSERT_EQ(budget.teams_size(), 2) << "vision, and all others";
  EXPECT_EQ(budget.teams(1).name(), "vision");
  EXPECT_EQ(budget.teams(1).weight(), 2);
  EXPECT_EQ(budget.teams(1).nodes(), 2U);
  ASSERT_EQ(response.nodes_size(), 2);
  EXPECT_EQ(response.nodes(0).node(), "node1") << "it uses most";
  EXPECT_EQ(response.nodes(1).node(), "node2");
}

TEST_F(BudgetsTest, WhatANodeHeldWhenItsStreamBrokeIsStillItsOwn) {
  uint64_t held = 0;
  {
    Agent first(*this, "node1");
    first.Report({.usage = 30 * kMbit, .demand = 80 * kMbit, .throttled = 50 * kMbit});
    held = first.Granted();
  }
  Agent second(*this, "node2");
  second.Report({.usage = 5 * kMbit, .demand = 80 * kMbit, .throttled = 75 * kMbit});
  EXPECT_LE(held + second.Granted(), kCapacity) << "it may use it while nobody hears it";

  Agent back(*this, "node1");
  back.Report({.usage = held, .demand = 80 * kMbit, .held = held, .throttled = kMbit});
  const uint64_t now = back.Granted();
  EXPECT_GT(now, 0U);
  EXPECT_LE(now, held) << "there is another now";
  v1::GetBudgetsResponse response;
  ASSERT_TRUE(GetBudgets("downloads", "vision", response).ok());
  ASSERT_EQ(response.nodes_size(), 2);
  EXPECT_EQ(response.nodes(0).node(), "node1");
  EXPECT_GE(response.nodes(0).believed(), held) << "until it says that it applies less";
}

TEST_F(BudgetsTest, NonsenseInAReportHurtsNobody) {
  Agent agent(*this, "node1");
  agent.Report({.usage = UINT64_MAX, .demand = UINT64_MAX, .throttled = UINT64_MAX});
  EXPECT_LE(agent.Granted(), kCapacity);
  v1::GetBudgetsResponse response;
  ASSERT_TRUE(GetBudgets("downloads", "", response).ok());
  EXPECT_LE(response.budgets(0).granted(), kCapacity);
}

TEST_F(BudgetsTest, AskingForABudgetThatIsNotThereSaysWhichThereAre) {
  v1::GetBudgetsResponse response;
  const grpc::Status status = GetBudgets("uploads", "", response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("there are: downloads"));
  EXPECT_TRUE(GetBudgets("", "", response).ok());
  EXPECT_EQ(response.budgets_size(), 1);
}

}  // namespace
}  // namespace spoke::ipam
