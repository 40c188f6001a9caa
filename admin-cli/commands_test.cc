// The verbs against a small server of the test's own, over a real socket.
#include "admin-cli/commands.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/spoke/v1/admin.grpc.pb.h"
#include "tests/support/temp_dir.h"

namespace spoke::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

v1::AddressInfo LentAddress() {
  v1::AddressInfo info;
  info.set_address("10.1.0.5");
  info.set_state("lent");
  info.set_pool("default");
  info.set_node("node1");
  info.set_pod_namespace("ns");
  info.set_pod_name("pod");
  info.set_container_id("c0ffeec0ffeec0ffee");
  info.set_since_unix_ms(1'700'000'000'000);
  return info;
}

class SmallServer final : public v1::AdminService::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::GetStatusResponse* response) override {
    response->set_version("1.2.3");
    response->set_nodes(2);
    response->set_addresses_lent(7);
    response->add_problems("nothing can be stored: disk full");
    return grpc::Status::OK;
  }
  grpc::Status ListPools(grpc::ServerContext*, const v1::ListPoolsRequest*,
                         v1::ListPoolsResponse* response) override {
    v1::PoolInfo& pool = *response->add_pools();
    pool.set_name("default");
    pool.set_cidr("10.1.0.0/24");
    pool.set_usable(251);
    return grpc::Status::OK;
  }
  grpc::Status ListNodes(grpc::ServerContext*, const v1::ListNodesRequest*,
                         grpc::ServerWriter<v1::ListNodesResponse>* writer) override {
    for (const char* name : {"node1", "node2"}) {  // A message each: they are put together.
      v1::ListNodesResponse response;
      response.add_nodes()->set_name(name);
      response.mutable_nodes(0)->set_connected(std::string(name) == "node1");
      writer->Write(response);
    }
    return grpc::Status::OK;
  }
  grpc::Status ListAddresses(grpc::ServerContext*, const v1::ListAddressesRequest* request,
                             grpc::ServerWriter<v1::ListAddressesResponse>* writer) override {
    last_filter = request->node() + "|" + request->pool() + "|" + request->state();
    v1::ListAddressesResponse response;
    *response.add_addresses() = LentAddress();
    writer->Write(response);
    return grpc::Status::OK;
  }
  grpc::Status GetAddress(grpc::ServerContext*, const v1::GetAddressRequest* request,
                          v1::AddressInfo* response) override {
    if (request->address() != "10.1.0.5") {
      return {grpc::StatusCode::NOT_FOUND, "is in none of the pools"};
    }
    *response = LentAddress();
    return grpc::Status::OK;
  }

  std::string last_filter;
};

class CommandsTest : public testing::Test {
 protected:
  CommandsTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options_.server, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~CommandsTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  Options With(Format format) const {
    Options options = options_;
    options.format = format;
    return options;
  }

  const testing_support::TempDir dir_;
  Options options_{.server = "unix:" + dir_.File("admin.sock"), .address = "10.1.0.5"};
  SmallServer service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(CommandsTest, StatusShowsCountsAndProblems) {
  EXPECT_THAT(*Status(options_), HasSubstr("2 known"));
  EXPECT_THAT(*Status(options_), HasSubstr("  nothing can be stored: disk full\n"));
  EXPECT_EQ(json::parse(*Status(With(Format::kJson)))["addresses_lent"], 7);
  EXPECT_THAT(*Status(With(Format::kYaml)),
              HasSubstr("problems:\n  - \"nothing can be stored: disk full\"\n"));
}

TEST_F(CommandsTest, ListsAreTablesOrJson) {
  EXPECT_THAT(*PoolList(options_), HasSubstr("default  10.1.0.0/24  251"));
  EXPECT_THAT(*NodeList(options_), HasSubstr("node2      away"));
  const json nodes = json::parse(*NodeList(With(Format::kJson)));
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]["connected"], true);
  EXPECT_THAT(*IpList(options_),
              HasSubstr("10.1.0.5  lent   default  node1  ns/pod  c0ffeec0ffee"));
  EXPECT_EQ(json::parse(*IpList(With(Format::kJson)))[0]["pod_name"], "pod");
}

TEST_F(CommandsTest, FiltersReachTheServer) {
  Options options = options_;
  options.node = "node1";
  options.pool = "default";
  options.state = "lent";
  ASSERT_TRUE(IpList(options).ok());
  EXPECT_EQ(service_.last_filter, "node1|default|lent");
}

TEST_F(CommandsTest, ShowLeavesOutWhatIsEmptyAndNamesWhatIsNotThere) {
  EXPECT_THAT(*IpShow(options_), HasSubstr("since             2023-11-14T22:13:20Z\n"));
  EXPECT_EQ(IpShow(options_)->find("nic_mac"), std::string::npos);
  Options other = options_;
  other.address = "192.0.2.1";
  EXPECT_EQ(IpShow(other).status().code(), absl::StatusCode::kNotFound);
}

TEST(Commands, AnAbsentServerIsUnavailableAndTheMessageSaysWhere) {
  const absl::Status status = Status({.server = "unix:/nonexistent/admin.sock"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("unix:/nonexistent/admin.sock"));
}

}  // namespace
}  // namespace spoke::ctl
