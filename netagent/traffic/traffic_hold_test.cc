// Rules fail closed: what is in force stays until its successor is, also where nobody knows any
// more what it says.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/traffic/traffic_fixture.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

class TrafficHoldTest : public TrafficTest {
 protected:
  // Returns the chain and the comment of each rule that is in force.
  std::vector<std::string> Rules() {
    std::vector<std::string> texts;
    const auto rules = tables_.ReadRules(kSpokeTable).value();
    for (const nft::RuleReading& rule : rules) texts.push_back(rule.chain + " " + rule.comment);
    return texts;
  }
  static Policy WithEgress() {
    Policy policy = Example();
    policy.entries["EgressPolicy/all"] = {
        .key = "EgressPolicy/all",
        .bytes = {},
        .value = policy::EgressPolicy{.destination_cidrs = policy::Blocks({"0.0.0.0/0"}),
                                      .mode = policy::EgressMode::kDrop}};
    return policy;
  }
};

TEST_F(TrafficHoldTest, RulesStayWhereThePolicyCannotBeReadOrIsGoneOrRefused) {
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  const auto before = Rules();
  ASSERT_FALSE(before.empty());
  const Policy refused = WithNetwork(
      {.cluster = policy::Blocks({"10.0.0.0/16"}), .peer_spoke = policy::Blocks({"10.5.0.0/16"})},
      2);
  for (const auto& kept :
       {std::optional<Policy>(), std::optional(Policy{}), std::optional(refused)}) {
    SCOPED_TRACE(kept ? kept->version : -1);
    Begin();
    ASSERT_TRUE(traffic_->Start(kept, {Pod("a", 7, "10.0.1.7")}).ok());
    EXPECT_TRUE(traffic_->holds_unknown_rules());
    EXPECT_EQ(Rules(), before);
    // Time, gateways and files change nothing either.
    clock_.Advance(Traffic::kLook);
    traffic_->Tick();
    EXPECT_TRUE(traffic_->OnGateways({A("10.1.0.1")}).ok());
    EXPECT_EQ(Rules(), before);
    // Pods still come and go by the rules that are in force.
    EXPECT_TRUE(traffic_->Ready().ok());
    EXPECT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
    EXPECT_TRUE(traffic_->Detach("spkb").ok());
    EXPECT_THAT(Read().fast_path_state, HasSubstr("not known"));
  }
  EXPECT_EQ(log_.Count("traffic_rules_held"), 3);
  // A policy that is refused changes nothing either.
  EXPECT_FALSE(traffic_->OnPolicy(refused).ok());
  EXPECT_EQ(Rules(), before);
  ASSERT_TRUE(traffic_->OnPolicy(WithEgress()).ok());
  EXPECT_FALSE(traffic_->holds_unknown_rules());
  EXPECT_NE(Rules(), before);
  clock_.Advance(Traffic::kLook);
  traffic_->Tick();
  EXPECT_EQ(Read().drift_repaired, 0U);
}

// Somebody has taken the pod's element away: what nobody knows must not be put anew.
TEST_F(TrafficHoldTest, APodThatGoesLeavesTheRulesWhateverItMissesOfItsOwn) {
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  const auto before = Rules();
  Begin();
  ASSERT_TRUE(traffic_->Start(std::nullopt, {Pod("a", 7, "10.0.1.7")}).ok());
  nft::Transaction harm;
  harm.Add(kSpokeTable, nft::FlushSet{"pods4"});
  ASSERT_TRUE(tables_.Apply(harm).ok());
  EXPECT_TRUE(traffic_->Detach("spka").ok());
  EXPECT_EQ(Rules(), before);
}

TEST_F(TrafficHoldTest, CountsGoOnAcrossIt) {
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  Count("cluster_sent4", ByLink(7, "10.0.1.7"), 40);
  const absl::Time epoch = Read().epoch;
  clock_.Advance(absl::Minutes(1));
  Begin();
  ASSERT_TRUE(traffic_->Start(std::nullopt, {Pod("a", 7, "10.0.1.7")}).ok());
  EXPECT_EQ(Read().namespaces.at("web").at("cluster").sent, 40U);
  ASSERT_TRUE(traffic_->OnPolicy(Example()).ok());
  EXPECT_EQ(Read().namespaces.at("web").at("cluster").sent, 40U);
  EXPECT_EQ(Read().epoch, epoch);
}

TEST_F(TrafficHoldTest, NoPodIsAttachedUnderAnEgressPolicyThatIsNotKnown) {
  ASSERT_TRUE(traffic_->Start(WithEgress(), {}).ok());
  Begin();
  ASSERT_TRUE(traffic_->Start(std::nullopt, {}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(traffic_->Ready()));
  EXPECT_TRUE(absl::IsResourceExhausted(traffic_->Attach(Pod("b", 8, "10.0.1.8"))));
  ASSERT_TRUE(traffic_->OnPolicy(WithEgress()).ok());
  EXPECT_TRUE(traffic_->Ready().ok());
  EXPECT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
}

TEST_F(TrafficHoldTest, WhereNoPolicyWasEverKnownPodsWaitForIt) {
  Begin(/*fast=*/true, /*require_policy=*/true);
  ASSERT_TRUE(traffic_->Start(Policy{}, {}).ok());
  EXPECT_FALSE(traffic_->holds_unknown_rules());
  EXPECT_TRUE(absl::IsResourceExhausted(traffic_->Ready()));
  EXPECT_TRUE(absl::IsResourceExhausted(traffic_->Attach(Pod("b", 8, "10.0.1.8"))));
  // A server without policies says so.
  ASSERT_TRUE(traffic_->OnPolicy(Policy{.version = 1}).ok());
  EXPECT_TRUE(traffic_->Ready().ok());
  EXPECT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
  // It stays known across a restart.
  Begin(/*fast=*/true, /*require_policy=*/true);
  ASSERT_TRUE(traffic_->Start(Policy{.version = 1}, {Pod("b", 8, "10.0.1.8")}).ok());
  EXPECT_TRUE(traffic_->Ready().ok());
}

TEST_F(TrafficHoldTest, NothingIsHeldWhereNothingIsInForce) {
  Begin(/*fast=*/false, /*require_policy=*/true);
  ASSERT_TRUE(traffic_->Start(std::nullopt, {}).ok());
  EXPECT_FALSE(traffic_->holds_unknown_rules());
  EXPECT_FALSE(Rules().empty());
  EXPECT_TRUE(absl::IsResourceExhausted(traffic_->Ready()));
}

}  // namespace
}  // namespace spoke::netagent
