#include "lib/rpc/health_service.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/credentials.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <utility>

#include "absl/synchronization/notification.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/rpc/health_client.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "tests/support/temp_dir.h"

namespace spoke::rpc {
namespace {

namespace health = grpc::health::v1;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(20);

class HealthServiceTest : public testing::TestWithParam<bool> {
 protected:
  HealthServiceTest() {
    auto service = HealthService::Listen(
        {.address = GetParam() ? "127.0.0.1:0" : unix_,
         .not_ready = {"it starts"},
         .liveness = [this] { return alive_ ? Reasons() : Reasons{"stuck"}; }});
    service_ = *std::move(service);
    address_ = GetParam() ? fmt::format("127.0.0.1:{}", service_->port()) : unix_;
    // This is as any client of the protocol does it.
    stub_ =
        health::Health::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  }

  Health Ask(const std::string& name) { return AskHealth(address_, name, kPatience).value(); }

  std::unique_ptr<grpc::ClientReader<health::HealthCheckResponse>> Watch(
      grpc::ClientContext& context, const std::string& name) {
    health::HealthCheckRequest request;
    request.set_service(name);
    return stub_->Watch(&context, request);
  }

  const testing_support::TempDir dir_;
  const std::string unix_ = "unix:" + dir_.File("health.sock");
  std::string address_;
  std::atomic<bool> alive_ = true;
  std::unique_ptr<HealthService> service_;
  std::unique_ptr<health::Health::Stub> stub_;
};

INSTANTIATE_TEST_SUITE_P(SocketAndPort, HealthServiceTest, testing::Bool());

TEST_P(HealthServiceTest, SaysWhyItIsNotReadyAndThatItIs) {
  EXPECT_EQ(Ask("readiness"), (Health{false, {"it starts"}}));
  EXPECT_EQ(Ask(""), Ask("readiness"));
  service_->SetReadiness({"no server", "no conflist"});
  EXPECT_THAT(Ask("").reasons, ElementsAre("no server", "no conflist"));
  service_->SetReadiness({});
  EXPECT_EQ(Ask("readiness"), (Health{true, {}}));
}

TEST_P(HealthServiceTest, LivenessIsFoundOutWhenItIsAskedFor) {
  EXPECT_EQ(Ask("liveness"), (Health{true, {}}));
  alive_ = false;
  EXPECT_EQ(Ask("liveness"), (Health{false, {"stuck"}}));
}

TEST_P(HealthServiceTest, APlainClientSeesTheStandard) {
  grpc::ClientContext context;
  health::HealthCheckRequest request;
  health::HealthCheckResponse response;
  ASSERT_TRUE(stub_->Check(&context, request, &response).ok());
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("spoke-reason-bin"), 1U);

  grpc::ClientContext other;
  request.set_service("nonsense");
  EXPECT_EQ(stub_->Check(&other, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(AskHealth(address_, "nonsense", kPatience).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(HealthServiceTest, WatchSaysEachChangeOnce) {
  grpc::ClientContext context;
  const auto reader = Watch(context, "readiness");
  health::HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  service_->SetReadiness({"another reason, and the same status"});
  service_->SetReadiness({});
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  service_->SetReadiness({"gone again"});
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_P(HealthServiceTest, WatchOfLivenessHearsWithoutBeingTold) {
  grpc::ClientContext context;
  const auto reader = Watch(context, "liveness");
  health::HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  alive_ = false;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  context.TryCancel();
  reader->Finish();
}

TEST_P(HealthServiceTest, WatchOfAnUnknownServiceSaysSo) {
  grpc::ClientContext context;
  const auto reader = Watch(context, "nonsense");
  health::HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVICE_UNKNOWN);
  context.TryCancel();
  reader->Finish();
}

TEST_P(HealthServiceTest, TooManyWatchesAreRefusedAndTheRestGoesOn) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<health::HealthCheckResponse>>> readers;
  health::HealthCheckResponse response;
  for (size_t i = 0; i < HealthService::kMaxWatches; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(Watch(*contexts.back(), ""));
    ASSERT_TRUE(readers.back()->Read(&response)) << i;
  }
  grpc::ClientContext context;
  const auto reader = Watch(context, "");
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  service_->SetReadiness({});
  for (const auto& one : readers) {
    ASSERT_TRUE(one->Read(&response));
    EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  }
  for (const auto& one : contexts) one->TryCancel();
  for (const auto& one : readers) one->Finish();
}

TEST_P(HealthServiceTest, EndsWhoWatches) {
  grpc::ClientContext context;
  const auto reader = Watch(context, "");
  health::HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  service_.reset();
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_EQ(AskHealth(address_, "", kPatience).status().code(), absl::StatusCode::kUnavailable);
}

TEST_P(HealthServiceTest, ReasonsAreBounded) {
  service_->SetReadiness(Reasons(10'000, std::string(1000, 'x')));
  const Health answer = Ask("");
  EXPECT_FALSE(answer.serving);
  EXPECT_THAT(answer.reasons.back(), HasSubstr("more"));
}

TEST_P(HealthServiceTest, StandsBesideGrpcsOwn) {
  // This is a program that has switched it on for its other servers.
  grpc::EnableDefaultHealthCheckService(true);
  const testing_support::TempDir dir;
  const std::string address = "unix:" + dir.File("second.sock");
  const auto second =
      HealthService::Listen({.address = address, .not_ready = {"ours"}, .liveness = nullptr});
  grpc::EnableDefaultHealthCheckService(false);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(AskHealth(address, "", kPatience).value().reasons, ElementsAre("ours"));
  EXPECT_TRUE(AskHealth(address, "liveness", kPatience).value().serving);
}

class HealthSocketTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<HealthService>> Listen(const std::string& address) {
    return HealthService::Listen({.address = address, .not_ready = {}, .liveness = nullptr});
  }
  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("h.sock");
};

TEST_F(HealthSocketTest, IsForItsOwnerOnly) {
  const auto service = Listen("unix:" + path_);
  ASSERT_TRUE(service.ok()) << service.status();
  struct stat file {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
}

TEST_F(HealthSocketTest, OneThatLivesIsNotTakenAndAStaleOneIs) {
  auto first = Listen("unix:" + path_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Listen("unix:" + path_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another program listens"));
  EXPECT_TRUE(AskHealth("unix:" + path_, "", kPatience).ok());

  // This is what a program that was killed leaves behind: a name that nobody listens at.
  const std::string stale = dir_.File("stale.sock");
  ASSERT_EQ(::link(path_.c_str(), stale.c_str()), 0);
  first->reset();
  const auto third = Listen("unix:" + stale);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_TRUE(AskHealth("unix:" + stale, "", kPatience).value().serving);
}

TEST_F(HealthSocketTest, WhatIsNoSocketStaysAsItIs) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(Listen("unix:" + path_).status().code(), absl::StatusCode::kAlreadyExists);
  std::string content;
  std::ifstream(path_) >> content;
  EXPECT_EQ(content, "precious");
}

TEST_F(HealthSocketTest, AMissingDirectoryOrAPortInUseIsNamed) {
  const auto nowhere = Listen("unix:" + dir_.File("none") + "/h.sock");
  EXPECT_EQ(nowhere.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nowhere.status().message()), HasSubstr(dir_.File("none")));
  const auto first = Listen("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string taken = fmt::format("127.0.0.1:{}", (*first)->port());
  const auto second = Listen(taken);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(taken));
}

TEST_F(HealthSocketTest, NobodyThereIsUnavailableAndSilenceADeadline) {
  EXPECT_EQ(AskHealth("unix:" + path_, "", kPatience).status().code(),
            absl::StatusCode::kUnavailable);
  absl::Notification asked_enough;
  const auto stuck =
      HealthService::Listen({.address = "unix:" + path_, .not_ready = {}, .liveness = [&] {
                               asked_enough.WaitForNotification();
                               return Reasons();
                             }});
  ASSERT_TRUE(stuck.ok());
  EXPECT_EQ(AskHealth("unix:" + path_, "liveness", absl::Milliseconds(20)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  asked_enough.Notify();
}

}  // namespace
}  // namespace spoke::rpc
