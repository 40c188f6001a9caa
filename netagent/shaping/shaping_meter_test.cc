#include "netagent/shaping/shaping_meter.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

using units::BitRate;
using units::ByteCount;

constexpr uint64_t kMbit = 1'000'000;
constexpr auto kIngress = TrafficDirection::kIngress;
constexpr auto kEgress = TrafficDirection::kEgress;
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

MATCHER_P(IsAbout, rate, "") {
  const uint64_t count = arg.count();
  return count + 100 >= static_cast<uint64_t>(rate) && count <= static_cast<uint64_t>(rate) + 100;
}

// The flows of one plan, and the kernel's totals of them.
class Meter {
 public:
  // Adds a flow and returns its place. With `class_id` 0 it is only counted.
  size_t Add(const PlannedFlow& flow, uint64_t ceil = 1000 * kMbit) {
    plan.flows.push_back(flow);
    reading.flows.push_back({.host_index = flow.key.host_index,
                             .scope = flow.key.scope,
                             .direction = flow.key.direction});
    reading.classes.push_back({.direction = flow.key.direction, .id = flow.class_id});
    if (flow.class_id != 0) {
      plan.tables.trees[static_cast<size_t>(flow.key.direction)].push_back(
          {.id = flow.class_id, .ceil = FrameRate(BitRate(ceil))});
    }
    return plan.flows.size() - 1;
  }
  void Offer(size_t flow, uint64_t payload_bits) {
    reading.flows[flow].offered += FrameSize(payload_bits);
  }
  void Pass(size_t flow, uint64_t payload_bits) {
    Offer(flow, payload_bits);
    reading.classes[flow].sent += FrameSize(payload_bits);
  }
  void Drop(size_t flow, uint64_t payload_bits) {
    Offer(flow, payload_bits);
    reading.classes[flow].dropped_packets += 1 + payload_bits / (1448 * 8);
  }
  void Read(absl::Duration after = absl::Seconds(1)) {
    now += after;
    meter.OnReading(reading, plan, grants, now);
  }
  static ByteCount FrameSize(uint64_t payload_bits) {
    return ByteCount(FrameRate(BitRate(payload_bits)).count());
  }
  const FlowUse& Use(size_t flow) const { return meter.flows().at(plan.flows[flow].key); }
  const ShapingTotals& Totals(const std::string& budget, TrafficDirection direction) const {
    return meter.totals().at({budget, direction});
  }

  ShapingMeter meter;
  ShapingPlan plan;
  ShapingReading reading;
  std::vector<GrantInForce> grants;
  absl::Time now = kStart;
};

PlannedFlow Flow(uint32_t index, TrafficDirection direction = kIngress, ShapeClassId id = 0) {
  return {.key = {.host_link = fmt::format("spk{}", index),
                  .host_index = index,
                  .scope = kInternet,
                  .direction = direction},
          .class_id = id};
}

PlannedFlow OfTeam(PlannedFlow flow, const std::string& team, bool shadow = false) {
  flow.budget = "down";
  flow.team = team;
  flow.shadow_budget = shadow;
  return flow;
}

GrantInForce Grant(const std::string& team, uint64_t rate, uint32_t connections = 0) {
  return {.budget = "down",
          .team = team,
          .rate = BitRate(rate),
          .held = BitRate(rate),
          .connections = connections,
          .mode = GrantMode::kGranted};
}

TEST(ShapingMeter, FirstReadingOnlySaysWhereToCountFrom) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Pass(flow, 900 * kMbit);
  m.Read();
  EXPECT_EQ(m.Use(flow).passed, BitRate());
  EXPECT_THAT(m.meter.Demand(), IsEmpty());
  EXPECT_EQ(m.Totals("", kIngress), ShapingTotals());
}

TEST(ShapingMeter, RatesAreOfPayloadASecond) {
  Meter m;
  const size_t led = m.Add(Flow(1, kIngress, 5));
  const size_t counted = m.Add(Flow(2));
  m.Read();
  m.Pass(led, 30 * kMbit);
  m.Offer(counted, 8 * kMbit);
  m.Read(absl::Seconds(2));
  EXPECT_THAT(m.Use(led).passed, IsAbout(15 * kMbit));
  EXPECT_THAT(m.Use(led).offered, IsAbout(15 * kMbit));
  EXPECT_THAT(m.Use(counted).passed, IsAbout(4 * kMbit));
  EXPECT_EQ(m.Use(led).throttled, BitRate());
  EXPECT_FALSE(m.Use(led).held_back);
  EXPECT_THAT(m.Totals("", kIngress).passed, IsAbout(38 * kMbit / 8));
  EXPECT_EQ(m.Totals("", kIngress).throttled_for, absl::ZeroDuration());
}

TEST(ShapingMeter, FlowAtEaseCanUseALittleMore) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Read();
  m.Pass(flow, 10 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(flow).demand, IsAbout(11 * kMbit));
  EXPECT_THAT(m.meter.Demand().at(m.plan.flows[flow].key), IsAbout(11 * kMbit));
}

TEST(ShapingMeter, FlowThatIsHeldBackCanUseMuchMore) {
  struct {
    const char* why;
    uint64_t passed;
    uint64_t dropped;
    uint32_t backlog;
  } const cases[] = {{"dropped", 50 * kMbit, kMbit / 10, 0},
                     {"waits", 50 * kMbit, 0, 80'000},
                     {"fills its ceil", 100 * kMbit, 0, 0}};
  for (const auto& c : cases) {
    Meter m;
    const size_t flow = m.Add(Flow(1, kIngress, 5), 100 * kMbit);
    m.Read();
    m.Pass(flow, c.passed);
    if (c.dropped != 0) m.Drop(flow, c.dropped);
    m.reading.classes[flow].backlog = ByteCount(c.backlog);
    m.Read();
    EXPECT_TRUE(m.Use(flow).held_back) << c.why;
    EXPECT_THAT(m.Use(flow).demand, IsAbout(4 * c.passed)) << c.why;
    EXPECT_THAT(m.Use(flow).throttled, IsAbout(c.dropped)) << c.why;
    EXPECT_EQ(m.Totals("", kIngress).throttled_for, absl::Seconds(1)) << c.why;
  }
}

TEST(ShapingMeter, FlowThatHasBeenLetGoIsLeftWhatItCanGrowInto) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5), 100 * kMbit);
  m.Read();
  m.Pass(flow, 10 * kMbit);
  m.reading.classes[flow].backlog = ByteCount(30'000);
  m.Read();
  EXPECT_THAT(m.Use(flow).demand, IsAbout(40 * kMbit));
  m.reading.classes[flow].backlog = ByteCount(0);
  m.Pass(flow, 16 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(flow).demand, IsAbout(23'600'000)) << "and not 40 any more";
  m.Pass(flow, 16 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(flow).demand, IsAbout(17'600'000)) << "it has all it wants";
}

TEST(ShapingMeter, WhatHasOnlyJustComeIsNotHeldBack) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Read();
  m.Pass(flow, 2 * kMbit);
  m.reading.classes[flow].backlog = ByteCount(2000);  // These are some 8 ms.
  m.Read();
  EXPECT_FALSE(m.Use(flow).held_back);
  EXPECT_THAT(m.Use(flow).demand, IsAbout(kHeadroom * 2 * kMbit));
  m.Pass(flow, 2 * kMbit);
  m.reading.classes[flow].backlog = ByteCount(3000);
  m.Read();
  EXPECT_TRUE(m.Use(flow).held_back);
}

TEST(ShapingMeter, HeldBackTooHardToGrowStillAsksForSomething) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Read();
  m.Drop(flow, 1000);
  m.Read();
  EXPECT_EQ(m.Use(flow).passed, BitRate());
  EXPECT_EQ(m.Use(flow).demand, kLeastWanted);
}

TEST(ShapingMeter, NobodyWantsMoreThanThePodsOwnLimit) {
  Meter m;
  PlannedFlow limited = Flow(1, kIngress, 5);
  limited.limit = BitRate(10 * kMbit);
  const size_t flow = m.Add(limited, 10 * kMbit);
  m.Read();
  m.Pass(flow, 10 * kMbit);
  m.Drop(flow, 20 * kMbit);
  m.Read();
  EXPECT_EQ(m.Use(flow).demand, BitRate(10 * kMbit));
}

TEST(ShapingMeter, WhatAFlowHadIsFreeWithinSeconds) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Read();
  m.Pass(flow, 10 * kMbit);
  m.Read();
  m.Read(absl::Seconds(1));
  EXPECT_THAT(m.Use(flow).demand, IsAbout(11 * kMbit)) << "it may have paused";
  m.Read(absl::Seconds(1));
  EXPECT_EQ(m.Use(flow).demand, BitRate());
  EXPECT_THAT(m.meter.Demand(), IsEmpty());
}

TEST(ShapingMeter, TotalsThatWentBackCountFromNothing) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Pass(flow, 900 * kMbit);
  m.reading.classes[flow].dropped_packets = 70;
  m.Read();
  m.reading.flows[flow].offered = {};
  m.reading.classes[flow].sent = {};
  m.reading.classes[flow].dropped_packets = 2;
  m.Pass(flow, 5 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(flow).passed, IsAbout(5 * kMbit));
  EXPECT_THAT(m.Use(flow).offered, IsAbout(5 * kMbit));
  EXPECT_EQ(m.Totals("", kIngress).dropped_packets, 2U);
}

TEST(ShapingMeter, ClassWithAnotherNumberIsAnotherClass) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Pass(flow, kMbit);
  m.Read();
  m.plan.flows[flow].class_id = 6;
  m.plan.tables.trees[0][0].id = 6;
  m.reading.classes[flow] = {.direction = kIngress, .id = 6};
  m.Pass(flow, 5 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(flow).passed, IsAbout(5 * kMbit));
}

TEST(ShapingMeter, NewFlowCountsFromTheStartAndOneThatEndsIsForgotten) {
  Meter m;
  m.Read();
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Pass(flow, 3 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(flow).passed, IsAbout(3 * kMbit));
  m.plan = {};
  m.Read();
  EXPECT_THAT(m.meter.flows(), IsEmpty());
  EXPECT_THAT(m.Totals("", kIngress).passed, IsAbout(3 * kMbit / 8)) << "totals stay";
}

TEST(ShapingMeter, FlowWithoutAReadingDoesNothing) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Pass(flow, kMbit);
  m.Read();
  const ShapingReading kept = m.reading;
  m.reading = {};
  m.Read();
  EXPECT_EQ(m.Use(flow).passed, BitRate());
  m.reading = kept;
  m.Pass(flow, 2 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(flow).passed, IsAbout(2 * kMbit)) << "not all that was ever counted";
}

TEST(ShapingMeter, ReadingThatIsNotLaterIsPassedOver) {
  Meter m;
  const size_t flow = m.Add(Flow(1, kIngress, 5));
  m.Read();
  m.Pass(flow, kMbit);
  m.Read();
  m.Pass(flow, 9 * kMbit);
  m.Read(absl::ZeroDuration());
  m.Read(-absl::Seconds(5));
  EXPECT_THAT(m.Use(flow).passed, IsAbout(kMbit));
}

TEST(ShapingMeter, InShadowWhatIsAboveThePodsBoundWouldBeThrottled) {
  Meter m;
  PlannedFlow shadowed = Flow(1);
  shadowed.shadow = BitRate(10 * kMbit);
  const size_t flow = m.Add(shadowed);
  m.Read();
  m.Offer(flow, 25 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(flow).throttled, IsAbout(15 * kMbit));
  EXPECT_THAT(m.Use(flow).passed, IsAbout(25 * kMbit));
  EXPECT_FALSE(m.Use(flow).held_back);
  EXPECT_THAT(m.Use(flow).demand, IsAbout(27.5 * kMbit)) << "nothing keeps it from using that";
  EXPECT_THAT(m.Totals("", kIngress).throttled, IsAbout(15 * kMbit / 8));
  EXPECT_EQ(m.Totals("", kIngress).throttled_for, absl::Seconds(1));
  m.Offer(flow, 9 * kMbit);
  m.Read();
  EXPECT_EQ(m.Use(flow).throttled, BitRate());
}

TEST(ShapingMeter, InShadowATeamsExcessIsSpreadOverItsFlows) {
  Meter m;
  const size_t large = m.Add(OfTeam(Flow(1), "vision", true));
  const size_t small = m.Add(OfTeam(Flow(2), "vision", true));
  const size_t other = m.Add(OfTeam(Flow(3), "*", true));
  m.grants = {Grant("vision", 20 * kMbit), Grant("*", 20 * kMbit)};
  m.plan.shadow_bounds = {{.rate = BitRate(20 * kMbit), .flows = {large, small}},
                          {.rate = BitRate(20 * kMbit), .flows = {other}}};
  m.Read();
  m.Offer(large, 30 * kMbit);
  m.Offer(small, 10 * kMbit);
  m.Offer(other, 19 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(large).throttled, IsAbout(15 * kMbit));
  EXPECT_THAT(m.Use(small).throttled, IsAbout(5 * kMbit));
  EXPECT_EQ(m.Use(other).throttled, BitRate());
  EXPECT_TRUE(m.meter.newly_held_back());
  const auto uses = m.meter.Uses(m.plan, m.grants);
  ASSERT_THAT(uses, SizeIs(2));
  EXPECT_THAT(uses[0].throttled, IsAbout(20 * kMbit));
  EXPECT_THAT(uses[0].demand, IsAbout(44 * kMbit)) << "what it uses, and a little more";
}

TEST(ShapingMeter, PodsBoundComesBeforeTheTeams) {
  Meter m;
  PlannedFlow bounded = OfTeam(Flow(1), "vision", true);
  bounded.shadow = BitRate(10 * kMbit);
  const size_t one = m.Add(bounded);
  const size_t other = m.Add(OfTeam(Flow(2), "vision", true));
  m.plan.shadow_bounds = {{.rate = BitRate(15 * kMbit), .flows = {one, other}}};
  m.Read();
  m.Offer(one, 100 * kMbit);
  m.Offer(other, 10 * kMbit);
  m.Read();
  EXPECT_THAT(m.Use(one).throttled, IsAbout(92.5 * kMbit));
  EXPECT_THAT(m.Use(other).throttled, IsAbout(2.5 * kMbit));
}

TEST(ShapingMeter, FlowsThatTogetherFillTheGrantAreHeldBack) {
  Meter m;
  const size_t one = m.Add(OfTeam(Flow(1, kIngress, 5), "vision"));
  const size_t other = m.Add(OfTeam(Flow(2, kIngress, 6), "vision"));
  const size_t tiny = m.Add(OfTeam(Flow(3, kIngress, 7), "vision"));
  m.grants = {Grant("vision", 100 * kMbit)};
  m.Read();
  m.Pass(one, 45 * kMbit);
  m.Pass(other, 55 * kMbit);
  m.Pass(tiny, kMbit / 10);
  m.Read();
  EXPECT_TRUE(m.Use(one).held_back);
  EXPECT_TRUE(m.Use(other).held_back);
  EXPECT_FALSE(m.Use(tiny).held_back);
  EXPECT_TRUE(m.meter.newly_held_back());
  EXPECT_THAT(m.Use(one).demand, IsAbout(180 * kMbit));
}

TEST(ShapingMeter, TeamIsNewlyHeldBackOnce) {
  Meter m;
  const size_t flow = m.Add(OfTeam(Flow(1, kIngress, 5), "vision"), 100 * kMbit);
  m.grants = {Grant("vision", 100 * kMbit)};
  m.Read();
  const auto newly = [&](uint64_t passed) {
    m.Pass(flow, passed);
    m.Read();
    return m.meter.newly_held_back();
  };
  EXPECT_FALSE(newly(10 * kMbit));
  EXPECT_TRUE(newly(100 * kMbit));
  EXPECT_FALSE(newly(100 * kMbit));
  EXPECT_FALSE(newly(10 * kMbit));
  EXPECT_TRUE(newly(100 * kMbit));
}

TEST(ShapingMeter, WhoIsHeldBackByItsOwnLimitNeedsNoLargerGrant) {
  Meter m;
  PlannedFlow limited = OfTeam(Flow(1, kIngress, 5), "vision");
  limited.limit = BitRate(10 * kMbit);
  const size_t flow = m.Add(limited, 10 * kMbit);
  m.grants = {Grant("vision", 100 * kMbit)};
  m.Read();
  m.Pass(flow, 10 * kMbit);
  m.Drop(flow, kMbit);
  m.Read();
  EXPECT_TRUE(m.Use(flow).held_back);
  EXPECT_FALSE(m.meter.newly_held_back());
}

TEST(ShapingMeter, UsesAreOfEachGrantWithConnectionsFromWhereTheyAreOpened) {
  Meter m;
  const size_t down = m.Add(OfTeam(Flow(1, kIngress, 5), "vision"));
  const size_t up = m.Add(Flow(1, kEgress));
  m.Add(OfTeam(Flow(2, kIngress, 6), "*"));
  m.grants = {Grant("vision", 200 * kMbit, 50), Grant("*", kMbit), Grant("speech", kMbit)};
  m.grants[0].rate = BitRate(300 * kMbit);  // The rate is that of the floor.
  m.Read();
  m.Pass(down, 20 * kMbit);
  m.reading.flows[up].connections = 84;
  m.reading.flows[up].refused_connections = 7;
  m.Read(absl::Seconds(2));
  const auto uses = m.meter.Uses(m.plan, m.grants);
  ASSERT_THAT(uses, SizeIs(3));
  EXPECT_EQ(uses[0].budget, "down");
  EXPECT_EQ(uses[0].team, "vision");
  EXPECT_THAT(uses[0].usage, IsAbout(10 * kMbit));
  EXPECT_THAT(uses[0].demand, IsAbout(11 * kMbit));
  EXPECT_EQ(uses[0].held, BitRate(200 * kMbit));
  EXPECT_EQ(uses[0].connections, 42U);
  EXPECT_EQ(uses[0].refused_connections, 4U);
  EXPECT_EQ(uses[0].held_connections, 50U);
  EXPECT_EQ(uses[1], (node_api::BudgetUse{.budget = "down", .team = "*", .held = BitRate(kMbit)}));
  EXPECT_EQ(uses[2],
            (node_api::BudgetUse{.budget = "down", .team = "speech", .held = BitRate(kMbit)}));
}

TEST(ShapingMeter, TotalsAreByBudgetAndDirection) {
  Meter m;
  const size_t down = m.Add(OfTeam(Flow(1, kIngress, 5), "vision"));
  const size_t up = m.Add(Flow(1, kEgress, 5));
  m.Read();
  m.Pass(down, 8 * kMbit);
  m.Pass(up, 16 * kMbit);
  m.Drop(up, kMbit);
  m.Read();
  EXPECT_THAT(m.Totals("down", kIngress).passed, IsAbout(kMbit));
  EXPECT_EQ(m.Totals("down", kIngress).dropped_packets, 0U);
  EXPECT_THAT(m.Totals("", kEgress).passed, IsAbout(2 * kMbit));
  EXPECT_GT(m.Totals("", kEgress).dropped_packets, 0U);
  EXPECT_THAT(m.Totals("", kEgress).throttled, IsAbout(kMbit / 8));
  EXPECT_THAT(m.meter.totals(), SizeIs(2));
}

}  // namespace
}  // namespace spoke::netagent
