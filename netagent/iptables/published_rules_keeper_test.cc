#include "netagent/iptables/published_rules_keeper.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/iptables/testing/fake_iptables.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class PublishedRulesKeeperTest : public testing::Test {
 protected:
  PublishedRulesKeeper Make(const PublishedRulesKeeper::Settings& settings) {
    return {settings, {.nft = nft_, .legacy = legacy_, .log = log_}};
  }
  PublishedRulesKeeper Make() { return Make({.cluster = cluster_, .legacy_command = true}); }
  std::vector<IptablesTable> Mangle(Iptables& iptables) {
    return iptables.Read(ip::Family::kV4, {"mangle"}).value();
  }
  void AddForeign(FakeIptables& iptables) {
    iptables.Add(ip::Family::kV4, "filter", {.chain = "INPUT", .text = "-j ACCEPT"});
  }

  const ip::Prefix cluster_ = ip::Prefix::Parse("10.0.0.0/8").value();
  const std::vector<PublishedRule> wanted_ = PublishedRules(cluster_);
  FakeIptables nft_;
  FakeIptables legacy_;
  testing_support::RecordingLog log_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
};

TEST_F(PublishedRulesKeeperTest, LaysThemDownOnceAndKeepsTheirCounters) {
  PublishedRulesKeeper keeper = Make();
  keeper.Tick(now_);
  EXPECT_THAT(MissingRules(wanted_, Mangle(nft_)), IsEmpty());
  EXPECT_THAT(Mangle(legacy_), IsEmpty());
  nft_.Count("INPUT", wanted_[0].Text(), 5, 500);
  const auto before = Mangle(nft_);
  for (int i = 0; i < 20; ++i) keeper.Tick(now_ += kPublishedRulesRound);
  EXPECT_EQ(Mangle(nft_), before);
  EXPECT_EQ(keeper.state(), PublishedRulesState());
  EXPECT_EQ(log_.Count("published_rules_added"), 1);
}

TEST_F(PublishedRulesKeeperTest, OneThatSomebodyRemovesComesBackAndIsCounted) {
  PublishedRulesKeeper keeper = Make();
  keeper.Tick(now_);
  nft_.Count("FORWARD", wanted_[1].Text(), 5, 500);
  nft_.Remove("INPUT", wanted_[0].Text());
  keeper.Tick(now_ + absl::Seconds(1));
  EXPECT_THAT(MissingRules(wanted_, Mangle(nft_)), SizeIs(1)) << "the round is not over yet";
  keeper.Tick(now_ + kPublishedRulesRound);
  const auto tables = Mangle(nft_);
  EXPECT_THAT(MissingRules(wanted_, tables), IsEmpty());
  EXPECT_THAT(tables[0].rules, SizeIs(4));
  EXPECT_EQ(keeper.state().repaired, 1U);
  EXPECT_EQ(tables[0].rules[0].bytes, 500U) << "the others keep what they have counted";
}

TEST_F(PublishedRulesKeeperTest, GoesWhereTheHostsRulesAre) {
  AddForeign(legacy_);
  PublishedRulesKeeper keeper = Make();
  keeper.Tick(now_);
  EXPECT_THAT(MissingRules(wanted_, Mangle(legacy_)), IsEmpty());
  EXPECT_THAT(Mangle(nft_), IsEmpty());
}

TEST_F(PublishedRulesKeeperTest, RulesInBothBackEndsAreAnAlarm) {
  AddForeign(legacy_);
  PublishedRulesKeeper keeper = Make();
  keeper.Tick(now_);
  EXPECT_FALSE(keeper.state().both_backends);
  AddForeign(nft_);
  for (int i = 0; i < 20; ++i) keeper.Tick(now_ += kPublishedRulesRound);
  EXPECT_TRUE(keeper.state().both_backends);
  EXPECT_EQ(log_.Count("iptables_backends_mixed"), 1);
}

TEST_F(PublishedRulesKeeperTest, LegacyTablesThatNobodyCanReadAreAnAlarmToo) {
  legacy_.FailWith(absl::UnimplementedError("no iptables-legacy-save"));
  AddForeign(nft_);
  PublishedRulesKeeper keeper = Make({.cluster = cluster_});
  keeper.Tick(now_);
  EXPECT_TRUE(keeper.state().both_backends);
  EXPECT_THAT(MissingRules(wanted_, Mangle(nft_)), IsEmpty());
}

TEST_F(PublishedRulesKeeperTest, WhatCannotBeDoneIsToldOnceAndTriedAgain) {
  PublishedRulesKeeper keeper = Make();
  nft_.FailWith(absl::UnavailableError("busy"));
  for (int i = 0; i < 5; ++i) keeper.Tick(now_ += kPublishedRulesRound);
  EXPECT_EQ(log_.Count("published_rules_failed"), 1);
  nft_.FailWith(absl::OkStatus());
  keeper.Tick(now_ += kPublishedRulesRound);
  EXPECT_THAT(MissingRules(wanted_, Mangle(nft_)), IsEmpty());
  EXPECT_EQ(keeper.state().repaired, 0U) << "they had not been there before";
}

TEST_F(PublishedRulesKeeperTest, WithoutAClusterNothingIsLaidDown) {
  PublishedRulesKeeper keeper = Make({.legacy_command = true});
  AddForeign(nft_);
  AddForeign(legacy_);
  keeper.Tick(now_);
  EXPECT_THAT(Mangle(nft_), IsEmpty());
  EXPECT_TRUE(keeper.state().both_backends) << "that is still worth knowing";
}

}  // namespace
}  // namespace spoke::netagent
