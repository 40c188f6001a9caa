#include "ipam-server/traffic/traffic_history.h"

#include <cstdint>
#include <map>
#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr int64_t kStart = 1'700'000'000'000;
constexpr int64_t kStep = TrafficHistory::kStepMs;

TEST(TrafficHistoryTest, OneReadingIsNoRate) {
  TrafficHistory history;
  history.Add(kStart, {{{"internet", "web"}, 1000}});
  EXPECT_THAT(history.Of("internet", 8).times_ms, IsEmpty());
  EXPECT_THAT(history.Of("internet", 8).lines, IsEmpty());
}

TEST(TrafficHistoryTest, RatesAreBitsASecondAndAClassIsApart) {
  TrafficHistory history;
  history.Add(kStart, {{{"internet", "web"}, 1000}, {{"cluster", "web"}, 0}});
  history.Add(
      kStart + kStep,
      {{{"internet", "web"}, 31'000}, {{"cluster", "web"}, 60'000}, {{"internet", "new"}, 90'000}});
  const TrafficCourse course = history.Of("internet", 8);
  EXPECT_THAT(course.times_ms, ElementsAre(kStart + kStep));
  ASSERT_THAT(course.lines, SizeIs(2));
  EXPECT_EQ(course.lines[0].name, "new");
  EXPECT_THAT(course.lines[0].bits_per_second, ElementsAre(24'000));
  EXPECT_EQ(course.lines[1].name, "web");
  EXPECT_THAT(course.lines[1].bits_per_second, ElementsAre(8'000));
  EXPECT_THAT(history.Of("all", 8).lines[0].bits_per_second, ElementsAre(24'000));
  EXPECT_THAT(history.Of("all", 8).lines[1].bits_per_second, ElementsAre(24'000));
  EXPECT_THAT(history.Classes(), ElementsAre("all", "cluster", "external", "internet"));
}

TEST(TrafficHistoryTest, ExternalIsTheInternetAndItsGroups) {
  TrafficHistory history;
  history.Add(kStart, {});
  history.Add(kStart + kStep, {{{"internet", "web"}, 30'000},
                               {{"group:storage", "web"}, 60'000},
                               {{"hub", "web"}, 120'000}});
  EXPECT_THAT(history.Of("external", 8).lines[0].bits_per_second, ElementsAre(24'000));
}

TEST(TrafficHistoryTest, ATotalThatFellDidNotMoveAndANameThatIsGoneHasNone) {
  TrafficHistory history;
  history.Add(kStart, {{{"internet", "web"}, 0}, {{"internet", "gone"}, 0}});
  history.Add(kStart + kStep, {{{"internet", "web"}, 30'000}, {{"internet", "gone"}, 3'000}});
  history.Add(kStart + 2 * kStep, {{{"internet", "web"}, 10}});
  const TrafficCourse course = history.Of("internet", 8);
  ASSERT_THAT(course.lines, SizeIs(2));
  EXPECT_THAT(course.lines[0].bits_per_second, ElementsAre(8'000, 0));
  EXPECT_THAT(course.lines[1].bits_per_second, ElementsAre(800, 0));
}

TEST(TrafficHistoryTest, AReadingTooCloseToTheLastIsPassedOver) {
  TrafficHistory history;
  history.Add(kStart, {{{"internet", "web"}, 0}});
  history.Add(kStart + TrafficHistory::kStepMs - 1, {{{"internet", "web"}, 1'000}});
  EXPECT_THAT(history.Of("internet", 8).times_ms, IsEmpty());
  history.Add(kStart + kStep, {{{"internet", "web"}, 30'000}});
  EXPECT_THAT(history.Of("internet", 8).lines[0].bits_per_second, ElementsAre(8'000));
}

TEST(TrafficHistoryTest, AClockSetBackBeginsAnew) {
  TrafficHistory history;
  history.Add(kStart, {});
  history.Add(kStart + kStep, {{{"internet", "web"}, 10'000}});
  history.Add(kStart - 2 * kStep, {{{"internet", "web"}, 20'000}});
  EXPECT_THAT(history.Of("internet", 8).times_ms, IsEmpty());
  history.Add(kStart - kStep, {{{"internet", "web"}, 30'000}});
  EXPECT_THAT(history.Of("internet", 8).times_ms, ElementsAre(kStart - kStep));
}

TEST(TrafficHistoryTest, HasNoMoreNamesWhereEachReadingHasOthers) {
  TrafficHistory history;
  history.Add(kStart, {});
  for (int64_t i = 1; i <= 40; ++i) {
    history.Add(kStart + i * kStep, {{{"internet", fmt::format("ns{}", i)}, 1'000}});
  }
  EXPECT_THAT(history.Of("internet", 1000).lines, SizeIs(TrafficHistory::kMostNames));
}

TEST(TrafficHistoryTest, KeepsAnHourAndTheNamesWithMost) {
  TrafficHistory history;
  for (int64_t i = 0; i <= 400; ++i) {
    ClassTotals totals;
    for (uint64_t name = 1; name <= 100; ++name) {
      totals[{"internet", fmt::format("ns{:03}", name)}] = name * static_cast<uint64_t>(i) * 1000;
    }
    history.Add(kStart + i * kStep, totals);
  }
  const TrafficCourse course = history.Of("internet", 3);
  EXPECT_THAT(course.times_ms, SizeIs(121));
  EXPECT_EQ(course.times_ms.back() - course.times_ms.front(), TrafficHistory::kKeptMs);
  ASSERT_THAT(course.lines, SizeIs(3));
  EXPECT_EQ(course.lines[0].name, "ns100");
  EXPECT_EQ(course.lines[2].name, "ns098");
  EXPECT_THAT(course.lines[0].bits_per_second, SizeIs(121));
  EXPECT_THAT(history.Of("internet", 1000).lines, SizeIs(TrafficHistory::kMostNames));
}

}  // namespace
}  // namespace spoke::ipam
