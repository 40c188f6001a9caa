// explain pod, with the steps that an agent remembers; the agent is played over real gRPC.
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/session/testing/services_for_test.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

class PodTracesTest : public ServicesTest {
 protected:
  ~PodTracesTest() override { Disconnect(); }

  // Connects node1, and assigns its first address to ns/pod-a.
  void Connect() {
    stream_ = node_stub_->Connect(&context_);
    ASSERT_TRUE(stream_->Write(HelloMessage()));
    const auto addresses = ReadAddresses(*stream_, 2);
    ASSERT_EQ(addresses.size(), 2U);
    v1::AgentMessage report;
    report.mutable_report()->set_sequence(1);
    v1::Assignment& assignment = *report.mutable_report()->add_in_use();
    assignment.set_address(addresses[0]);
    assignment.set_container_id("c0ffee");
    assignment.set_ifname("eth0");
    assignment.set_pod_namespace("ns");
    assignment.set_pod_name("pod-a");
    assignment.set_generation(1);
    Write(report);
    v1::ServerMessage answer;
    while (stream_->Read(&answer) && !answer.has_report_ack()) {
    }
  }
  void Write(const v1::AgentMessage& message) { ASSERT_TRUE(stream_->Write(message)); }
  // Ends the assignment.
  void Release() {
    v1::AgentMessage report;
    report.mutable_report()->set_sequence(2);
    v1::Release& release = *report.mutable_report()->add_released();
    release.set_address(std::string("\x0a\x01\x00\x04", 4));
    release.set_generation(1);
    Write(report);
    v1::ServerMessage answer;
    while (stream_->Read(&answer) && !answer.has_report_ack()) {
    }
  }
  void Disconnect() {
    if (stream_ == nullptr) return;
    stream_->WritesDone();
    v1::ServerMessage ignored;
    while (stream_->Read(&ignored)) {
    }
    stream_->Finish();
    stream_.reset();
  }
  static v1::AttachTrace TraceOf(const std::string& pod, const std::string& ifname,
                                 int64_t since_unix_ms) {
    v1::AttachTrace trace;
    trace.set_container_id("c0ffee");
    trace.set_ifname(ifname);
    trace.set_pod_namespace("ns");
    trace.set_pod_name(pod);
    trace.set_trace_id("abc");
    trace.set_since_unix_ms(since_unix_ms);
    trace.add_addresses(std::string("\x0a\x01\x00\x04", 4));
    v1::AttachTrace::Step& step = *trace.add_steps();
    step.set_name("kernel");
    step.set_begin_us(20);
    step.set_took_us(150);
    return trace;
  }
  // What `explain pod` says, while the agent answers the next request with `traces`.
  v1::ExplainResponse Explain(std::vector<v1::AttachTrace> traces) {
    std::thread agent([&] {
      v1::ServerMessage message;
      while (stream_->Read(&message) && !message.has_attach_traces_request()) {
      }
      asked_ = message.attach_traces_request();
      v1::AgentMessage answer;
      answer.mutable_attach_traces()->set_id(asked_.id());
      for (const v1::AttachTrace& trace : traces)
        *answer.mutable_attach_traces()->add_traces() = trace;
      Write(answer);
    });
    v1::ExplainResponse response = ExplainAlone();
    agent.join();
    return response;
  }
  v1::ExplainResponse ExplainAlone(const std::string& pod = "ns/pod-a",
                                   const std::string& on_node = "") {
    grpc::ClientContext context;
    v1::ExplainRequest request;
    request.set_pod(pod);
    request.set_on_node(on_node);
    v1::ExplainResponse response;
    const grpc::Status status = admin_stub_->Explain(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  v1::AttachTracesRequest asked_;
};

TEST_F(PodTracesTest, TheLastAddOfEachInterfaceComesFromTheAgentOfItsNode) {
  Connect();
  const v1::ExplainResponse said =
      Explain({TraceOf("pod-a", "eth0", 9000), TraceOf("pod-a", "net1", 9500),
               TraceOf("pod-a", "eth0", 1000), TraceOf("pod-b", "eth0", 9900)});
  EXPECT_EQ(asked_.pod_namespace(), "ns");
  EXPECT_EQ(asked_.pod_name(), "pod-a");
  EXPECT_EQ(said.without_adds_size(), 0);
  ASSERT_EQ(said.adds_size(), 2);
  EXPECT_EQ(said.adds(0).ifname(), "net1");
  const v1::AddTrace& add = said.adds(1);
  EXPECT_EQ(add.node(), "node1");
  EXPECT_EQ(add.ifname(), "eth0");
  EXPECT_EQ(add.since_unix_ms(), 9000);
  EXPECT_EQ(add.addresses(0), "10.1.0.4");
  EXPECT_EQ(add.trace_id(), "abc");
  ASSERT_EQ(add.steps_size(), 1);
  EXPECT_EQ(add.steps(0).name(), "kernel");
  EXPECT_EQ(add.steps(0).begin_us(), 20U);
  EXPECT_EQ(add.steps(0).took_us(), 150U);
}

TEST_F(PodTracesTest, AnAgentThatKnowsNothingOrIsAwayIsNamedBesideWhatTheServerKnows) {
  Connect();
  const v1::ExplainResponse forgot = Explain({});
  ASSERT_EQ(forgot.without_adds_size(), 1);
  EXPECT_THAT(forgot.without_adds(0), HasSubstr("node node1 remembers no ADD of the pod"));
  Disconnect();
  const v1::ExplainResponse away = ExplainAlone();
  EXPECT_THAT(away.details(0), HasSubstr("10.1.0.4 on node node1"));
  ASSERT_EQ(away.without_adds_size(), 1);
  EXPECT_THAT(away.without_adds(0), HasSubstr("the agent of node node1 is not connected"));
  EXPECT_EQ(away.adds_size(), 0);
}

TEST_F(PodTracesTest, APodWithoutAnAddressIsLookedForWhereItLastHadOneOrWhereTheOperatorSays) {
  Connect();
  Release();
  const v1::ExplainResponse past = Explain({TraceOf("pod-a", "eth0", 9000)});
  EXPECT_THAT(past.summary(), HasSubstr("no address is assigned"));
  EXPECT_THAT(past.details(past.details_size() - 1),
              HasSubstr("it last had 10.1.0.4 on node node1"));
  EXPECT_EQ(past.adds_size(), 1);

  const v1::ExplainResponse unknown = ExplainAlone("ns/nobody");
  EXPECT_THAT(unknown.without_adds(0), HasSubstr("name it with --node"));
  const v1::ExplainResponse nowhere = ExplainAlone("ns/nobody", "node9");
  EXPECT_THAT(nowhere.without_adds(0), HasSubstr("there is no node node9"));
}

}  // namespace
}  // namespace spoke::ipam
