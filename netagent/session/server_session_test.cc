// Tests the session against a small server of its own, over real gRPC on a unix socket.
#include "netagent/session/server_session.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/session/testing/small_server.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

node_api::Assignment AssignmentOf(std::string_view address) {
  return {.address = A(address), .generation = 7, .lessee = {"c0ffee", "eth0", "ns", "pod", "uid"}};
}

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
        ServerSession::Settings{.servers = {address_},
                                .tls = {.insecure = true},
                                .agent_version = "1.4.0",
                                .farewell = absl::Milliseconds(50),
                                .reconnect = {.after_session = absl::Milliseconds(20),
                                              .backoff = {.initial = absl::Milliseconds(20),
                                                          .max = absl::Milliseconds(50)}}},
        ServerSession::Callbacks{.on_connecting =
                                     [this] {
                                       if (before_begin) before_begin();
                                       if (greets) session_->Begin(greeting_);
                                     },
                                 .on_request =
                                     [this](const node_api::ServerMessage& request) {
                                       absl::MutexLock lock(&mutex_);
                                       if (const auto* desired =
                                               std::get_if<node_api::DesiredState>(&request)) {
                                         desired_.push_back(*desired);
                                       } else {
                                         requests_.push_back(request);
                                       }
                                     },
                                 .on_outcome =
                                     [this](const absl::Status& outcome) {
                                       absl::MutexLock lock(&mutex_);
                                       outcomes_.push_back(outcome);
                                     },
                                 .on_connection =
                                     [this](const std::shared_ptr<grpc::Channel>& connection) {
                                       absl::MutexLock lock(&mutex_);
                                       connection_ = connection;
                                     }},
        log_);
    ASSERT_TRUE(session_->Start().ok());
  }
  std::vector<node_api::DesiredState> WaitForDesired(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return desired_.size() >= count;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20)));
    return desired_;
  }
  std::vector<node_api::ServerMessage> WaitForOthers(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return requests_.size() >= count;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20)));
    return requests_;
  }
  std::vector<absl::Status> WaitForOutcomes(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return outcomes_.size() >= count;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20)));
    return outcomes_;
  }
  bool HasDesired() {
    absl::MutexLock lock(&mutex_);
    return !desired_.empty();
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
  std::vector<node_api::DesiredState> desired_ ABSL_GUARDED_BY(mutex_);
  std::vector<node_api::ServerMessage> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> outcomes_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<grpc::Channel> connection_ ABSL_GUARDED_BY(mutex_);
  Greeting greeting_{.hello = {.node = {.node_name = "node1", .agent_version = "1.4.0"},
                               .in_use = {AssignmentOf("10.1.0.5")}}};
  std::function<void()> before_begin;
  bool greets = true;  // When a stream is opened.
  std::unique_ptr<ServerSession> session_;
};

TEST_F(ServerSessionTest, SaysHelloFirstAndThenWhatHappens) {
  StartServer();
  StartSession();
  const auto desired = WaitForDesired(1);
  ASSERT_EQ(desired[0].added.size(), 1U);
  EXPECT_EQ(desired[0].added[0].range.ToString(), "10.1.0.16/28");
  session_->Acknowledge(1);
  session_->Report({.in_use = {AssignmentOf("10.1.0.16")}});
  service_.WaitFor(3);
  session_->Report({.released = {{A("10.1.0.16"), 7}}, .cooled = {A("10.1.0.17")}});
  const auto heard = service_.WaitFor(4);
  EXPECT_EQ(heard[0].hello().node_name(), "node1");
  EXPECT_EQ(heard[0].hello().in_use(0).pod_name(), "pod");
  EXPECT_EQ(heard[1].ack().version(), 1U);
  EXPECT_EQ(heard[2].report().sequence(), 1U);
  EXPECT_EQ(heard[3].report().sequence(), 2U);
  EXPECT_EQ(heard[3].report().released(0).generation(), 7U);
  EXPECT_EQ(heard[3].report().cooled(0), A("10.1.0.17").ToBytes());
}

TEST_F(ServerSessionTest, TheConnectionIsToldAndLastsAsLongAsTheStream) {
  StartServer();
  StartSession();
  WaitForDesired(1);
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(connection_.expired());
  }
  session_.reset();
  absl::MutexLock lock(&mutex_);
  EXPECT_TRUE(connection_.expired());
}

// As when the agent's loop is late, and answers for the stream before.
TEST_F(ServerSessionTest, AHelloThatIsSaidBeforeTheStreamIsThereIsNotLost) {
  StartServer();
  greets = false;
  StartSession();
  std::atomic<bool> over = false;
  std::thread late([&] {
    while (!over) session_->Begin(greeting_);
  });
  EXPECT_EQ(WaitForDesired(1).size(), 1U);
  over = true;
  late.join();
}

TEST_F(ServerSessionTest, ADemandFollowsTheHelloAndTheForecastComesBack) {
  greeting_.demand.waiting = {{"web", 3}};
  v1::ServerMessage forecast;
  forecast.mutable_forecast()->set_reason("enlarging the node");
  service_.after_desired = {forecast};
  StartServer();
  StartSession();
  const auto heard = service_.WaitFor(2);
  ASSERT_TRUE(heard[1].has_demand());
  EXPECT_EQ(heard[1].demand().waiting(0).pod_namespace(), "web");
  EXPECT_EQ(heard[1].demand().waiting(0).pods(), 3U);
  EXPECT_EQ(std::get<node_api::Forecast>(WaitForOthers(1)[0]).reason, "enlarging the node");
  session_->Ask({});
  EXPECT_EQ(service_.WaitFor(3)[2].demand().waiting_size(), 0);
  EXPECT_TRUE(service_.WaitFor(3)[2].has_demand());
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

TEST_F(ServerSessionTest, WhatBecameOfAnAttemptIsTold) {
  StartSession();
  const absl::Status first = WaitForOutcomes(1).front();
  EXPECT_EQ(first.code(), absl::StatusCode::kUnavailable);
  StartServer();
  WaitForDesired(1);
  absl::MutexLock lock(&mutex_);
  EXPECT_TRUE(outcomes_.back().ok()) << outcomes_.back();
}

TEST_F(ServerSessionTest, AServerOneMinorVersionAwayIsOneToWorkWith) {
  service_.version = "1.5.9";
  StartServer();
  StartSession();
  WaitForDesired(1);
  EXPECT_EQ(log_.Count("server_version_skew"), 0);
}

TEST_F(ServerSessionTest, AServerThatRefusesOurVersionIsSaidOnceWithWhatToUpgrade) {
  service_.refuse_as = "1.6.0";
  StartServer();
  StartSession();
  const auto outcomes = WaitForOutcomes(3);
  EXPECT_EQ(outcomes[2],
            absl::FailedPreconditionError(
                "spoke-netagent 1.4.0 and spoke-ipam-server 1.6.0 do not work together, since they "
                "are more than one minor version apart: upgrade spoke-netagent first, to 1.5 or "
                "1.6"));
  EXPECT_EQ(log_.Count("server_version_skew"), 1);
  EXPECT_EQ(log_.Count("server_unreachable"), 0);
}

TEST_F(ServerSessionTest, AServerThatLetsUsInAllTheSameIsNotListenedTo) {
  service_.version = "2.0.0";
  StartServer();
  StartSession();
  EXPECT_EQ(WaitForOutcomes(2).back().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log_.Count("server_version_skew"), 1);
  EXPECT_EQ(log_.Count("server_connected"), 0);
  EXPECT_FALSE(HasDesired());
}

TEST_F(ServerSessionTest, ARefusalForAnotherReasonIsNoSkew) {
  service_.refuse_as = "1.4.0";
  StartServer();
  StartSession();
  EXPECT_EQ(WaitForOutcomes(1).front(), absl::FailedPreconditionError("the hello is refused"));
  EXPECT_EQ(log_.Count("server_version_skew"), 0);
  EXPECT_EQ(log_.Count("server_unreachable"), 1);
}

TEST_F(ServerSessionTest, ABrokenStreamIsOpenedAgainWithHello) {
  service_.hang_up_after_report = true;
  StartServer();
  StartSession();
  WaitForDesired(1);
  session_->Report({.in_use = {AssignmentOf("10.1.0.16")}});
  const auto heard = service_.WaitFor(3);
  EXPECT_TRUE(heard[0].has_hello());
  EXPECT_TRUE(heard[1].has_report());
  EXPECT_TRUE(heard[2].has_hello());
}

TEST_F(ServerSessionTest, ReportsAreMergedWhileOneIsNotAcknowledged) {
  service_.slow = true;
  StartServer();
  StartSession();
  WaitForDesired(1);
  session_->Report({.in_use = {AssignmentOf("10.1.0.16")}});
  service_.WaitFor(2);
  for (const char* address : {"10.1.0.17", "10.1.0.18", "10.1.0.19"}) {
    session_->Report({.in_use = {AssignmentOf(address)}});
  }
  session_->Acknowledge(9);  // Waits for nobody, and makes the server acknowledge the report.
  const auto heard = service_.WaitFor(4);
  EXPECT_EQ(heard[2].ack().version(), 9U);
  EXPECT_EQ(heard[3].report().sequence(), 2U);
  EXPECT_EQ(heard[3].report().in_use_size(), 3);
}

TEST_F(ServerSessionTest, AServerThatNeverAcknowledgesIsGreetedAnewAndNothingGrows) {
  service_.slow = true;
  StartServer();
  StartSession();
  WaitForDesired(1);
  node_api::AssignmentReport burst;
  for (uint32_t i = 0; i < 6'000; ++i) burst.cooled.push_back(ip::Address::V4(i));
  session_->Report(burst);
  session_->Report(burst);
  WaitForDesired(2);
}

TEST_F(ServerSessionTest, RequestsArriveInOrder) {
  v1::ServerMessage message;
  message.mutable_reclaim()->set_id(4);
  service_.after_desired.push_back(message);
  message.mutable_inventory_request()->set_id(5);
  service_.after_desired.push_back(message);
  message.mutable_policy()->set_version(6);
  service_.after_desired.push_back(message);
  StartServer();
  StartSession();
  const auto requests = WaitForOthers(3);
  EXPECT_EQ(std::get<node_api::ReclaimRequest>(requests[0]).id, 4U);
  EXPECT_EQ(std::get<node_api::InventoryRequest>(requests[1]).id, 5U);
  EXPECT_EQ(std::get<node_api::PolicyUpdate>(requests[2]).bundle->version(), 6U);
}

TEST_F(ServerSessionTest, AnAnswerIsNeverCarriedIntoTheNextSession) {
  service_.hang_up_after_report = true;
  // The agent speaks between two sessions: in this case an agreement of the old one.
  before_begin = [this] { session_->Answer(node_api::ReclaimAnswer{.id = 1}); };
  StartServer();
  StartSession();
  WaitForDesired(1);
  session_->Report({.in_use = {AssignmentOf("10.1.0.16")}});
  WaitForDesired(2);
  session_->Acknowledge(1);
  const auto heard = service_.WaitFor(4);
  EXPECT_TRUE(heard[0].has_hello());
  EXPECT_TRUE(heard[1].has_report());
  EXPECT_TRUE(heard[2].has_hello());
  EXPECT_TRUE(heard[3].has_ack());
}

TEST_F(ServerSessionTest, ConflictsOfEarlierSessionsFollowTheHello) {
  greeting_.conflicts = {{A("10.1.0.5"), std::nullopt}, {A("10.1.0.6"), std::nullopt}};
  StartServer();
  StartSession();
  const auto heard = service_.WaitFor(3);
  EXPECT_EQ(heard[1].conflict().address(), A("10.1.0.5").ToBytes());
  EXPECT_EQ(heard[2].conflict().address(), A("10.1.0.6").ToBytes());
}

TEST_F(ServerSessionTest, BeginningAnewSaysWhatWaitsAndThenHello) {
  StartServer();
  StartSession();
  WaitForDesired(1);
  session_->AcknowledgePolicy({.version = 8, .error = "relative to another"});
  session_->BeginAnew("a test");
  WaitForDesired(2);
  const auto heard = service_.WaitFor(3);
  EXPECT_EQ(heard[1].policy_ack().error(), "relative to another");
  EXPECT_TRUE(heard[2].has_hello());
  EXPECT_EQ(log_.Count("session_begun_anew"), 1);
  EXPECT_EQ(log_.Count("server_unreachable"), 0);
}

TEST_F(ServerSessionTest, AServerThatDoesNotLetGoIsNotWaitedFor) {
  service_.hold_after_end = true;
  StartServer();
  StartSession();
  WaitForDesired(1);
  session_->BeginAnew("a test");
  WaitForDesired(2);
}

TEST_F(ServerSessionTest, AMessageThatCannotBeIsSaidAndAListOfThatKindBeginsAnew) {
  v1::ServerMessage message;
  message.mutable_reclaim()->add_configurations()->set_base("123");
  service_.after_desired.push_back(message);
  message.mutable_desired()->add_added()->set_base("123");
  service_.after_desired.push_back(message);
  StartServer();
  StartSession();
  WaitForDesired(2);
  EXPECT_GE(log_.Count("server_message_refused"), 2);
  EXPECT_GE(log_.Count("session_begun_anew"), 1);
}

TEST_F(ServerSessionTest, MissingCertificatesAreFoundAtTheStart) {
  session_ = std::make_unique<ServerSession>(
      ServerSession::Settings{
          .servers = {address_},
          .tls = {.ca = "/none/ca", .certificate = "/none/c", .key = "/none/k"}},
      ServerSession::Callbacks{}, log_);
  EXPECT_EQ(session_->Start().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::netagent
