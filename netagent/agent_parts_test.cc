#include "netagent/agent_parts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(100);
const absl::Time kLater = kNow + absl::Seconds(1);
const absl::Time kEarlier = kNow - absl::Seconds(1);

// A part that waits for nothing any more once it has been looked after.
struct Sleeper {
  void Tick() { wake = std::nullopt; }
  std::optional<absl::Time> NextWake() const { return wake; }
  std::optional<absl::Time> wake;
};

class AgentPartsTest : public testing::Test {
 protected:
  void Add(Fairness fairness, const std::string& name, absl::Time wake) {
    parts_.Add({.fairness = fairness,
                .tick = [this, name](absl::Time) { ticked_.push_back(name); },
                .next_wake = [wake] { return wake; }});
  }
  std::vector<std::string> Turn() {
    ticked_.clear();
    parts_.Tick(kNow, [] {});
    return ticked_;
  }

  AgentParts parts_;
  std::vector<std::string> ticked_;
};

TEST_F(AgentPartsTest, WithoutPartsNothingHasToWake) {
  EXPECT_EQ(parts_.NextWake(), absl::InfiniteFuture());
  EXPECT_THAT(Turn(), ElementsAre());
}

TEST_F(AgentPartsTest, TheLoopWakesForTheFirst) {
  Add(Fairness::kEveryTurn, "never", absl::InfiniteFuture());
  Add(Fairness::kTakesTurns, "later", kLater);
  Add(Fairness::kEveryTurn, "now", kNow);
  EXPECT_EQ(parts_.NextWake(), kNow);
}

TEST_F(AgentPartsTest, WhatIsQuickIsLookedAfterInEachTurnDueOrNot) {
  Add(Fairness::kEveryTurn, "due", kEarlier);
  Add(Fairness::kEveryTurn, "never", absl::InfiniteFuture());
  Add(Fairness::kEveryTurn, "due as well", kEarlier);
  EXPECT_THAT(Turn(), ElementsAre("due", "never", "due as well"));
}

TEST_F(AgentPartsTest, OfTheSlowOnesThatAreDueOneIsLookedAfterATurnInTheOrderOfTheList) {
  Add(Fairness::kTakesTurns, "due", kNow);
  Add(Fairness::kTakesTurns, "not due", kLater);
  Add(Fairness::kTakesTurns, "due for longest", kEarlier);
  Add(Fairness::kEveryTurn, "quick", kNow);
  EXPECT_THAT(Turn(), ElementsAre("not due", "due for longest", "quick"));
}

TEST_F(AgentPartsTest, APartIsAskedItselfAndOneThatIsNotThereIsLeftOut) {
  Sleeper sleeper{.wake = kLater};
  std::optional<Sleeper> none;
  parts_.Add(Fairness::kEveryTurn, sleeper);
  parts_.Add(Fairness::kEveryTurn, none);
  EXPECT_EQ(parts_.NextWake(), kLater);
  int calls = 0;
  parts_.Tick(kNow, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(parts_.NextWake(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace spoke::netagent
