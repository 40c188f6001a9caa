// How nodes reach each other, from agents that answer to operators that ask.
#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/admin/testing/admin_fixture.h"
#include "ipam-server/nodes/reachability/reachability_job.h"

namespace spoke::ipam {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Returns whether what the node sends to that address is lost.
using IsLost = std::function<bool(const std::string& node, const std::string& address)>;

// An agent that answers probes as a network would.
class ProbingAgent {
 public:
  ProbingAgent(v1::NodeService::Stub& stub, v1::AgentMessage hello, IsLost is_lost)
      : name_(hello.hello().node_name()),
        is_lost_(std::move(is_lost)),
        stream_(stub.Connect(&context_)) {
    EXPECT_TRUE(stream_->Write(hello));
    v1::ServerMessage message;
    while (stream_->Read(&message) && !message.has_desired()) {
    }
    thread_ = std::thread([this] { Serve(); });
  }
  ~ProbingAgent() {
    context_.TryCancel();
    thread_.join();
  }

 private:
  void Serve() {
    v1::ServerMessage message;
    while (stream_->Read(&message)) {
      if (!message.has_probe_request()) continue;
      v1::AgentMessage said;
      said.mutable_probe_results()->set_id(message.probe_request().id());
      bool lost = false;
      for (const auto& target : message.probe_request().targets()) {
        v1::ProbeResults::Result& result = *said.mutable_probe_results()->add_results();
        result.set_address(target.address());
        result.set_took_us(200);
        const bool is_lost = is_lost_(name_, target.address());
        result.set_outcome(is_lost ? v1::ProbeResults::Result::TIMED_OUT
                                   : v1::ProbeResults::Result::REACHED);
        lost = lost || is_lost;
      }
      // What is lost is known when the time is over.
      if (lost) absl::SleepFor(absl::Milliseconds(message.probe_request().timeout_ms()));
      stream_->Write(said);
    }
  }

  const std::string name_;
  const IsLost is_lost_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>> stream_;
  std::thread thread_;
};

class ReachabilityCallsTest : public AdminTest {
 protected:
  static constexpr int kNodes = 6;

  ReachabilityCallsTest() = default;
  ~ReachabilityCallsTest() override { agents_.clear(); }

  // Nodes node0 to node5 at 10.9.0.10 to 10.9.0.15.
  void ConnectAll(const IsLost& is_lost) {
    for (int i = 0; i < kNodes; ++i) {
      v1::AgentMessage hello = HelloMessage(fmt::format("node{}", i));
      hello.mutable_hello()->set_vm_id(fmt::format("vm-{}", i));
      v1::Nic& nic = *hello.mutable_hello()->mutable_nics(0);
      nic.set_mac(fmt::format("00:0d:3a:00:00:0{}", i));
      nic.set_mtu(1500);
      nic.add_addresses(ip::Address::V4(0x0A09000AU + static_cast<uint32_t>(i)).ToBytes());
      agents_.push_back(std::make_unique<ProbingAgent>(*node_stub_, hello, is_lost));
    }
  }
  void RunRounds(ReachabilityJob& job, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const absl::Status done = job.RunOnce(absl::Seconds(1));
      ASSERT_TRUE(done.ok()) << done;
    }
  }
  grpc::Status GetReachability(const std::string& node, v1::GetReachabilityResponse& out) {
    v1::GetReachabilityRequest request;
    request.set_node(node);
    return Ask(&v1::AdminService::Stub::GetReachability, request, out);
  }
  grpc::Status CheckNodes(const v1::CheckNodesRequest& request,
                          std::vector<v1::CheckNodesResponse>& out) {
    grpc::ClientContext context;
    const auto reader = admin_stub_->CheckNodes(&context, request);
    v1::CheckNodesResponse message;
    while (reader->Read(&message)) out.push_back(message);
    return reader->Finish();
  }

  os::RealClock real_clock_;
  std::vector<std::unique_ptr<ProbingAgent>> agents_;
};

TEST_F(ReachabilityCallsTest, ANodeThatNobodyReachesIsFound) {
  ConnectAll([](const std::string& node, const std::string& address) {
    return node == "node3" || address == "10.9.0.13";
  });
  v1::GetReachabilityResponse before;
  ASSERT_TRUE(GetReachability("", before).ok());
  EXPECT_TRUE(before.enabled());
  EXPECT_EQ(before.at_unix_ms(), 0);
  EXPECT_EQ(GetReachability("node1", before).error_code(), StatusCode::FAILED_PRECONDITION);
  ReachabilityJob job({loop_, real_clock_, log_, reachability_});
  RunRounds(job, 3);
  v1::GetReachabilityResponse found;
  ASSERT_TRUE(GetReachability("", found).ok());
  EXPECT_EQ(found.nodes(), 6U);
  ASSERT_EQ(found.suspects_size(), 1);
  EXPECT_EQ(found.suspects(0).name(), "node3");
  EXPECT_EQ(log_.Count("reachability_suspect"), 1);
  v1::GetReachabilityResponse node;
  ASSERT_TRUE(GetReachability("node1", node).ok());
  EXPECT_EQ(node.node().suspicion(), "");
  EXPECT_EQ(node.peers(0).b(), "node3");
  EXPECT_EQ(GetReachability("nowhere", node).error_code(), StatusCode::NOT_FOUND);
  v1::GetStatusResponse status;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetStatus, v1::GetStatusRequest(), status).ok());
  EXPECT_THAT(status.problems(), ElementsAre(HasSubstr("the network of 1 node loses packets: "
                                                       "node3; see: spokectl reachability")));
}

TEST_F(ReachabilityCallsTest, APairThatIsCutIsAProblemToo) {
  ConnectAll([](const std::string& node, const std::string& address) {
    return (node == "node1" && address == "10.9.0.12") ||
           (node == "node2" && address == "10.9.0.11");
  });
  ReachabilityJob job({loop_, real_clock_, log_, reachability_});
  RunRounds(job, 3);
  v1::GetStatusResponse status;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetStatus, v1::GetStatusRequest(), status).ok());
  EXPECT_THAT(status.problems(),
              ElementsAre("1 pair of nodes do not reach each other, node1 and node2 among them; "
                          "see: spokectl reachability show"));
}

TEST_F(ReachabilityCallsTest, AnAgentThatDoesNotAnswerAccusesNobody) {
  ConnectAll([](const std::string&, const std::string&) { return false; });
  ConnectNode();  // A new session of node1, whose agent reads no probes.
  ReachabilityJob job({loop_, real_clock_, log_, reachability_});
  RunRounds(job, 2);
  v1::GetReachabilityResponse found;
  ASSERT_TRUE(GetReachability("", found).ok());
  EXPECT_EQ(found.suspects_size(), 0);
  EXPECT_EQ(found.all().lost(), 0U);
  EXPECT_EQ(found.nodes(), 5U) << "node1 says no address";
}

TEST_F(ReachabilityCallsTest, NodesProbeEachOtherOnAnOperatorsWord) {
  ConnectAll([](const std::string& node, const std::string& address) {
    return node == "node1" && address == "10.9.0.12";
  });
  v1::CheckNodesRequest request;
  for (const char* node : {"node0", "node1", "node2"}) request.add_nodes(node);
  std::vector<v1::CheckNodesResponse> out;
  const grpc::Status status = CheckNodes(request, out);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_GE(out.size(), 2U);
  EXPECT_EQ(out.front().over(), false);
  EXPECT_EQ(out[out.size() - 2].done(), out[out.size() - 2].total());
  const v1::CheckNodesResponse& end = out.back();
  EXPECT_TRUE(end.over());
  EXPECT_EQ(end.small().probes(), 6U);
  EXPECT_EQ(end.small().lost(), 1U);
  EXPECT_EQ(end.full().probes(), 3U);
  EXPECT_EQ(end.full().lost(), 1U) << "the same way";
  ASSERT_EQ(end.pairs_size(), 1);
  EXPECT_EQ(end.pairs(0).a() + " " + end.pairs(0).b(), "node1 node2");
  EXPECT_EQ(end.unheard_size(), 0);
  v1::ListOperatorLogResponse log;
  ASSERT_TRUE(
      Ask(&v1::AdminService::Stub::ListOperatorLog, v1::ListOperatorLogRequest(), log).ok());
  EXPECT_EQ(log.records(0).method(), "CheckNodes");
  EXPECT_EQ(log.records(0).what(), "3 nodes probe each other");
}

TEST_F(ReachabilityCallsTest, TheNodesOfAJobAreThoseOfItsPods) {
  ConnectAll([](const std::string&, const std::string&) { return false; });
  ConnectNode();
  Assign(0);  // The pod ns/pod-a, on a node that has no address of its own.
  v1::CheckNodesRequest request;
  request.set_job("ns/pod");
  std::vector<v1::CheckNodesResponse> out;
  EXPECT_EQ(CheckNodes(request, out).error_code(), StatusCode::FAILED_PRECONDITION) << "one node";
  request.add_nodes("node0");
  request.add_nodes("node4");
  ASSERT_TRUE(CheckNodes(request, out).ok());
  EXPECT_EQ(out.back().small().probes(), 2U);
  request.set_job("ns/other");
  request.clear_nodes();
  EXPECT_EQ(CheckNodes(request, out).error_code(), StatusCode::NOT_FOUND);
  request.set_job("ns");
  EXPECT_EQ(CheckNodes(request, out).error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ReachabilityCallsTest, WhatMakesNoSenseIsRefused) {
  ConnectAll([](const std::string&, const std::string&) { return false; });
  std::vector<v1::CheckNodesResponse> out;
  v1::CheckNodesRequest request;
  EXPECT_EQ(CheckNodes(request, out).error_code(), StatusCode::FAILED_PRECONDITION);
  request.add_nodes("node0");
  EXPECT_EQ(CheckNodes(request, out).error_code(), StatusCode::FAILED_PRECONDITION);
  request.add_nodes("node9");
  EXPECT_EQ(CheckNodes(request, out).error_code(), StatusCode::NOT_FOUND);
  request.set_nodes(1, "node1");
  request.set_timeout_ms(60'000);
  EXPECT_EQ(CheckNodes(request, out).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace spoke::ipam
