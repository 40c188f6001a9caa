// An operator and an agent at a server, for tests of what operators ask.
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/session/testing/services_for_test.h"

namespace spoke::ipam {

class AdminTest : public ServicesTest {
 protected:
  // A node with two addresses; the stream stays open.
  void ConnectNode(size_t count = 2) {
    stream_ = node_stub_->Connect(&stream_context_);
    ASSERT_TRUE(stream_->Write(HelloMessage()));
    addresses_ = ReadAddresses(*stream_, count);
    ASSERT_EQ(addresses_.size(), count);
  }
  ~AdminTest() override { stream_context_.TryCancel(); }

  std::string TextOf(size_t i) const { return ip::Address::FromBytes(addresses_[i])->ToString(); }

  void Assign(size_t i) {
    v1::AgentMessage report;
    report.mutable_report()->set_sequence(++sequence_);
    v1::Assignment& assignment = *report.mutable_report()->add_in_use();
    assignment.set_address(addresses_[i]);
    assignment.set_container_id("c0ffee");
    assignment.set_ifname("eth0");
    assignment.set_pod_namespace("ns");
    assignment.set_pod_name("pod-a");
    assignment.set_generation(sequence_);
    ASSERT_TRUE(stream_->Write(report));
    v1::ServerMessage answer;
    while (stream_->Read(&answer) && !answer.has_report_ack()) {
    }
  }

  template <typename Call, typename Request, typename Response>
  grpc::Status Ask(Call call, const Request& request, Response& response) {
    grpc::ClientContext context;
    return (admin_stub_.get()->*call)(&context, request, &response);
  }
  grpc::Status ApplyYaml(const std::string& yaml, v1::ApplyResponse* out = nullptr,
                         bool dry_run = false) {
    v1::ApplyRequest request;
    request.set_dry_run(dry_run);
    v1::PolicyFile& file = *request.add_files();
    file.set_name("pools.yaml");
    file.set_text(yaml);
    v1::ApplyResponse ignored;
    return Ask(&v1::AdminService::Stub::Apply, request, out == nullptr ? ignored : *out);
  }
  std::vector<std::string> PoolNames() {
    v1::ListPoolsResponse pools;
    EXPECT_TRUE(Ask(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), pools).ok());
    std::vector<std::string> names;
    for (const auto& pool : pools.pools()) names.push_back(pool.name() + " " + pool.cidr());
    return names;
  }
  grpc::Status ExplainSubject(const v1::ExplainRequest& request, v1::ExplainResponse& out) {
    return Ask(&v1::AdminService::Stub::Explain, request, out);
  }

  grpc::ClientContext stream_context_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::string> addresses_;
  uint64_t sequence_ = 0;
};

}  // namespace spoke::ipam
