// A server of one service that agents' sessions are tested against, over real gRPC.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "lib/ip/address.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::netagent {

// Answers Hello with Welcome and one block, and each report with its acknowledgement; keeps what it
// hears. When told to, it ends the stream after a report, or is slow: acknowledges reports only
// when the agent acknowledges a desired state.
class SmallServer final : public v1::NodeService::Service {
 public:
  grpc::Status Connect(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ServerMessage, v1::AgentMessage>* stream) override {
    v1::AgentMessage message;
    uint64_t reported = 0;
    for (size_t read = 0; read < reads && stream->Read(&message); ++read) {
      {
        absl::MutexLock lock(&mutex_);
        heard_.push_back(message);
      }
      if (!refuse_as.empty()) {
        context->AddTrailingMetadata("spoke-version", refuse_as);
        return {grpc::StatusCode::FAILED_PRECONDITION, "the hello is refused"};
      }
      if (message.has_hello()) {
        v1::ServerMessage welcome;
        welcome.mutable_welcome()->set_session_epoch(1);
        welcome.mutable_welcome()->set_server_version(version);
        stream->Write(welcome);
        v1::ServerMessage desired;
        desired.mutable_desired()->set_version(1);
        desired.mutable_desired()->set_full(true);
        v1::IpConfiguration& block = *desired.mutable_desired()->add_added();
        block.set_base(ip::Address::Parse("10.1.0.16")->ToBytes());
        block.set_prefix_length(28);
        stream->Write(desired);
        for (const v1::ServerMessage& more : after_desired) stream->Write(more);
      }
      if (message.has_report() && hang_up_after_report) return grpc::Status::OK;
      if (message.has_report()) reported = message.report().sequence();
      if (slow ? message.has_ack() : message.has_report()) {
        v1::ServerMessage ack;
        ack.mutable_report_ack()->set_sequence(reported);
        stream->Write(ack);
      }
    }
    // A server that is stuck waits until the stream is cut.
    while ((hold_after_end || reads != SIZE_MAX) && !context->IsCancelled()) {
      absl::SleepFor(absl::Milliseconds(5));
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
  bool hold_after_end = false;
  bool slow = false;
  size_t reads = SIZE_MAX;  // After so many messages of a stream it reads no more, and holds it.
  std::string version;
  std::string refuse_as;  // If not empty, it refuses every hello, as a server of this version does.
  std::vector<v1::ServerMessage> after_desired;

 private:
  absl::Mutex mutex_;
  std::vector<v1::AgentMessage> heard_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::netagent
