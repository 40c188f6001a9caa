// Both services over real gRPC on a unix socket, with a memory store and a fake cloud behind them.
#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/admin/admin_gate.h"
#include "ipam-server/admin/admin_service.h"
#include "ipam-server/cloud/testing/fake_cloud.h"
#include "ipam-server/dns/testing/fake_resolver.h"
#include "ipam-server/policy/kinds/bandwidth_budget.h"
#include "ipam-server/policy/kinds/team.h"
#include "ipam-server/session/node_service.h"
#include "ipam-server/store/testing/memory_store.h"
#include "proto/spoke/v1/admin.grpc.pb.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {

class ServicesTest : public testing::Test {
 protected:
  ServicesTest() {
    budgets_.Start(streams_, log_);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&nodes_);
    builder.RegisterService(&admin_gate_);
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
    budgets_.Stop();
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
  Mailbox mailbox_;
  FakeCloud cloud_{AnswersTo(mailbox_)};
  os::SimClock clock_;
  TrafficBook traffic_{clock_, nullptr};
  FakeResolver resolver_;
  BudgetKeeper budgets_{clock_, {.tick = absl::Milliseconds(5), .quick = absl::Milliseconds(1)}};
  testing_support::RecordingLog log_;
  std::atomic<bool> leads_ = true;
  AgentStreams streams_{
      "1.4.0", [this] { return leads_ ? absl::InfiniteDuration() : absl::ZeroDuration(); }};
  const std::unique_ptr<Revocations> revocations_ =
      Revocations::Open(store_, clock_, [this](SessionId session, const absl::Status& why) {
        streams_.Cut(session, why);
      }).value();
  const ServerSettings settings_{
      .pools = {{.name = "default", .cidr = ip::Prefix::Parse("10.1.0.0/24").value()}},
      .fleet = {.target = {.min = 2, .batch = 2, .spare = 0.5, .max = 8}},
      .protected_addresses = {{ip::Address::V4(0x0A400001), "at which agents reach this server"}}};
  EventRing events_{log_, clock_};
  FleetLoop loop_{settings_,
                  LoadState(store_, settings_, clock_.Now()).value(),
                  {.store = store_,
                   .agents = streams_,
                   .cloud = cloud_,
                   .mailbox = mailbox_,
                   .clock = clock_,
                   .log = events_,
                   .on_objects =
                       [this](const ObjectSet& objects) {
                         traffic_.SetTeams(TeamsByNamespace(objects));
                         budgets_.SetBudgets(BudgetsOf(objects));
                       },
                   .on_node_gone = [this](const NodeKey& node) { budgets_.OnNodeGone(node); }}};
  NodeService nodes_{{.server_version = "1.4.0", .check_peer_name = false},
                     {.streams = streams_,
                      .loop = loop_,
                      .traffic = traffic_,
                      .budgets = budgets_,
                      .revocations = *revocations_}};
  AuditJob audit_{{.period = absl::ZeroDuration()}, {loop_, cloud_, clock_, events_}};
  ReachabilityBoard reachability_{ReachabilitySettings{}};
  OperatorLogKeys operator_log_{OperatorLogKeys::Newest(store_).value()};
  AdminService admin_{settings_,
                      {.version = "test", .store = "memory", .cloud = "fake"},
                      dir_.File("store.db"),
                      {loop_, store_, audit_, events_, clock_, clock_, traffic_, budgets_,
                       resolver_, *revocations_, nullptr, operator_log_, reachability_}};
  AdminGate admin_gate_{
      "test", admin_, {.revocations = *revocations_, .clock = clock_, .log = log_}};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::NodeService::Stub> node_stub_;
  std::unique_ptr<v1::AdminService::Stub> admin_stub_;
  std::thread thread_;
};

}  // namespace spoke::ipam
