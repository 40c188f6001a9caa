// Both services over real gRPC on a unix socket, with a memory store and a fake cloud behind them.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/cloud/fake_cloud.h"
#include "ipam-server/jobs/attach_job.h"
#include "ipam-server/rpc/admin_service.h"
#include "ipam-server/rpc/node_service.h"
#include "ipam-server/store/memory_store.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

class ServicesTest : public testing::Test {
 protected:
  ServicesTest() {
    nodes_.SetLoop(loop_);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&nodes_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
    thread_ = std::thread([this] { loop_.Run(); });
    const auto channel = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
    node_stub_ = v1::NodeService::NewStub(channel);
    admin_stub_ = v1::AdminService::NewStub(channel);
  }
  ~ServicesTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    loop_.Stop();
    thread_.join();
    attach_job_.reset();  // Before the loop goes: it may have an answer on the way.
  }

  using Stream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>;

  static v1::AgentMessage HelloMessage(const std::string& name = "node1") {
    v1::AgentMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_node_name(name);
    hello.set_vm_id("vm-1");
    hello.set_boot_id("boot");
    hello.add_nics()->set_mac("00:0d:3a:00:00:01");
    return message;
  }
  // Reads until `count` addresses have been granted.
  static std::vector<std::string> ReadAddresses(Stream& stream, size_t count) {
    std::vector<std::string> addresses;
    v1::ServerMessage message;
    while (addresses.size() < count && stream.Read(&message)) {
      for (const auto& added : message.desired().added()) addresses.push_back(added.base());
    }
    return addresses;
  }
  std::vector<v1::AddressInfo> ListAddresses(const std::string& state = "") {
    grpc::ClientContext context;
    v1::ListAddressesRequest request;
    request.set_state(state);
    const auto reader = admin_stub_->ListAddresses(&context, request);
    std::vector<v1::AddressInfo> all;
    v1::ListAddressesResponse response;
    while (reader->Read(&response)) {
      for (const auto& address : response.addresses()) all.push_back(address);
    }
    EXPECT_TRUE(reader->Finish().ok());
    return all;
  }

  const testing_support::TempDir dir_;
  const std::string address_ = "unix:" + dir_.File("server.sock");
  MemoryStore store_;
  FakeCloud cloud_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  NodeService nodes_{{.server_version = "test", .check_peer_name = false}};
  std::unique_ptr<AttachJob> attach_job_ = std::make_unique<AttachJob>(
      cloud_, [this](const NodeKey& node, absl::StatusOr<NicAddresses> result) {
        loop_.PostCloudResult(node, std::move(result));
      });
  const ServerSettings settings_{
      .pools = {{.name = "default", .cidr = ip::Prefix::Parse("10.1.0.0/24").value()}},
      .fleet = {.target = {.min = 2, .batch = 2, .spare = 0.5, .max = 8}}};
  EventRing events_{log_, clock_};
  FleetLoop loop_{settings_,
                  LoadState(store_, settings_, clock_.Now()).value(),
                  {store_, nodes_, *attach_job_, clock_, events_}};
  AuditJob audit_{{.period = absl::ZeroDuration()}, loop_, cloud_, clock_, events_};
  AdminService admin_{settings_,
                      {.version = "test", .store = "memory", .cloud = "fake"},
                      dir_.path(),
                      {loop_, store_, audit_, events_}};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::NodeService::Stub> node_stub_;
  std::unique_ptr<v1::AdminService::Stub> admin_stub_;
  std::thread thread_;
};

TEST_F(ServicesTest, AnAgentGetsAddressesReportsALendingAndTheOperatorSeesIt) {
  grpc::ClientContext context;
  const auto stream = node_stub_->Connect(&context);
  ASSERT_TRUE(stream->Write(HelloMessage()));
  const auto addresses = ReadAddresses(*stream, 2);
  ASSERT_EQ(addresses.size(), 2U);

  v1::AgentMessage report;
  report.mutable_report()->set_sequence(1);
  v1::Lending& lending = *report.mutable_report()->add_lent();
  lending.set_address(addresses[0]);
  lending.set_container_id("c0ffee");
  lending.set_ifname("eth0");
  lending.set_pod_name("pod-a");
  lending.set_generation(1);
  ASSERT_TRUE(stream->Write(report));
  v1::ServerMessage answer;
  while (stream->Read(&answer) && !answer.has_report_ack()) {
  }
  EXPECT_EQ(answer.report_ack().sequence(), 1U);

  const auto lent = ListAddresses("lent");
  ASSERT_EQ(lent.size(), 1U);
  EXPECT_EQ(lent[0].pod_name(), "pod-a");
  EXPECT_EQ(lent[0].node(), "node1");

  grpc::ClientContext show;
  v1::GetAddressRequest request;
  request.set_address(lent[0].address());
  v1::AddressInfo info;
  ASSERT_TRUE(admin_stub_->GetAddress(&show, request, &info).ok());
  EXPECT_EQ(info.state(), "lent");
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
  EXPECT_EQ(pools.pools(0).idle(), 2U);
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

}  // namespace
}  // namespace spoke::ipam
