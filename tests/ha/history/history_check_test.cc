#include "tests/ha/history/history_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <utility>

#include "tests/support/random_seed.h"

namespace spoke::ha {
namespace {

using Kind = Event::Kind;
using testing::HasSubstr;
using testing::SizeIs;

const ip::Address kA = ip::Address::V4(0x0A000001);
const ip::Address kB = ip::Address::V4(0x0A000002);

Event Of(Kind kind, uint32_t node, int64_t at, uint64_t generation = 0,
         const ip::Address& address = kA) {
  return {.address = address, .kind = kind, .node = node, .generation = generation, .at = at};
}

Reading ReadingOf(int64_t from, int64_t to, std::optional<Stored> a) {
  Reading reading{.from = from, .to = to};
  if (a) reading.addresses[kA] = *a;
  return reading;
}

struct Case {
  std::string name;
  std::vector<Event> events;
  std::vector<Reading> readings;
  uint64_t doubled = 0;
  uint64_t lost = 0;
};

class CheckHistoryTest : public testing::TestWithParam<Case> {};

TEST_P(CheckHistoryTest, FindsWhatNoOrderOfChangesExplains) {
  const Case& c = GetParam();
  const Verdict verdict = CheckHistory(c.events, c.readings);
  EXPECT_EQ(verdict.doubled, c.doubled) << testing::PrintToString(verdict.first);
  EXPECT_EQ(verdict.lost, c.lost) << testing::PrintToString(verdict.first);
  EXPECT_THAT(verdict.first, SizeIs(c.doubled + c.lost));
}

// Node 1 has the address from 10 on, with the pod of assignment 7 stored between 20 and 30.
const std::vector<Event> kInUse = {Of(Kind::kHeld, 1, 10), Of(Kind::kUseBegun, 1, 20, 7),
                                   Of(Kind::kUseStored, 1, 30, 7)};

std::vector<Event> InUseAnd(std::vector<Event> more) {
  std::vector<Event> events = kInUse;
  events.insert(events.end(), more.begin(), more.end());
  return events;
}

INSTANTIATE_TEST_SUITE_P(
    Holds, CheckHistoryTest,
    testing::Values(
        Case{"Empty", {}, {}},
        Case{"GivenUpBeforeTheNextIsTold",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kGivenUp, 1, 20), Of(Kind::kHeld, 2, 21)},
             {}},
        Case{"TouchingIntervalsHaveAnOrder",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kGivenUp, 1, 20), Of(Kind::kHeld, 2, 20)},
             {}},
        Case{"TheOrderOfTheListDoesNotMatter",
             {Of(Kind::kHeld, 2, 21), Of(Kind::kGivenUp, 1, 20), Of(Kind::kHeld, 1, 10)},
             {}},
        Case{"ToldToASecondNode", {Of(Kind::kHeld, 1, 10), Of(Kind::kHeld, 2, 11)}, {}, 1},
        Case{"ToldToASecondNodeBeforeTheFirstGaveItUp",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kHeld, 2, 19), Of(Kind::kGivenUp, 1, 20)},
             {},
             1},
        Case{"ThreeAtOnceAreThreePairs",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kHeld, 2, 11), Of(Kind::kHeld, 3, 12)},
             {},
             3},
        Case{"ToldTwiceIsHeldOnce",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kHeld, 1, 15), Of(Kind::kGivenUp, 1, 20),
              Of(Kind::kHeld, 2, 25)},
             {}},
        Case{"BackAtTheFirstNode",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kGivenUp, 1, 20), Of(Kind::kHeld, 2, 25),
              Of(Kind::kGivenUp, 2, 30), Of(Kind::kHeld, 1, 35)},
             {}},
        Case{"OtherAddressesAreOtherRegisters",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kHeld, 2, 11, 0, kB)},
             {}},
        Case{"MissingIsLostOnce",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kMissing, 1, 20), Of(Kind::kMissing, 1, 30)},
             {},
             0,
             1},
        Case{"MissingAndGivenToAnotherIsBoth",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kMissing, 1, 20), Of(Kind::kHeld, 2, 30)},
             {},
             1,
             1},
        Case{"MissingAfterItWasGivenUpIsRight",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kGivenUp, 1, 15), Of(Kind::kMissing, 1, 20)},
             {}}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Readings, CheckHistoryTest,
    testing::Values(
        Case{"HasTheOwnerAndThePod", kInUse, {ReadingOf(40, 50, Stored{1, 7})}},
        Case{"HasNoOwner", {Of(Kind::kHeld, 1, 10)}, {ReadingOf(40, 50, std::nullopt)}, 0, 1},
        Case{"HasAnotherOwner", {Of(Kind::kHeld, 1, 10)}, {ReadingOf(40, 50, Stored{2})}, 0, 1},
        Case{"OwnerToldOnlyMeanwhile", {Of(Kind::kHeld, 1, 45)}, {ReadingOf(40, 50, std::nullopt)}},
        Case{"OwnerGaveItUpMeanwhile",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kGivenUp, 1, 45)},
             {ReadingOf(40, 50, Stored{2})}},
        Case{"OwnerGaveItUpAsTheReadingEnded",
             {Of(Kind::kHeld, 1, 10), Of(Kind::kGivenUp, 1, 50)},
             {ReadingOf(40, 50, std::nullopt)}},
        Case{"ThePodIsForgotten", kInUse, {ReadingOf(40, 50, Stored{1})}, 0, 1},
        Case{"ThePodMayNotBeStoredYet", kInUse, {ReadingOf(25, 50, Stored{1})}},
        Case{"ThePodMayBeStoredBeforeItIsAcknowledged", kInUse, {ReadingOf(21, 22, Stored{1, 7})}},
        Case{"AnotherPodThanTheAcknowledged", kInUse, {ReadingOf(40, 50, Stored{1, 8})}, 0, 1},
        Case{"TheEndWasOnItsWayAndHappened",
             InUseAnd({Of(Kind::kEndBegun, 1, 45, 7)}),
             {ReadingOf(40, 50, Stored{1})}},
        Case{"TheEndWasOnItsWayAndDidNot",
             InUseAnd({Of(Kind::kEndBegun, 1, 45, 7)}),
             {ReadingOf(40, 50, Stored{1, 7})}},
        Case{"TheEndCameTooLateToExcuse",
             InUseAnd({Of(Kind::kEndBegun, 1, 51, 7)}),
             {ReadingOf(40, 50, Stored{1})},
             0,
             1},
        Case{"TheEndIsForgotten",
             InUseAnd({Of(Kind::kEndBegun, 1, 31, 7), Of(Kind::kEndStored, 1, 35, 7)}),
             {ReadingOf(40, 50, Stored{1, 7})},
             0,
             1},
        Case{"TheNextPodWasOnItsWay",
             InUseAnd({Of(Kind::kEndBegun, 1, 31, 7), Of(Kind::kEndStored, 1, 35, 7),
                       Of(Kind::kUseBegun, 1, 38, 9)}),
             {ReadingOf(40, 50, Stored{1, 9})}},
        Case{"StoredForTwoNodes", {}, {Reading{.from = 40, .to = 50, .doubled = {kB}}}, 1},
        Case{"EachReadingIsJudged",
             kInUse,
             {ReadingOf(40, 50, Stored{1}), ReadingOf(60, 70, Stored{1, 7}),
              ReadingOf(80, 90, Stored{1})},
             0,
             2}),
    [](const auto& test) { return test.param.name; });

TEST(CheckHistory, SaysWhatItLookedAt) {
  const Verdict verdict =
      CheckHistory(InUseAnd({Of(Kind::kEndBegun, 1, 31, 7), Of(Kind::kEndStored, 1, 35, 7),
                             Of(Kind::kGivenUp, 1, 60), Of(Kind::kHeld, 2, 70)}),
                   {ReadingOf(40, 50, Stored{1})});
  EXPECT_EQ(verdict.holds, 2U);
  EXPECT_EQ(verdict.moves, 1U);
  EXPECT_EQ(verdict.uses, 1U);
  EXPECT_EQ(verdict.compared, 1U);
}

TEST(CheckHistory, AFaultNamesAddressAndNodes) {
  const Verdict verdict = CheckHistory({Of(Kind::kHeld, 1, 10), Of(Kind::kHeld, 2, 11)}, {});
  ASSERT_THAT(verdict.first, SizeIs(1));
  EXPECT_THAT(verdict.first[0], HasSubstr("10.0.0.1 is node 1's"));
}

// Registers that do change at one instant, seen through messages that are late by chance.
class LateWorld {
 public:
  explicit LateWorld(testing_support::Random& random) : random_(random) {}

  void Step() {
    const uint64_t index = random_.Between(0, registers_.size() - 1);
    const ip::Address address = ip::Advance(kA, index);
    Register& one = registers_[index];
    now_ += static_cast<int64_t>(random_.Between(1, 20));
    if (one.node == 0) {
      one.node = static_cast<uint32_t>(random_.Between(1, 5));
      Say(address, Kind::kHeld, one.node, 0, now_ += Delay());
    } else if (one.generation != 0) {
      Change(address, one, Kind::kEndBegun, Kind::kEndStored);
      one.generation = 0;
    } else if (random_.OneIn(2)) {
      one.generation = ++generation_;
      Change(address, one, Kind::kUseBegun, Kind::kUseStored);
    } else {
      Say(address, Kind::kGivenUp, one.node, 0, now_);
      now_ += Delay();
      one.node = 0;
    }
  }

  void Read() {
    Reading reading{.from = now_ - Delay(), .to = now_ + Delay()};
    for (uint64_t i = 0; i < registers_.size(); ++i) {
      const Register& one = registers_[i];
      if (one.node != 0) reading.addresses[ip::Advance(kA, i)] = {one.node, one.generation};
    }
    readings.push_back(std::move(reading));
    now_ += 2 * kLongest;  // Nothing later began before the reading ended.
  }

  static constexpr int64_t kLongest = 50;
  std::vector<Event> events;
  std::vector<Reading> readings;

 private:
  struct Register {
    uint32_t node = 0;
    uint64_t generation = 0;
  };

  int64_t Delay() { return static_cast<int64_t>(random_.Between(0, kLongest)); }
  void Say(const ip::Address& address, Kind kind, uint32_t node, uint64_t generation, int64_t at) {
    events.push_back(Of(kind, node, at, generation, address));
  }
  void Change(const ip::Address& address, const Register& one, Kind begun, Kind stored) {
    Say(address, begun, one.node, one.generation, now_);
    Say(address, stored, one.node, one.generation, now_ += Delay());
  }

  testing_support::Random& random_;
  int64_t now_ = 1000;
  uint64_t generation_ = 0;
  std::array<Register, 6> registers_;
};

TEST(CheckHistory, AccusesNoSystemWhoseMessagesAreOnlyLate) {
  testing_support::Random random;
  for (int round = 0; round < 300; ++round) {
    LateWorld world(random);
    for (int step = 0; step < 200; ++step) {
      random.OneIn(20) ? world.Read() : world.Step();
    }
    const Verdict verdict = CheckHistory(world.events, world.readings);
    ASSERT_EQ(verdict.doubled + verdict.lost, 0U) << testing::PrintToString(verdict.first);
    ASSERT_GT(verdict.holds, 5U);
  }
}

TEST(CheckHistory, FindsAnAddressThatASecondServerGaveAwayAgain) {
  testing_support::Random random;
  for (int round = 0; round < 300; ++round) {
    LateWorld world(random);
    for (int step = 0; step < 100; ++step) world.Step();
    // A server that does not know of the other one's decision tells a sixth node at once.
    std::vector<Event> holds;
    for (const Event& event : world.events) {
      if (event.kind == Kind::kHeld) holds.push_back(event);
    }
    Event second = holds[random.Between(0, holds.size() - 1)];
    second.node = 6;
    world.events.push_back(second);
    ASSERT_GE(CheckHistory(world.events, world.readings).doubled, 1U);
  }
}

}  // namespace
}  // namespace spoke::ha
