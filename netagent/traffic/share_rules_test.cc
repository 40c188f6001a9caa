#include "netagent/traffic/share_rules.h"

#include "gtest/gtest.h"
#include "netagent/nftables/testing/rule_machine.h"
#include "netagent/traffic/traffic_plan.h"

namespace spoke::netagent {
namespace {

constexpr uint32_t kConfirmed = 8;  // IPS_CONFIRMED
constexpr ip::Address kFar = ip::Address::V4(0xC0000201);
constexpr ip::Address kFar6 = ip::Address::V6(0x2001'0DB8'0000'0000, 1);

class ShareRulesTest : public testing::Test {
 protected:
  void SetUp() override { Put(ConnectionShares{.connections = 40, .ports = 20}); }

  void Put(const std::optional<ConnectionShares>& shares) {
    nft::Transaction transaction;
    AppendTrafficTable(ClassMap::Compile(Policy(), {}).value(), {.shares = shares},
                       {.rules = machine_.Rules()}, transaction);
    machine_.Apply(transaction);
  }
  void SetOver(const OverShare& over) {
    nft::Transaction transaction;
    AppendOver(over, transaction);
    machine_.Apply(transaction);
  }
  // Returns whether a packet from the link of that index gets through.
  bool Passes(uint32_t link, TestFlow* flow, const ip::Address& to = kFar, uint8_t protocol = 6) {
    const ip::Address from = to.is_v4() ? ip::Address::V4(0x0A010005) : ip::Address::V6(1, 5);
    TestPacket packet{.in = "spk0123456789ab",
                      .source = from,
                      .destination = to,
                      .protocol = protocol,
                      .flow = flow,
                      .in_index = link};
    machine_.Run(nft::Hook::kPrerouting, packet);
    return !packet.dropped;
  }
  bool Begins(uint32_t link, const ip::Address& to = kFar, uint8_t protocol = 6) {
    TestFlow flow;
    return Passes(link, &flow, to, protocol);
  }

  RuleMachine machine_;
  TestFlow known_{.status = kConfirmed};
};

TEST_F(ShareRulesTest, WhoIsOverBeginsNothingAndGoesOn) {
  SetOver({.links = {7}});
  EXPECT_FALSE(Begins(7));
  EXPECT_FALSE(Begins(7, kFar6, 17));
  EXPECT_TRUE(Passes(7, &known_));
  EXPECT_TRUE(Begins(8));
  EXPECT_EQ(machine_.Counted(kOverConnections), 2U);
  SetOver({});
  EXPECT_TRUE(Begins(7));
}

TEST_F(ShareRulesTest, WhoIsOverWithATargetReachesTheOthers) {
  SetOver({.with_target = {{7, kFar, 6}, {7, kFar6, 17}}});
  EXPECT_FALSE(Begins(7, kFar, 6));
  EXPECT_TRUE(Begins(7, kFar, 17));
  EXPECT_FALSE(Begins(7, kFar6, 17));
  EXPECT_TRUE(Begins(7, ip::Address::V4(0xC0000202), 6));
  EXPECT_TRUE(Begins(8, kFar, 6));
  EXPECT_TRUE(Passes(7, &known_, kFar, 6));
  EXPECT_EQ(machine_.Counted(kOverPorts), 2U);
}

TEST_F(ShareRulesTest, NobodyBeginsMoreThanABurstAtOnceAndEachHasItsOwn) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Begins(7)) << i;
  EXPECT_FALSE(Begins(7));
  EXPECT_TRUE(Begins(8));
  EXPECT_TRUE(Passes(7, &known_));
  EXPECT_EQ(machine_.Counted(kOverRate), 1U);
}

TEST_F(ShareRulesTest, WhatIsNotAPodsOrNotTrackedIsNotAsked) {
  SetOver({.links = {7}});
  TestFlow flow;
  TestPacket others{.in = "eth0",
                    .source = kFar,
                    .destination = ip::Address::V4(0x0A010005),
                    .flow = &flow,
                    .in_index = 7};
  machine_.Run(nft::Hook::kPrerouting, others);
  EXPECT_FALSE(others.dropped);
  EXPECT_TRUE(Passes(7, nullptr));
}

TEST_F(ShareRulesTest, WithoutSharesNoRuleAsksAboutConnections) {
  Put(std::nullopt);
  EXPECT_FALSE(machine_.HasChain(kShareChain));
  RuleMachine fresh;
  nft::Transaction transaction;
  AppendTrafficTable(ClassMap::Compile(Policy(), {}).value(), {}, {}, transaction);
  fresh.Apply(transaction);
  EXPECT_FALSE(fresh.HasChain(kShareChain));
  EXPECT_EQ(fresh.counters().count(kOverRate), 0U);
}

}  // namespace
}  // namespace spoke::netagent
