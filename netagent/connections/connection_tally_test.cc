#include "netagent/connections/connection_tally.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr uint8_t kTcp = 6;
constexpr ip::Address kPod = ip::Address::V4(0x0A010005);
constexpr ip::Address kOther = ip::Address::V4(0x0A010006);
constexpr ip::Address kNode = ip::Address::V4(0x0A000004);

ip::Address Far(uint32_t number) { return ip::Address::V4(0xC0000200 + number); }

ConnectionTally TallyOfTwo() {
  return ConnectionTally({{.link = 7, .addresses = {kPod}}, {.link = 8, .addresses = {kOther}}});
}

TEST(ConnectionTally, CountsForWhoBeganAConnection) {
  ConnectionTally tally = TallyOfTwo();
  tally.Add({kPod, kOther, kOther, kPod}, kTcp, 80);
  tally.Add({Far(1), kPod, kPod, Far(1)}, kTcp, 80);
  EXPECT_EQ(tally.seen(), 2U);
  EXPECT_EQ(tally.pods()[0].connections, 1U);
  EXPECT_EQ(tally.pods()[1].connections, 0U);
  EXPECT_EQ(tally.pods()[0].translated_ports, 0U);
}

TEST(ConnectionTally, ATranslatedOneHoldsAPortTowardsItsTarget) {
  ConnectionTally tally = TallyOfTwo();
  for (int i = 0; i < 3; ++i) tally.Add({kPod, Far(1), Far(1), kNode}, kTcp, 443);
  tally.Add({kPod, Far(1), Far(1), kNode}, kTcp, 80);
  // The target is where the connection leads, not what was asked for.
  tally.Add({kPod, Far(9), Far(2), kNode}, kTcp, 8443);
  EXPECT_EQ(tally.pods()[0].translated_ports, 5U);
  EXPECT_THAT(tally.pods()[0].targets,
              testing::UnorderedElementsAre(PodConnections::AtTarget{{Far(1), kTcp, 443}, 3},
                                            PodConnections::AtTarget{{Far(1), kTcp, 80}, 1},
                                            PodConnections::AtTarget{{Far(2), kTcp, 8443}, 1}));
}

TEST(ConnectionTally, AnewBeginsAtNothing) {
  ConnectionTally tally = TallyOfTwo();
  tally.Add({kPod, Far(1), Far(1), kNode}, kTcp, 443);
  tally.Reset();
  EXPECT_EQ(tally.seen(), 0U);
  EXPECT_EQ(tally.pods(), TallyOfTwo().pods());
}

// There may be any number of targets besides, in any order.
TEST(ConnectionTally, ManyTargetsHideNone) {
  constexpr uint32_t kMany = 3'000;
  constexpr uint64_t kAtOne = 1'000;
  for (const bool first : {true, false}) {
    ConnectionTally tally = TallyOfTwo();
    const auto add_many = [&] {
      for (uint32_t i = 0; i < kMany; ++i) tally.Add({kPod, Far(i), Far(i), kNode}, kTcp, 443);
    };
    if (!first) add_many();
    for (uint64_t i = 0; i < kAtOne; ++i) tally.Add({kPod, Far(1), Far(1), kNode}, kTcp, 80);
    if (first) add_many();
    const PodConnections& pod = tally.pods()[0];
    EXPECT_LE(pod.targets.size(), ConnectionTally::kTargets);
    const auto at = std::find_if(pod.targets.begin(), pod.targets.end(),
                                 [](const auto& t) { return t.target.port == 80; });
    ASSERT_NE(at, pod.targets.end());
    EXPECT_LE(at->connections, kAtOne);
    EXPECT_GE(at->connections, kAtOne - pod.translated_ports / (ConnectionTally::kTargets + 1));
  }
}

}  // namespace
}  // namespace spoke::netagent
