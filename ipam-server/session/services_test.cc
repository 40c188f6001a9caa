#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/session/testing/services_for_test.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

TEST_F(ServicesTest, AnAgentGetsAddressesReportsAnAssignmentAndTheOperatorSeesIt) {
  grpc::ClientContext context;
  const auto stream = node_stub_->Connect(&context);
  ASSERT_TRUE(stream->Write(HelloMessage()));
  const auto addresses = ReadAddresses(*stream, 2);
  ASSERT_EQ(addresses.size(), 2U);

  v1::AgentMessage report;
  report.mutable_report()->set_sequence(1);
  v1::Assignment& assignment = *report.mutable_report()->add_in_use();
  assignment.set_address(addresses[0]);
  assignment.set_container_id("c0ffee");
  assignment.set_ifname("eth0");
  assignment.set_pod_name("pod-a");
  assignment.set_generation(1);
  ASSERT_TRUE(stream->Write(report));
  v1::ServerMessage answer;
  while (stream->Read(&answer) && !answer.has_report_ack()) {
  }
  EXPECT_EQ(answer.report_ack().sequence(), 1U);

  const auto in_use = ListAddresses("in_use");
  ASSERT_EQ(in_use.size(), 1U);
  EXPECT_EQ(in_use[0].pod_name(), "pod-a");
  EXPECT_EQ(in_use[0].node(), "node1");

  grpc::ClientContext show;
  v1::GetAddressRequest request;
  request.set_address(in_use[0].address());
  v1::AddressInfo info;
  ASSERT_TRUE(admin_stub_->GetAddress(&show, request, &info).ok());
  EXPECT_EQ(info.state(), "in_use");
  context.TryCancel();
}

TEST_F(ServicesTest, AnAgentWhosePodsWaitIsToldHowItStandsAndGetsWhatTheyNeed) {
  grpc::ClientContext context;
  const auto stream = node_stub_->Connect(&context);
  ASSERT_TRUE(stream->Write(HelloMessage()));
  ASSERT_EQ(ReadAddresses(*stream, 2).size(), 2U);
  v1::AgentMessage demand;
  v1::Demand::Waiting& waiting = *demand.mutable_demand()->add_waiting();
  waiting.set_pod_namespace("web");
  waiting.set_pods(4);
  ASSERT_TRUE(stream->Write(demand));
  v1::ServerMessage answer;
  while (stream->Read(&answer) && !answer.has_forecast()) {
  }
  EXPECT_EQ(answer.forecast().reason(), "asked the cloud for 4 addresses of pool default");
  EXPECT_EQ(ReadAddresses(*stream, 4).size(), 4U);

  grpc::ClientContext explain;
  v1::ExplainRequest request;
  request.set_node("node1");
  v1::ExplainResponse said;
  ASSERT_TRUE(admin_stub_->Explain(&explain, request, &said).ok());
  EXPECT_THAT(said.details(), testing::Contains("4 pods wait there for addresses"));
  context.TryCancel();
}

TEST_F(ServicesTest, OperatorsSeePoolsNodesAndStatus) {
  grpc::ClientContext context;
  const auto stream = node_stub_->Connect(&context);
  ASSERT_TRUE(stream->Write(HelloMessage()));
  ReadAddresses(*stream, 2);

  grpc::ClientContext status_context;
  v1::GetStatusResponse status;
  ASSERT_TRUE(admin_stub_->GetStatus(&status_context, {}, &status).ok());
  EXPECT_EQ(status.nodes_connected(), 1U);
  EXPECT_EQ(status.addresses_attached(), 2U);

  grpc::ClientContext pools_context;
  v1::ListPoolsResponse pools;
  ASSERT_TRUE(admin_stub_->ListPools(&pools_context, {}, &pools).ok());
  EXPECT_EQ(pools.pools(0).available(), 2U);
  EXPECT_EQ(pools.pools(0).free(), 249U);

  grpc::ClientContext nodes_context;
  const auto reader = admin_stub_->ListNodes(&nodes_context, {});
  v1::ListNodesResponse nodes;
  ASSERT_TRUE(reader->Read(&nodes));
  EXPECT_EQ(nodes.nodes(0).name(), "node1");
  EXPECT_TRUE(nodes.nodes(0).connected());
  context.TryCancel();
}

TEST_F(ServicesTest, AMalformedOrEarlyMessageEndsTheStreamWithTheReason) {
  const auto ends_with = [&](const v1::AgentMessage& message) {
    grpc::ClientContext context;
    const auto stream = node_stub_->Connect(&context);
    stream->Write(message);
    v1::ServerMessage ignored;
    while (stream->Read(&ignored)) {
    }
    return stream->Finish();
  };
  v1::AgentMessage early;
  early.mutable_report()->set_sequence(1);
  EXPECT_THAT(ends_with(early).error_message(), HasSubstr("first message must be Hello"));
  EXPECT_EQ(ends_with(HelloMessage("a b")).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(ListAddresses().empty());
}

TEST_F(ServicesTest, ACallBeginsWithTheServersTimeWhetherAnythingIsSaidOrNot) {
  const absl::Time before = absl::Now();
  grpc::ClientContext context;
  const auto stream = node_stub_->Connect(&context);
  stream->WaitForInitialMetadata();
  const auto& metadata = context.GetServerInitialMetadata();
  const auto found = metadata.find("spoke-time-ms");
  ASSERT_NE(found, metadata.end());
  const absl::Time said =
      absl::FromUnixMillis(std::stoll(std::string(found->second.data(), found->second.size())));
  EXPECT_GE(said, before - absl::Milliseconds(1));
  EXPECT_LE(said, absl::Now());
  // Who only asks for it is no session.
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  grpc::ClientContext status_context;
  v1::GetStatusResponse status;
  ASSERT_TRUE(admin_stub_->GetStatus(&status_context, {}, &status).ok());
  EXPECT_EQ(status.nodes_connected(), 0U);
  EXPECT_EQ(log_.Count("agent_refused"), 0);
}

TEST_F(ServicesTest, AgentsAreSentAwayWhileAnotherServerMayLead) {
  const auto end_of = [](Stream& stream) {
    v1::ServerMessage ignored;
    while (stream.Read(&ignored)) {
    }
    return stream.Finish();
  };
  grpc::ClientContext context;
  const auto stream = node_stub_->Connect(&context);
  stream->Write(HelloMessage());
  ASSERT_EQ(ReadAddresses(*stream, 2).size(), 2U);
  leads_ = false;
  const grpc::Status ended = end_of(*stream);
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(ended.error_message(), HasSubstr("ask the next"));
  {
    grpc::ClientContext refused;
    const auto late = node_stub_->Connect(&refused);
    EXPECT_EQ(end_of(*late).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  leads_ = true;
  grpc::ClientContext again;
  const auto back = node_stub_->Connect(&again);
  back->Write(HelloMessage());
  EXPECT_EQ(ReadAddresses(*back, 2).size(), 2U);
}

TEST_F(ServicesTest, AskingForWhatIsNotThereSaysSo) {
  const auto ask = [&](const std::string& address) {
    grpc::ClientContext context;
    v1::GetAddressRequest request;
    request.set_address(address);
    v1::AddressInfo info;
    grpc::Status status = admin_stub_->GetAddress(&context, request, &info);
    return std::pair(status, info.state());
  };
  EXPECT_EQ(ask("nonsense").first.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ask("192.0.2.1").first.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ask("10.1.0.9").second, "free");
  EXPECT_EQ(ask("10.1.0.0").second, "excluded");
}

TEST_F(ServicesTest, AnAgentThatSaysTooMuchIsRefusedAndAnOperatorSeesWhoAndWhat) {
  grpc::ClientContext context;
  const auto stream = node_stub_->Connect(&context);
  ASSERT_TRUE(stream->Write(HelloMessage()));
  ASSERT_EQ(ReadAddresses(*stream, 2).size(), 2U);
  v1::AgentMessage flood;
  for (int i = 0; i < 9000; ++i) {
    flood.mutable_report()->add_cooled(std::string("\x0a\x01\x00\x04", 4));
  }
  stream->Write(flood);
  v1::ServerMessage ignored;
  while (stream->Read(&ignored)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "node node1: cooled has 9000 entries, and 8192 at most are taken");
  while (log_.Count("agent_refused") == 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(ListAddresses().size(), 2U) << "its node keeps what it has";
}

}  // namespace
}  // namespace spoke::ipam
