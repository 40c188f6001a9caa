// Tests that what pods have counted stays when they have gone, and nobody waits for it.
#include "gtest/gtest.h"
#include "netagent/traffic/traffic_fixture.h"

namespace spoke::netagent {
namespace {

using GonePodsTest = TrafficTest;

TEST_F(GonePodsTest, APodThatHasGoneIsShownForTwoReadsAndNothingOfItIsLost) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  Count("sent4", ByClass("10.0.1.7", kInternet), 5);
  Count("cluster_sent4", ByLink(7, "10.0.1.7"), 100);
  ASSERT_TRUE(traffic_->Detach("spka").ok());
  for (int read = 0; read < TrafficLedger::kReadsAfterEnd; ++read) {
    clock_.Advance(Traffic::kLook);
    traffic_->Tick();
    const TrafficTotals totals = Read();
    ASSERT_EQ(totals.pods.size(), 1U);
    EXPECT_TRUE(totals.pods[0].ended);
    EXPECT_EQ(totals.namespaces.at("web").at("internet").sent, 5U);
  }
  clock_.Advance(Traffic::kLook);
  traffic_->Tick();
  const TrafficTotals totals = Read();
  EXPECT_TRUE(totals.pods.empty());
  EXPECT_EQ(totals.namespaces.at("web").at("internet").sent, 5U);
  EXPECT_EQ(totals.namespaces.at("web").at("cluster").sent, 100U);
  EXPECT_TRUE(tables_.ReadSet(kSpokeTable, "sent4")->empty());
}

TEST_F(GonePodsTest, APodThatNobodyReadsIsShownForFiveMinutes) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  Count("sent4", ByClass("10.0.1.7", kInternet), 5);
  ASSERT_TRUE(traffic_->Detach("spka").ok());
  clock_.Advance(TrafficLedger::kKeptAfterEnd);
  traffic_->Tick();
  const TrafficTotals totals = Read();
  EXPECT_TRUE(totals.pods.empty());
  EXPECT_EQ(totals.namespaces.at("web").at("internet").sent, 5U);
}

TEST_F(GonePodsTest, PodsThatHaveGoneAreSettledTogetherBeforeTheirAddressesAreUsedAgain) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
  Count("sent4", ByClass("10.0.1.7", kInternet), 5);
  Count("sent4", ByClass("10.0.1.8", kInternet), 6);
  ASSERT_TRUE(traffic_->Detach("spka").ok());
  EXPECT_EQ(traffic_->NextWake(), clock_.Now() + TrafficLedger::kSettleAfter);
  clock_.Advance(TrafficLedger::kSettleAfter / 2);
  ASSERT_TRUE(traffic_->Detach("spkb").ok());
  traffic_->Tick();
  EXPECT_FALSE(tables_.ReadSet(kSpokeTable, "sent4")->empty());
  clock_.Advance(TrafficLedger::kSettleAfter / 2);
  traffic_->Tick();
  EXPECT_TRUE(tables_.ReadSet(kSpokeTable, "sent4")->empty());
  // An ADD that had to settle them would have to read.
  tables_.FailReads(absl::UnavailableError("busy"));
  ASSERT_TRUE(traffic_->Attach(Pod("c", 9, "10.0.1.7", "db")).ok());
  tables_.FailReads(absl::OkStatus());
  const TrafficTotals totals = Read();
  ASSERT_EQ(totals.pods.size(), 3U);
  EXPECT_TRUE(totals.pods[1].ended);
  EXPECT_EQ(totals.pods[1].volumes.at("internet").sent, 5U);
  EXPECT_EQ(totals.namespaces.at("web").at("internet").sent, 11U);
  EXPECT_EQ(totals.node.at("forward").at("internet").sent, 11U);
}

TEST_F(GonePodsTest, SettlingThatFailsIsTriedAgainLater) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  Count("sent4", ByClass("10.0.1.7", kInternet), 5);
  ASSERT_TRUE(traffic_->Detach("spka").ok());
  clock_.Advance(TrafficLedger::kSettleAfter);
  tables_.FailReads(absl::UnavailableError("busy"));
  traffic_->Tick();
  tables_.FailReads(absl::OkStatus());
  EXPECT_FALSE(tables_.ReadSet(kSpokeTable, "sent4")->empty());
  EXPECT_GT(traffic_->NextWake(), clock_.Now());
  clock_.Advance(Traffic::kLook);
  traffic_->Tick();
  EXPECT_TRUE(tables_.ReadSet(kSpokeTable, "sent4")->empty());
  EXPECT_EQ(Read().namespaces.at("web").at("internet").sent, 5U);
}

TEST_F(GonePodsTest, AnAddressUsedAgainAtOnceIsCountedForEachPodAlone) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  Count("sent4", ByClass("10.0.1.7", kInternet), 5);
  Count("cluster_received4", nft::NetworkOrder(A("10.0.1.7")), 9);
  ASSERT_TRUE(traffic_->Detach("spka").ok());
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.7", "db")).ok());
  Count("sent4", ByClass("10.0.1.7", kInternet), 11);
  const TrafficTotals totals = Read();
  EXPECT_EQ(totals.namespaces.at("web").at("internet").sent, 5U);
  EXPECT_EQ(totals.namespaces.at("web").at("cluster").received, 9U);
  EXPECT_EQ(totals.namespaces.at("db").at("internet").sent, 11U);
  EXPECT_FALSE(totals.namespaces.at("db").contains("cluster"));
}

}  // namespace
}  // namespace spoke::netagent
