// Tests the session against several servers, over real gRPC on unix sockets.
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/rpc/listening_sockets.h"
#include "netagent/session/server_session.h"
#include "netagent/session/testing/small_server.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class SeveralServersTest : public testing::Test {
 protected:
  struct Server {
    std::string address;
    SmallServer service;
    std::unique_ptr<grpc::Server> grpc;

    void Start() {
      grpc::ServerBuilder builder;
      builder.AddListeningPort(address, grpc::InsecureServerCredentials());
      builder.RegisterService(&service);
      grpc = builder.BuildAndStart();
    }
    void Stop() {
      if (grpc) grpc->Shutdown(std::chrono::system_clock::now());
      grpc.reset();
    }
  };

  SeveralServersTest() {
    for (size_t i = 0; i < servers_.size(); ++i) {
      servers_[i].address = "unix:" + dir_.File(std::to_string(i) + ".sock");
    }
  }
  ~SeveralServersTest() override {
    session_.reset();
    for (Server& server : servers_) server.Stop();
  }
  void StartSession() {
    std::vector<std::string> addresses;
    for (const Server& server : servers_) addresses.push_back(server.address);
    session_.emplace(
        ServerSession::Settings{.servers = std::move(addresses),
                                .tls = {.insecure = true},
                                .agent_version = "1.4.0",
                                .reconnect = {.after_session = absl::Milliseconds(20)}},
        ServerSession::Callbacks{.on_connecting = [this] { Greet(); },
                                 .on_request = [](const node_api::ServerMessage&) {}},
        log_);
    ASSERT_TRUE(session_->Start().ok());
  }
  // Assigns an address as the agent does: what a hello says has every assignment.
  void Assign(std::string_view address) {
    const node_api::Assignment assignment{
        .address = A(address), .generation = 7, .lessee = {"c0ffee", "eth0", "ns", "pod", "uid"}};
    {
      absl::MutexLock lock(&mutex_);
      in_use_.push_back(assignment);
    }
    session_->Report({.in_use = {assignment}});
  }
  void Greet() {
    Greeting greeting{.hello = {.node = {.node_name = "node1", .agent_version = "1.4.0"}}};
    {
      absl::MutexLock lock(&mutex_);
      greeting.hello.in_use = in_use_;
    }
    session_->Begin(greeting);
  }

  const testing_support::TempDir dir_;
  testing_support::RecordingLog log_;
  std::array<Server, 3> servers_;
  absl::Mutex mutex_;
  std::vector<node_api::Assignment> in_use_ ABSL_GUARDED_BY(mutex_);
  std::optional<ServerSession> session_;
};

TEST_F(SeveralServersTest, TheOneThatAcceptsIsFoundWhileOneRefusesAndOneHangs) {
  const auto hangs = rpc::ListenAt(servers_[1].address);
  ASSERT_TRUE(hangs.ok()) << hangs.status();
  servers_[2].Start();
  StartSession();
  EXPECT_TRUE(servers_[2].service.WaitFor(1)[0].has_hello());
}

TEST_F(SeveralServersTest, WhenTheServerEndsTheNextHearsAll) {
  servers_[0].Start();
  StartSession();
  servers_[0].service.WaitFor(1);
  Assign("10.1.0.16");
  servers_[0].service.WaitFor(2);
  servers_[0].Stop();
  servers_[2].Start();
  const auto heard = servers_[2].service.WaitFor(1);
  ASSERT_EQ(heard[0].hello().in_use_size(), 1);
  EXPECT_EQ(heard[0].hello().in_use(0).address(), A("10.1.0.16").ToBytes());
}

TEST_F(SeveralServersTest, AServerThatStopsAcknowledgingIsLeftForOneThatDoesAndNoReportIsLost) {
  servers_[0].service.slow = true;
  servers_[0].Start();
  StartSession();
  servers_[0].service.WaitFor(1);
  Assign("10.1.0.16");
  servers_[0].service.WaitFor(2);
  Assign("10.1.0.17");  // It waits in the agent until the first is acknowledged.
  servers_[1].Start();
  const auto heard = servers_[1].service.WaitFor(1);
  EXPECT_EQ(heard[0].hello().in_use_size(), 2);
  Assign("10.1.0.18");
  const auto report = servers_[1].service.WaitFor(2)[1].report();
  EXPECT_EQ(report.sequence(), 1U);
  EXPECT_EQ(report.in_use(0).address(), A("10.1.0.18").ToBytes());
  EXPECT_EQ(log_.Count("server_unreachable"), 1);
  EXPECT_THAT(log_.lines(), testing::Contains(testing::HasSubstr("takes connections")));
}

TEST_F(SeveralServersTest, AServerThatStopsReadingIsLeftThoughAMessageToItCannotBeWritten) {
  servers_[0].service.reads = 1;
  servers_[0].Start();
  StartSession();
  servers_[0].service.WaitFor(1);
  // More than any window of the connection's, so that the write does not come back.
  node_api::Inventory inventory{.id = 1};
  for (uint32_t i = 0; i < 100'000; ++i) inventory.held.push_back(ip::Address::V4(i));
  for (int i = 0; i < 8; ++i) session_->Answer(inventory);
  Assign("10.1.0.16");
  servers_[1].Start();
  const auto heard = servers_[1].service.WaitFor(1);
  ASSERT_EQ(heard[0].hello().in_use_size(), 1);
  EXPECT_EQ(heard[0].hello().in_use(0).address(), A("10.1.0.16").ToBytes());
  EXPECT_THAT(log_.lines(), testing::Contains(testing::HasSubstr("takes connections")));
}

}  // namespace
}  // namespace spoke::netagent
