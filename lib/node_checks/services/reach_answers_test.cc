#include "lib/node_checks/services/reach_answers.h"

#include <utility>

#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

ReachAnswer Of(const char* target, bool reached) {
  return {.target = ip::Endpoint::Parse(target).value(), .reached = reached};
}

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(ReachAnswers, LooksThatEndAlikeAreCountedByTarget) {
  ReachAnswers before;
  for (int look = 1; look <= 3; ++look) {
    // The order may change, and one target may be of both kinds.
    ReachAnswers now{.hub = {Of("10.8.0.10:443", false), Of("10.8.0.11:443", true)},
                     .peer_spoke = {Of("10.8.0.10:443", true)}};
    if (look == 2) std::swap(now.hub[0], now.hub[1]);
    CountLooks(before, At(look), now);
    for (const ReachAnswer& answer : now.hub) {
      EXPECT_EQ(answer.looks, look);
      EXPECT_EQ(answer.since, At(1));
    }
    EXPECT_EQ(now.peer_spoke[0].looks, look);
    before = now;
  }
  ReachAnswers now{.hub = {Of("10.8.0.10:443", true), Of("10.8.0.11:443", true)}};
  CountLooks(before, At(9), now);
  EXPECT_EQ(now.hub[0].looks, 1) << "it was not reached before";
  EXPECT_EQ(now.hub[0].since, At(9));
  EXPECT_EQ(now.hub[1].looks, 4);
}

TEST(ReachAnswers, WhatIsWrongForTheFirstTimeIsInDoubt) {
  const auto counted = [](ReachAnswers now, int looks) {
    for (ReachAnswer& answer : now.hub) answer.looks = looks;
    for (ReachAnswer& answer : now.peer_spoke) answer.looks = looks;
    return now;
  };
  EXPECT_FALSE(IsInDoubt({}));
  const ReachAnswers well{.hub = {Of("10.8.0.10:443", true)},
                          .peer_spoke = {Of("10.32.0.1:443", false)}};
  EXPECT_FALSE(IsInDoubt(counted(well, 1)));
  const ReachAnswers no_hub{.hub = {Of("10.8.0.10:443", false)}};
  EXPECT_TRUE(IsInDoubt(counted(no_hub, 1)));
  EXPECT_FALSE(IsInDoubt(counted(no_hub, kAgreeingLooks)));
  const ReachAnswers peer{.peer_spoke = {Of("10.32.0.1:443", true)}};
  EXPECT_TRUE(IsInDoubt(counted(peer, 1)));
  EXPECT_FALSE(IsInDoubt(counted(peer, kAgreeingLooks)));
}

}  // namespace
}  // namespace spoke::node_checks
