// What operators are told of traffic, and of pods that wait.
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/admin/testing/admin_fixture.h"

namespace spoke::ipam {
namespace {

TEST_F(AdminTest, TrafficIsSummedByTeamFromTheMomentOneIsApplied) {
  ConnectNode();
  ASSERT_TRUE(ApplyYaml("apiVersion: spoke/v1\nkind: Team\nmetadata: {name: vision}\nspec: "
                        "{namespaces: [web]}\n")
                  .ok());
  v1::AgentMessage message;
  v1::TrafficReport& report = *message.mutable_traffic();
  report.set_epoch_unix_ms(absl::ToUnixMillis(clock_.Now()));
  v1::TrafficReport::Namespace& web = *report.add_namespaces();
  web.set_name("web");
  v1::TrafficReport::Volume& volume = *web.add_volumes();
  volume.set_traffic_class("internet");
  volume.set_sent(10);
  volume.set_received(20);
  ASSERT_TRUE(stream_->Write(message));
  Assign(0);  // What follows on the stream is dealt with after it.
  v1::GetTrafficRequest request;
  request.set_by(v1::GetTrafficRequest::TEAM);
  v1::GetTrafficResponse answer;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetTraffic, request, answer).ok());
  ASSERT_EQ(answer.entries_size(), 1);
  EXPECT_EQ(answer.entries(0).name(), "vision");
  EXPECT_EQ(answer.entries(0).sent(), 10U);
  EXPECT_EQ(answer.entries(0).received(), 20U);
  EXPECT_EQ(answer.nodes_reporting(), 1U);
  clock_.Advance(absl::Minutes(1));
  volume.set_received(60'000'020);
  ASSERT_TRUE(stream_->Write(message));
  Assign(1);
  v1::GetTrafficCourseResponse course;
  ASSERT_TRUE(
      Ask(&v1::AdminService::Stub::GetTrafficCourse, v1::GetTrafficCourseRequest(), course).ok());
  ASSERT_EQ(course.lines_size(), 1);
  EXPECT_EQ(course.lines(0).name(), "web");
  EXPECT_THAT(course.lines(0).bits_per_second(), testing::ElementsAre(8e6));
  EXPECT_THAT(course.classes(), testing::ElementsAre("all", "external", "internet"));
}

TEST_F(AdminTest, StatusSaysHowManyPodsWait) {
  ConnectNode();
  v1::AgentMessage message;
  for (const auto& [name, pods] : {std::pair("team-a", 3U), std::pair("team-b", 1U)}) {
    v1::Demand::Waiting& waiting = *message.mutable_demand()->add_waiting();
    waiting.set_pod_namespace(name);
    waiting.set_pods(pods);
  }
  ASSERT_TRUE(stream_->Write(message));
  Assign(0);  // What follows on the stream is dealt with after it.
  v1::GetStatusResponse status;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetStatus, v1::GetStatusRequest(), status).ok());
  EXPECT_EQ(status.pods_waiting(), 4U);
  EXPECT_EQ(status.nodes_waiting(), 1U);
  v1::GetNodeRequest request;
  request.set_name("node1");
  v1::GetNodeResponse node;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetNode, request, node).ok());
  EXPECT_EQ(node.node().pods_waiting(), 4U);
  v1::ExplainRequest explain;
  explain.set_node("node1");
  v1::ExplainResponse said;
  ASSERT_TRUE(ExplainSubject(explain, said).ok());
  EXPECT_THAT(said.summary(), testing::StartsWith("pods wait on node node1"));
}

}  // namespace
}  // namespace spoke::ipam
