// Tests of asking the server for its time, over real gRPC on a unix socket.
#include "netagent/node/server_clock.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "lib/rpc/time_key.h"
#include "proto/spoke/v1/node.grpc.pb.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

// A server whose clock is wrong by `ahead`; with `says`, it says that text in place of its time;
// with `silent`, nothing.
class TimeServer final : public v1::NodeService::Service {
 public:
  grpc::Status Connect(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ServerMessage, v1::AgentMessage>* stream) override {
    if (!silent) {
      context->AddInitialMetadata(
          rpc::kTimeKey,
          says.empty() ? std::to_string(absl::ToUnixMillis(absl::Now() + ahead)) : says);
      stream->SendInitialMetadata();
    }
    if (!called.HasBeenNotified()) called.Notify();
    v1::AgentMessage message;
    while (stream->Read(&message)) ++messages;
    return grpc::Status::OK;
  }
  absl::Duration ahead;
  std::string says;
  bool silent = false;
  absl::Notification called;
  std::atomic<int> messages = 0;
};

class ServerClockTest : public testing::Test {
 protected:
  void StartServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    connection_ = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
    clock_.OnConnection(connection_);
  }
  ~ServerClockTest() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
  }
  const testing_support::TempDir dir_;
  const std::string address_ = "unix:" + dir_.File("server.sock");
  TimeServer service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> connection_;
  ServerClock clock_;
};

TEST_F(ServerClockTest, TheDifferenceIsMeasuredAndNothingIsSaid) {
  for (const absl::Duration ahead : {absl::Hours(-1), absl::ZeroDuration(), absl::Hours(1)}) {
    service_.ahead = ahead;
    if (server_ == nullptr) StartServer();
    const auto difference = clock_.Ask();
    ASSERT_TRUE(difference);
    // The server's time is rounded to a millisecond.
    EXPECT_LE(absl::AbsDuration(difference->ahead + ahead),
              difference->uncertainty + absl::Milliseconds(1));
    EXPECT_LE(difference->uncertainty, ServerClock::kPatience / 2 + absl::Seconds(1));
  }
  EXPECT_EQ(service_.messages, 0);
}

TEST_F(ServerClockTest, WithoutAConnectionNobodyIsAsked) {
  EXPECT_EQ(clock_.Ask(), std::nullopt);
  StartServer();
  EXPECT_NE(clock_.Ask(), std::nullopt);
  connection_.reset();  // The session is over.
  EXPECT_EQ(clock_.Ask(), std::nullopt);
}

TEST_F(ServerClockTest, AServerThatSaysNoTimeIsNotBelieved) {
  for (const char* text : {"soon", "-", "99999999999999999999", "1 2"}) {
    service_.says = text;
    if (server_ == nullptr) StartServer();
    EXPECT_EQ(clock_.Ask(), std::nullopt) << text;
  }
}

TEST_F(ServerClockTest, AServerThatIsSilentIsNotWaitedForAfterAnInterruption) {
  service_.silent = true;
  StartServer();
  std::thread interrupter([&] {
    service_.called.WaitForNotification();
    clock_.Interrupt();
  });
  EXPECT_EQ(clock_.Ask(), std::nullopt);
  interrupter.join();
  service_.silent = false;
  EXPECT_EQ(clock_.Ask(), std::nullopt);
}

}  // namespace
}  // namespace spoke::netagent
