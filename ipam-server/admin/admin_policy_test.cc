// What operators ask agents about policies, and tell them, by way of the server.
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/admin/testing/admin_fixture.h"

namespace spoke::ipam {
namespace {

using grpc::StatusCode;

TEST_F(AdminTest, AgentsAreAskedToVerifyPolicy) {
  v1::VerifyPolicyRequest request;
  const auto verify = [&](std::vector<v1::VerifyPolicyResponse>& answers) {
    grpc::ClientContext context;
    const auto reader = admin_stub_->VerifyPolicy(&context, request);
    v1::VerifyPolicyResponse answer;
    while (reader->Read(&answer)) answers.push_back(answer);
    return reader->Finish();
  };
  std::vector<v1::VerifyPolicyResponse> answers;
  EXPECT_EQ(verify(answers).error_code(), StatusCode::FAILED_PRECONDITION) << "nothing is promised";
  ASSERT_TRUE(ApplyYaml("apiVersion: spoke/v1\nkind: ClusterNetwork\nmetadata: {name: main}\nspec: "
                        "{hub: [10.8.0.0/16], peerSpoke: [10.32.0.0/16]}\n")
                  .ok());
  EXPECT_EQ(verify(answers).error_code(), StatusCode::FAILED_PRECONDITION) << "nobody is there";
  request.add_nodes("nowhere");
  EXPECT_EQ(verify(answers).error_code(), StatusCode::NOT_FOUND);
  request.clear_nodes();
  ConnectNode();
  std::thread agent([&] {
    v1::ServerMessage message;
    while (stream_->Read(&message) && !message.has_probe_request()) {
    }
    const v1::ProbeRequest& asked = message.probe_request();
    v1::AgentMessage said;
    said.mutable_probe_results()->set_id(asked.id());
    for (const auto& target : asked.targets()) {
      v1::ProbeResults::Result& result = *said.mutable_probe_results()->add_results();
      result.set_address(target.address());
      result.set_port(target.port());
      result.set_outcome(target.address() == "10.8.0.1" ? v1::ProbeResults::Result::REACHED
                                                        : v1::ProbeResults::Result::TIMED_OUT);
    }
    stream_->Write(said);
  });
  EXPECT_TRUE(verify(answers).ok());
  agent.join();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].node(), "node1");
  ASSERT_EQ(answers[0].probes_size(), 2);
  EXPECT_EQ(answers[0].probes(0).target(), "10.8.0.1");
  EXPECT_TRUE(answers[0].probes(0).reached());
  EXPECT_EQ(answers[0].probes(1).target(), "10.32.0.1");
  EXPECT_FALSE(answers[0].probes(1).reached());
  v1::ListOperatorLogResponse log;
  ASSERT_TRUE(
      Ask(&v1::AdminService::Stub::ListOperatorLog, v1::ListOperatorLogRequest(), log).ok());
  ASSERT_EQ(log.records_size(), 2) << "what was refused is on no record";
  EXPECT_EQ(log.records(0).method(), "VerifyPolicy");
  EXPECT_EQ(log.records(0).what(), "1 nodes try 2 targets");
}

TEST_F(AdminTest, AHeldPolicyIsSeenAndGoesOnWhenAnOperatorSaysSo) {
  ConnectNode();
  ASSERT_TRUE(ApplyYaml("apiVersion: spoke/v1\nkind: ClusterNetwork\nmetadata: {name: main}\nspec: "
                        "{peerSpoke: [10.32.0.0/16]}\n")
                  .ok());
  v1::GetRolloutResponse rollout;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetRollout, v1::GetRolloutRequest(), rollout).ok());
  const auto next = [&] {
    v1::ServerMessage message;
    while (stream_->Read(&message)) {
      if (message.has_policy() && message.policy().version() == rollout.version()) break;
    }
    return message.policy();
  };
  EXPECT_EQ(next().cut_limit().permille(), 50U);
  v1::AgentMessage said;
  v1::PolicyAck& ack = *said.mutable_policy_ack();
  ack.set_version(rollout.version());
  ack.set_error("would end 40 of 90");
  ack.set_held(true);
  ack.mutable_cut()->set_connections(90);
  ack.mutable_cut()->set_cut(40);
  ASSERT_TRUE(stream_->Write(said));
  Assign(0);  // What follows on the stream is dealt with after it.
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetRollout, v1::GetRolloutRequest(), rollout).ok());
  EXPECT_EQ(rollout.nodes_refused(), 1U);
  EXPECT_EQ(rollout.nodes_held(), 1U);
  EXPECT_EQ(rollout.held_connections(), 90U);
  EXPECT_EQ(rollout.held_connections_cut(), 40U);
  v1::ResumeRolloutRequest request;
  v1::ResumeRolloutResponse resumed;
  request.set_version(rollout.version() - 1);
  EXPECT_EQ(Ask(&v1::AdminService::Stub::ResumeRollout, request, resumed).error_code(),
            StatusCode::FAILED_PRECONDITION);
  request.set_version(rollout.version());
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::ResumeRollout, request, resumed).ok());
  EXPECT_EQ(resumed.nodes(), 1U);
  EXPECT_EQ(resumed.connections_cut(), 40U);
  EXPECT_FALSE(next().has_cut_limit());
}

TEST_F(AdminTest, AgentsAreAskedWhatAPolicyWouldCut) {
  v1::ApplyRequest request;
  v1::PolicyFile& file = *request.add_files();
  file.set_name("f");
  file.set_text(
      "apiVersion: spoke/v1\nkind: ClusterNetwork\nmetadata: {name: main}\nspec: "
      "{peerSpoke: [10.32.0.0/16]}\n");
  v1::EstimateCutsResponse cuts;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::EstimateCuts, request, cuts).ok());
  EXPECT_EQ(cuts.nodes_asked(), 0U) << "nobody is there";
  ConnectNode();
  std::thread agent([&] {
    v1::ServerMessage message;
    while (stream_->Read(&message) && !message.has_policy_trial()) {
    }
    const v1::PolicyTrial& trial = message.policy_trial();
    v1::AgentMessage said;
    v1::PolicyTrialResult& result = *said.mutable_policy_trial_result();
    result.set_id(trial.id());
    const bool whole = trial.policy().full() && trial.policy().changed_size() == 1;
    result.mutable_cut()->set_connections(whole ? 90 : 0);
    result.mutable_cut()->set_cut(40);
    v1::CutFlow& flow = *result.add_flows();
    flow.set_pod_namespace("team-a");
    flow.set_pod_name("web");
    flow.set_address(ip::Address::V4(0x0A010005).ToBytes());
    flow.set_far_address(ip::Address::V4(0x0A200001).ToBytes());
    flow.set_peer_spoke(true);
    result.add_flows()->set_address("no address");
    stream_->Write(said);
  });
  cuts.Clear();
  EXPECT_TRUE(Ask(&v1::AdminService::Stub::EstimateCuts, request, cuts).ok());
  agent.join();
  EXPECT_EQ(cuts.nodes(), 1U);
  EXPECT_EQ(cuts.nodes_asked(), 1U);
  EXPECT_EQ(cuts.nodes_answered(), 1U);
  EXPECT_EQ(cuts.connections(), 90U);
  EXPECT_EQ(cuts.connections_cut(), 40U);
  ASSERT_EQ(cuts.examples_size(), 1);
  EXPECT_EQ(cuts.examples(0).node(), "node1");
  EXPECT_EQ(cuts.examples(0).pod_name(), "web");
  EXPECT_EQ(cuts.examples(0).address(), "10.1.0.5");
  EXPECT_EQ(cuts.examples(0).far_address(), "10.32.0.1");
  EXPECT_EQ(cuts.examples(0).reason(), "peer-spoke");
  v1::GetObjectsResponse objects;
  v1::GetObjectsRequest all;
  all.set_kind("ClusterNetwork");
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetObjects, all, objects).ok());
  EXPECT_EQ(objects.objects_size(), 0) << "nothing is changed";
  file.set_text("kind: Nothing\n");
  EXPECT_EQ(Ask(&v1::AdminService::Stub::EstimateCuts, request, cuts).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdminTest, EachChangeIsOnRecordAndNothingElseIs) {
  const std::string pool =
      "apiVersion: spoke/v1\nkind: Pool\nmetadata: {name: blue}\nspec: {cidr: 10.7.0.0/24}\n";
  v1::UnfreezeResponse unfrozen;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::Unfreeze, v1::UnfreezeRequest(), unfrozen).ok());
  ASSERT_TRUE(ApplyYaml(pool, nullptr, /*dry_run=*/true).ok());
  v1::SetNodeModeRequest mode;
  mode.set_name("nowhere");
  mode.set_mode("draining");
  v1::NodeInfo node;
  EXPECT_FALSE(Ask(&v1::AdminService::Stub::SetNodeMode, mode, node).ok());
  v1::ListOperatorLogResponse log;
  ASSERT_TRUE(
      Ask(&v1::AdminService::Stub::ListOperatorLog, v1::ListOperatorLogRequest(), log).ok());
  EXPECT_EQ(log.records_size(), 0) << "nothing was changed";
  ASSERT_TRUE(ApplyYaml(pool).ok());
  ASSERT_TRUE(ApplyYaml(pool).ok());
  ConnectNode();
  mode.set_name("node1");
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::SetNodeMode, mode, node).ok());
  ASSERT_TRUE(
      Ask(&v1::AdminService::Stub::ListOperatorLog, v1::ListOperatorLogRequest(), log).ok());
  ASSERT_EQ(log.records_size(), 2) << "what is there already is not applied again";
  EXPECT_EQ(log.records(0).what(), "node node1 is draining");
  EXPECT_EQ(log.records(1).method(), "Apply");
  EXPECT_EQ(log.records(1).what(), "Pool/blue created");
  EXPECT_EQ(log.records(1).from(), "unix socket");
  EXPECT_EQ(log.records(1).role(), "admin");
  EXPECT_GT(log.records(1).policy_after(), log.records(1).policy_before());
  EXPECT_EQ(log_.Count("operator_change"), 2);
}

// A pool in use is not taken away, whoever asks and by whichever way.
TEST_F(AdminTest, UndoKeepsToTheRulesOfApply) {
  ASSERT_TRUE(ApplyYaml("apiVersion: spoke/v1\nkind: Pool\nmetadata: {name: blue}\n"
                        "spec: {cidr: 10.7.0.0/24, namespaces: [web]}\n")
                  .ok());
  v1::QuarantineAddressRequest quarantine;
  quarantine.set_address("10.7.0.9");
  v1::AddressInfo info;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::QuarantineAddress, quarantine, info).ok());
  v1::ApplyResponse undone;
  const grpc::Status refused =
      Ask(&v1::AdminService::Stub::UndoRollout, v1::UndoRolloutRequest(), undone);
  EXPECT_EQ(refused.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), testing::HasSubstr("Pool \"blue\""));
  quarantine.set_lift(true);
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::QuarantineAddress, quarantine, info).ok());
}

}  // namespace
}  // namespace spoke::ipam
