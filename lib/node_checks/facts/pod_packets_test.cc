// Tests of what is compared: links that come, go and are made anew, and counters that begin again.
#include "lib/node_checks/facts/pod_packets.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PodPackets, TheFirstLookComparesNothing) {
  PodPacketLooks looks;
  EXPECT_THAT(looks.Add({{"spk1", 500}}, 400), IsEmpty());
}

TEST(PodPackets, WhatCameBetweenTwoLooksIsCompared) {
  PodPacketLooks looks;
  looks.Add({{"spk1", 500}, {"spk2", 10}}, 400);
  EXPECT_THAT(looks.Add({{"spk1", 700}, {"spk2", 11}}, 590), ElementsAre(PodPackets{201, 190}));
}

TEST(PodPackets, TheLastComparisonsAreKept) {
  PodPacketLooks looks;
  looks.Add({{"spk1", 0}}, 0);
  looks.Add({{"spk1", 1}}, 1);
  looks.Add({{"spk1", 3}}, 1);
  EXPECT_THAT(looks.Add({{"spk1", 6}}, 2), ElementsAre(PodPackets{2, 0}, PodPackets{3, 1}));
}

TEST(PodPackets, ALinkThatIsNewGoneOrMadeAnewIsNotGuessedAt) {
  PodPacketLooks looks;
  looks.Add({{"gone", 100}, {"anew", 100}, {"stays", 100}}, 0);
  EXPECT_THAT(looks.Add({{"anew", 60}, {"stays", 107}, {"new", 1000}}, 0),
              ElementsAre(PodPackets{7, 0}));
}

TEST(PodPackets, CountersThatBeganAgainStartTheComparisonAnew) {
  PodPacketLooks looks;
  looks.Add({{"spk1", 0}}, 1000);
  looks.Add({{"spk1", 10}}, 1010);
  EXPECT_THAT(looks.Add({{"spk1", 20}}, 5), IsEmpty());
  EXPECT_THAT(looks.Add({{"spk1", 30}}, 15), ElementsAre(PodPackets{10, 10}));
}

TEST(PodPackets, WithoutACountNothingIsCompared) {
  PodPacketLooks looks;
  looks.Add({{"spk1", 0}}, 7);
  EXPECT_THAT(looks.Add({{"spk1", 10}}, std::nullopt), IsEmpty());
  EXPECT_THAT(looks.Add({{"spk1", 20}}, 9), IsEmpty());
}

}  // namespace
}  // namespace spoke::node_checks
