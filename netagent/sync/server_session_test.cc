// The session against a small server of its own, over real gRPC on a unix socket.
#include "netagent/sync/server_session.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/sync/server_wire.h"
#include "proto/spoke/v1/node.grpc.pb.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

Lending LendingOf(std::string_view address) {
  return {.key = {"c0ffee", "eth0"},
          .pod = {"ns", "pod", "uid"},
          .addresses = {A(address)},
          .generation = 7};
}

// Answers Hello with Welcome and one address; keeps what it hears. Ends the stream after a report
// when told to.
class SmallServer final : public v1::NodeService::Service {
 public:
  grpc::Status Connect(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ServerMessage, v1::AgentMessage>* stream) override {
    v1::AgentMessage message;
    while (stream->Read(&message)) {
      {
        absl::MutexLock lock(&mutex_);
        heard_.push_back(message);
      }
      if (message.has_hello()) {
        v1::ServerMessage welcome;
        welcome.mutable_welcome()->set_session_epoch(1);
        stream->Write(welcome);
        v1::ServerMessage desired;
        desired.mutable_desired()->set_version(1);
        desired.mutable_desired()->set_full(true);
        v1::IpConfiguration& block = *desired.mutable_desired()->add_added();
        block.set_base(A("10.1.0.16").ToBytes());
        block.set_prefix_length(28);
        stream->Write(desired);
      }
      if (message.has_report() && hang_up_after_report) return grpc::Status::OK;
    }
    return grpc::Status::OK;
  }

  std::vector<v1::AgentMessage> WaitFor(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return heard_.size() >= count;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20)));
    return heard_;
  }

  bool hang_up_after_report = false;

 private:
  absl::Mutex mutex_;
  std::vector<v1::AgentMessage> heard_ ABSL_GUARDED_BY(mutex_);
};

class ServerSessionTest : public testing::Test {
 protected:
  void StartServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  void StartSession() {
    session_ = std::make_unique<ServerSession>(
        ServerSession::Settings{
            .server = address_,
            .tls = {.insecure = true},
            .identity = {.node_name = "node1", .vm_id = "vm-1", .boot_id = "boot"},
            .backoff = {.initial = absl::Milliseconds(20), .max = absl::Milliseconds(50)}},
        ServerSession::Callbacks{
            .on_connecting =
                [this] { session_->Begin({.lent = {LendingOf("10.1.0.5")}}, {.name = "eth0"}); },
            .on_desired =
                [this](const DesiredState& desired) {
                  absl::MutexLock lock(&mutex_);
                  desired_.push_back(desired);
                }},
        log_);
    ASSERT_TRUE(session_->Start().ok());
  }
  std::vector<DesiredState> WaitForDesired(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return desired_.size() >= count;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20)));
    return desired_;
  }
  ~ServerSessionTest() override {
    session_.reset();
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
  }

  const testing_support::TempDir dir_;
  const std::string address_ = "unix:" + dir_.File("server.sock");
  testing_support::RecordingLog log_;
  SmallServer service_;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  std::vector<DesiredState> desired_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ServerSession> session_;
};

TEST_F(ServerSessionTest, SaysHelloFirstAndThenWhatHappens) {
  StartServer();
  StartSession();
  const auto desired = WaitForDesired(1);
  EXPECT_EQ(desired[0].added.size(), 16U);  // The block is taken apart.
  EXPECT_EQ(desired[0].added[15].address, A("10.1.0.31"));
  session_->Acknowledge(1);
  session_->Report({.lent = {LendingOf("10.1.0.16")}});
  session_->Report({.released = {LendingOf("10.1.0.16")}, .cooled = {A("10.1.0.17")}});
  const auto heard = service_.WaitFor(4);
  EXPECT_EQ(heard[0].hello().node_name(), "node1");
  EXPECT_EQ(heard[0].hello().lent(0).pod_name(), "pod");
  EXPECT_EQ(heard[1].ack().version(), 1U);
  EXPECT_EQ(heard[2].report().sequence(), 1U);
  EXPECT_EQ(heard[3].report().sequence(), 2U);
  EXPECT_EQ(heard[3].report().released(0).generation(), 7U);
  EXPECT_EQ(heard[3].report().cooled(0), A("10.1.0.17").ToBytes());
}

TEST_F(ServerSessionTest, AServerThatIsNotThereIsComplainedAboutOnceAndFoundWhenItComes) {
  StartSession();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_EQ(log_.Count("server_unreachable"), 1);
  StartServer();
  service_.WaitFor(1);
  WaitForDesired(1);
  EXPECT_EQ(log_.Count("server_unreachable"), 1);
}

TEST_F(ServerSessionTest, ABrokenStreamIsOpenedAgainWithHello) {
  service_.hang_up_after_report = true;
  StartServer();
  StartSession();
  WaitForDesired(1);
  session_->Report({.lent = {LendingOf("10.1.0.16")}});
  const auto heard = service_.WaitFor(3);
  EXPECT_TRUE(heard[0].has_hello());
  EXPECT_TRUE(heard[1].has_report());
  EXPECT_TRUE(heard[2].has_hello());
}

TEST_F(ServerSessionTest, MissingCertificatesAreFoundAtTheStart) {
  session_ = std::make_unique<ServerSession>(
      ServerSession::Settings{
          .server = address_,
          .tls = {.ca = "/none/ca", .certificate = "/none/c", .key = "/none/k"}},
      ServerSession::Callbacks{}, log_);
  EXPECT_EQ(session_->Start().code(), absl::StatusCode::kNotFound);
}

TEST(ServerWire, WhatAServerCannotMeanIsRefused) {
  v1::DesiredState desired;
  desired.add_added()->set_base("123");
  EXPECT_EQ(FromWire(desired).status().code(), absl::StatusCode::kInvalidArgument);
  desired.mutable_added(0)->set_base(A("10.0.0.0").ToBytes());
  desired.mutable_added(0)->set_prefix_length(8);
  EXPECT_EQ(FromWire(desired).status().code(), absl::StatusCode::kInvalidArgument);
  desired.mutable_added(0)->set_prefix_length(33);
  EXPECT_EQ(FromWire(desired).status().code(), absl::StatusCode::kInvalidArgument);
  desired.mutable_added(0)->set_prefix_length(32);
  EXPECT_EQ(FromWire(desired)->added.size(), 1U);
}

}  // namespace
}  // namespace spoke::netagent
