#include "netagent/connections/connection_shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/egress/egress_sets.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint8_t kTcp = 6;
constexpr ConnectionShares kShares = {.connections = 1'000, .ports = 400};

ip::Address Far(uint32_t number) { return ip::Address::V4(0xC0000200 + number); }
absl::Time At(double seconds) { return absl::FromUnixSeconds(1000) + absl::Seconds(seconds); }

PodConnections Pod(uint32_t link, uint64_t connections,
                   std::vector<PodConnections::AtTarget> targets = {}) {
  return {.link = link, .connections = connections, .targets = std::move(targets)};
}

TEST(SharesOf, AreAQuarterOfTheTableAndHalfOfThePortsUnlessTheSettingsSayOtherwise) {
  EXPECT_EQ(SharesOf({}, {.limit = 262'144}),
            (ConnectionShares{.connections = 65'536, .ports = 32'256}));
  EXPECT_EQ(SharesOf({}, {.limit = 0}), (ConnectionShares{.connections = 65'536, .ports = 32'256}));
  EXPECT_EQ(SharesOf({.connections = 100, .ports = 10}, {.limit = 262'144}),
            (ConnectionShares{.connections = 100, .ports = 10}));
  EXPECT_EQ(SharesOf({}, {.limit = 4'194'304})->connections, 131'072U);
  EXPECT_EQ(SharesOf({.bounded = false}, {.limit = 262'144}), std::nullopt);
}

// The shares are the usual ones, and it begins when a pod has just not more than them.
TEST(SharesOf, WhatIsBegunBetweenTwoListsTakesNeitherAllOfTheTableNorAllPorts) {
  for (const uint64_t limit : {65'536U, 262'144U, 4'194'304U}) {
    const ConnectionShares shares = SharesOf({}, {.limit = limit}).value();
    const auto seconds = static_cast<uint64_t>(absl::ToInt64Seconds(TallyPasses::kLongestPause));
    const uint64_t more = shares.burst() + shares.per_second() * seconds;
    EXPECT_LE(shares.connections + more, limit / 2) << limit;
    EXPECT_LT(shares.ports + more, 65'536U - 1'024U) << limit;
  }
}

// The sets that count by pod and destination must have room for others beside one pod.
TEST(SharesOf, OnePodsDestinationsFillNoSetOfTheLimits) {
  const ConnectionShares shares = SharesOf({}, {.limit = 4'194'304}).value();
  const auto begun = [&](absl::Duration time) {
    return shares.burst() + shares.per_second() * static_cast<uint64_t>(absl::ToInt64Seconds(time));
  };
  EXPECT_LT(shares.connections + begun(TallyPasses::kLongestPause), kEgressPairSize * 3 / 4);
  for (const nft::Set& set : EgressSets()) {
    if (!set.name.starts_with(kEgressPairRate)) continue;
    // The time has the second that the kernel takes to see that it is over.
    EXPECT_LT(begun(set.timeout + absl::Seconds(1)), set.size / 2) << set.name;
  }
}

TEST(FindOver, NamesWhoHasMoreThanAShareAndNobodyElse) {
  const std::vector<PodConnections> pods = {
      Pod(1, 1'000), Pod(2, 1'001),
      Pod(3, 900, {{{Far(1), kTcp, 443}, 400}, {{Far(2), kTcp, 443}, 401}})};
  const OverShare over = FindOver(pods, kShares, {});
  EXPECT_THAT(over.links, ElementsAre(2));
  EXPECT_THAT(over.with_target, ElementsAre(OverShare::WithTarget{3, Far(2), kTcp}));
}

TEST(FindOver, WhoWasOverHasToComeWellBelow) {
  const OverShare before = {.links = {1}, .with_target = {{2, Far(1), kTcp}}};
  const auto with = [](uint64_t connections, uint64_t ports) {
    return std::vector<PodConnections>{Pod(1, connections),
                                       Pod(2, ports, {{{Far(1), kTcp, 443}, ports}})};
  };
  EXPECT_EQ(FindOver(with(876, 351), kShares, before), before);
  EXPECT_EQ(FindOver(with(875, 350), kShares, before), OverShare());
  EXPECT_EQ(FindOver(with(876, 351), kShares, {}), OverShare());
}

TEST(FindOver, WhoIsOverWithManyTargetsBeginsNothing) {
  std::vector<PodConnections::AtTarget> targets;
  for (uint32_t i = 0; i <= kMaxTargetsOver; ++i) targets.push_back({{Far(i), kTcp, 443}, 20});
  const OverShare over = FindOver({Pod(1, 400, targets)}, {.connections = 1'000, .ports = 10}, {});
  EXPECT_THAT(over.links, ElementsAre(1));
  EXPECT_THAT(over.with_target, IsEmpty());
}

TEST(TallyPasses, AnEmptyTableIsNeverListed) {
  TallyPasses passes;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(passes.Glance(At(5 * i), {.entries = 0}, kShares));
    EXPECT_EQ(passes.NextGlance(), At(5 * i) + TallyPasses::kGlance);
  }
}

// Does one pass at `at` that takes `took`, as if it had found `tally`.
void Pass(TallyPasses& passes, double at, double took, uint64_t entries,
          const ConnectionTally& tally = ConnectionTally({})) {
  ASSERT_TRUE(passes.Glance(At(at), {.entries = entries}, kShares)) << at;
  passes.OnBegun(At(at), {.entries = entries});
  EXPECT_EQ(passes.NextGlance(), std::nullopt);
  EXPECT_FALSE(passes.Glance(At(at), {.entries = entries}, kShares));
  passes.OnEnded(At(at + took));
  passes.OnTally(tally, kShares);
}

TEST(TallyPasses, AQuietTableIsListedEachHalfMinuteAndOnceMoreWhenItIsEmpty) {
  TallyPasses passes;
  Pass(passes, 0, 0, 10);
  EXPECT_FALSE(passes.Glance(At(29), {.entries = 20}, kShares));
  Pass(passes, 34, 0, 20);
  Pass(passes, 64, 0, 0);
  EXPECT_FALSE(passes.Glance(At(100), {.entries = 0}, kShares));
}

TEST(TallyPasses, TakeNoMoreThanTheirPartOfAProcessor) {
  TallyPasses passes;
  Pass(passes, 0, 2, 10);
  EXPECT_FALSE(passes.Glance(At(101), {.entries = 10}, kShares));
  Pass(passes, 102, 0, 10);
}

TEST(TallyPasses, ATableThatGrowsIsListedSooner) {
  TallyPasses passes;
  Pass(passes, 0, 0, 10);
  EXPECT_FALSE(passes.Glance(At(5), {.entries = 109}, kShares));
  Pass(passes, 10, 0, 110);
  // Nobody needs to know so soon when there are no shares.
  EXPECT_FALSE(passes.Glance(At(15), {.entries = 10'000}, std::nullopt));
  Pass(passes, 20, 0.3, 10'000);
  // The list comes no sooner than one that takes long allows.
  EXPECT_FALSE(passes.Glance(At(26), {.entries = 20'000}, kShares));
  Pass(passes, 26.5, 0, 20'000);
}

TEST(TallyPasses, WhoeverHasHalfOfAShareIsLookedAtSooner) {
  for (const bool ports : {true, false}) {
    ConnectionTally tally({{.link = 1, .addresses = {Far(0)}}});
    for (int i = 0; i < (ports ? 201 : 501); ++i) {
      tally.Add({Far(0), Far(1), Far(1), ports ? Far(2) : Far(0)}, kTcp, 443);
    }
    TallyPasses passes;
    Pass(passes, 0, 0, 600, tally);
    Pass(passes, 5, 0, 600);
    EXPECT_FALSE(passes.Glance(At(10), {.entries = 600}, kShares)) << "it has less now";
  }
}

TEST(TallyPasses, ATableThatIsNearlyFullIsListedSooner) {
  TallyPasses passes;
  Pass(passes, 0, 0, 760);
  EXPECT_FALSE(passes.Glance(At(5), {.entries = 750, .limit = 1'000}, kShares));
  EXPECT_TRUE(passes.Glance(At(10), {.entries = 751, .limit = 1'000}, kShares));
}

}  // namespace
}  // namespace spoke::netagent
