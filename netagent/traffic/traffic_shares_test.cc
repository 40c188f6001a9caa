// Tests what Traffic does about pods' shares of the node's connections.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/traffic/share_rules.h"
#include "netagent/traffic/traffic_fixture.h"

namespace spoke::netagent {
namespace {

using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr ConnectionShares kShares = {.connections = 100, .ports = 40};

class TrafficSharesTest : public TrafficTest {
 protected:
  std::vector<nft::Rule> Rules() { return tables_.Rules(kSpokeTable, kShareChain); }
  size_t Over() { return tables_.ReadSet(kSpokeTable, "pod_shares_over").value().size(); }
  void Look() {
    clock_.Advance(Traffic::kLook);
    traffic_->Tick();
  }
};

TEST_F(TrafficSharesTest, WhereNothingIsTrackedNoRuleAsks) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  Look();
  EXPECT_THAT(Rules(), IsEmpty());
  EXPECT_EQ(tables_.FindChain(kSpokeTable, kShareChain), std::nullopt);
}

TEST_F(TrafficSharesTest, RulesComeOnceTheKernelTracksAndStay) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  shares_ = kShares;
  Look();
  EXPECT_THAT(Rules(), Not(IsEmpty()));
  shares_.reset();
  Look();
  EXPECT_THAT(Rules(), Not(IsEmpty()));
  const auto before = Rules();
  shares_ = ConnectionShares{.connections = 200, .ports = 80};
  Look();
  EXPECT_NE(Rules(), before);
  EXPECT_EQ(Read().drift_repaired, 0U);
}

TEST_F(TrafficSharesTest, WhoIsOverIsInTheRulesAlsoAfterAFlush) {
  shares_ = kShares;
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  traffic_->OnOverShare({.links = {7, 9}, .with_target = {{8, A("192.0.2.1"), 6}}});
  EXPECT_EQ(Over(), 2U);
  EXPECT_THAT(tables_.ReadSet(kSpokeTable, "pod_shares_targets4").value(), SizeIs(1));
  tables_.Wipe();
  Look();
  EXPECT_EQ(Over(), 2U);
  traffic_->OnOverShare({});
  EXPECT_EQ(Over(), 0U);
}

TEST_F(TrafficSharesTest, OneThatIsToldWhileTheTableIsGoneIsThereAfterTheNextLook) {
  shares_ = kShares;
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  tables_.Wipe();
  traffic_->OnOverShare({.links = {7}});
  traffic_->Tick();
  EXPECT_EQ(Over(), 1U);
}

TEST_F(TrafficSharesTest, AnAgentThatBoundsNothingTakesTheRulesAway) {
  shares_ = kShares;
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  shares_.reset();
  Begin();
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  EXPECT_EQ(tables_.FindChain(kSpokeTable, kShareChain), std::nullopt);
}

}  // namespace
}  // namespace spoke::netagent
