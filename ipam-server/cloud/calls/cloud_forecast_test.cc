#include "ipam-server/cloud/calls/cloud_forecast.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);

GroupPace Pace() {
  GroupPace group{.lanes = {}, .latency = absl::Seconds(20)};
  group.lanes.fill({.ready = 2, .per_second = 0.5, .open_from = kStart, .limit = "the limit"});
  return group;
}

ForecastInput Ask(CloudLane lane, int age) {
  return {.lane = lane, .since = kStart - absl::Seconds(age), .parked_for = ""};
}

TEST(CloudForecast, CountsWhatGoesBefore) {
  const std::vector<ForecastInput> requests = {
      Ask(CloudLane::kWarmUp, 1), Ask(CloudLane::kRelease, 99), Ask(CloudLane::kWarmUp, 5),
      Ask(CloudLane::kBlocking, 0)};
  const auto forecasts = ForecastRequests(requests, {Pace()}, kStart);
  EXPECT_EQ(forecasts[3].eta, kStart + absl::Seconds(20));
  EXPECT_EQ(forecasts[3].waits_for, "");
  EXPECT_EQ(forecasts[2].eta, kStart + absl::Seconds(20));
  EXPECT_EQ(forecasts[0].eta, kStart + absl::Seconds(22));
  EXPECT_EQ(forecasts[0].waits_for, "the limit");
  EXPECT_EQ(forecasts[1].eta, kStart + absl::Seconds(24));
}

TEST(CloudForecast, WhatIsSentOnlyWaitsForItsAnswer) {
  ForecastInput sent = Ask(CloudLane::kRelease, 0);
  sent.sent = true;
  const auto forecasts = ForecastRequests({sent}, {Pace()}, kStart);
  EXPECT_EQ(forecasts[0].eta, kStart + absl::Seconds(20));
  EXPECT_EQ(forecasts[0].waits_for, "Azure's answer");
}

TEST(CloudForecast, TheParkedSayWhyAndStandInNobodysWay) {
  ForecastInput parked = Ask(CloudLane::kBlocking, 50);
  parked.not_before = kStart + absl::Minutes(5);
  parked.parked_for = "subnet pods is full";
  std::vector<ForecastInput> requests(2, parked);
  requests.push_back(Ask(CloudLane::kBlocking, 1));
  const auto forecasts = ForecastRequests(requests, {Pace()}, kStart);
  EXPECT_EQ(forecasts[0].eta, kStart + absl::Minutes(5) + absl::Seconds(20));
  EXPECT_EQ(forecasts[0].waits_for, "subnet pods is full");
  EXPECT_EQ(forecasts[2].waits_for, "");
}

TEST(CloudForecast, GroupsDoNotWaitForEachOther) {
  std::vector<ForecastInput> requests(10, Ask(CloudLane::kWarmUp, 9));
  requests.push_back(Ask(CloudLane::kWarmUp, 1));
  requests.back().group = 1;
  const auto forecasts = ForecastRequests(requests, {Pace(), Pace()}, kStart);
  EXPECT_EQ(forecasts[9].eta, kStart + absl::Seconds(36));
  EXPECT_EQ(forecasts[10].eta, kStart + absl::Seconds(20));
}

}  // namespace
}  // namespace spoke::ipam
