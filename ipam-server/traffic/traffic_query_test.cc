#include "ipam-server/traffic/traffic_query.h"

#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'000);

class TrafficQueryTest : public testing::Test {
 protected:
  TrafficQueryTest() {
    sums_.SetTeams({{"a", "vision"}});
    sums_.Take({.name = "n1", .vm_id = "vm"},
               {.epoch = kNow,
                .namespaces = {{"a", {{"internet", {10, 20}}, {"loopback", {1, 1}}}},
                               {"b", {{"cluster", {5, 6}}}},
                               {"c", {{"group:models", {7, 8}}, {"hub", {1, 1}}}}},
                .pods = {{"a", "p", {{"internet", {3, 4}}}}, {"b", "q", {{"cluster", {5, 6}}}}}},
               kNow);
  }

  std::vector<std::string> Query(v1::GetTrafficRequest::By by, const std::string& of_class = "",
                                 const std::string& pod_namespace = "") {
    v1::GetTrafficRequest request;
    request.set_by(by);
    request.set_traffic_class(of_class);
    request.set_pod_namespace(pod_namespace);
    const auto answer = QueryTraffic(sums_, kNow, request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->now_unix_ms(), absl::ToUnixMillis(kNow));
    EXPECT_EQ(answer->nodes_reporting(), 1U);
    std::vector<std::string> lines;
    for (const v1::TrafficEntry& entry : answer->entries()) {
      lines.push_back(fmt::format("{}{}{} {} {} {}", entry.node(), entry.node().empty() ? "" : " ",
                                  entry.name(), entry.traffic_class(), entry.sent(),
                                  entry.received()));
    }
    return lines;
  }

  TrafficSums sums_{kNow};
};

TEST_F(TrafficQueryTest, SaysAllClassesButLoopback) {
  EXPECT_THAT(Query(v1::GetTrafficRequest::NAMESPACE),
              ElementsAre("a internet 10 20", "b cluster 5 6", "c group:models 7 8", "c hub 1 1"));
  EXPECT_THAT(Query(v1::GetTrafficRequest::TEAM),
              ElementsAre("_none cluster 5 6", "_none group:models 7 8", "_none hub 1 1",
                          "vision internet 10 20"));
  EXPECT_THAT(
      Query(v1::GetTrafficRequest::NODE),
      ElementsAre("n1 cluster 5 6", "n1 group:models 7 8", "n1 hub 1 1", "n1 internet 10 20"));
  EXPECT_THAT(Query(v1::GetTrafficRequest::POD),
              ElementsAre("n1 a/p internet 3 4", "n1 b/q cluster 5 6"));
}

TEST_F(TrafficQueryTest, SaysOneClassOrOneNamespace) {
  EXPECT_THAT(Query(v1::GetTrafficRequest::NAMESPACE, "loopback"), ElementsAre("a loopback 1 1"));
  EXPECT_THAT(Query(v1::GetTrafficRequest::NAMESPACE, "storage"), IsEmpty());
  EXPECT_THAT(Query(v1::GetTrafficRequest::NAMESPACE, "group:other"), IsEmpty());
  EXPECT_THAT(Query(v1::GetTrafficRequest::POD, "", "b"), ElementsAre("n1 b/q cluster 5 6"));
}

TEST_F(TrafficQueryTest, WhatLeavesTheClusterIsTheInternetWithItsGroups) {
  EXPECT_THAT(Query(v1::GetTrafficRequest::NAMESPACE, "external"),
              ElementsAre("a internet 10 20", "c group:models 7 8"));
}

TEST_F(TrafficQueryTest, AClassThatNoNodeHasIsNotOneWithoutTraffic) {
  v1::GetTrafficRequest request;
  request.set_by(v1::GetTrafficRequest::NAMESPACE);
  request.set_traffic_class("bogus");
  const absl::Status status = QueryTraffic(sums_, kNow, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              testing::HasSubstr("there is no traffic class \"bogus\"; there are"));
}

TEST_F(TrafficQueryTest, IsToldByWhat) {
  EXPECT_EQ(QueryTraffic(sums_, kNow, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace spoke::ipam
