#include "netagent/node/server_clock.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "lib/os/clock.h"
#include "lib/rpc/time_key.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::netagent {
namespace {

// Returns the time in the server's first metadata; nullopt: there is none.
std::optional<absl::Time> TimeIn(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerInitialMetadata();
  const auto found = metadata.find(rpc::kTimeKey);
  int64_t milliseconds = 0;
  if (found == metadata.end() ||
      !absl::SimpleAtoi(absl::string_view(found->second.data(), found->second.size()),
                        &milliseconds)) {
    return std::nullopt;
  }
  return absl::FromUnixMillis(milliseconds);
}

}  // namespace

void ServerClock::OnConnection(const std::shared_ptr<grpc::Channel>& connection) {
  const absl::MutexLock lock(&mutex_);
  connection_ = connection;
}

std::optional<node_checks::ClockDifference> ServerClock::Ask() {
  const os::MonotonicClock uptime;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  std::shared_ptr<grpc::Channel> connection;
  {
    const absl::MutexLock lock(&mutex_);
    connection = connection_.lock();
    if (interrupted_ || connection == nullptr) return std::nullopt;
    asking_ = &context;
  }
  const auto stub = v1::NodeService::NewStub(connection);
  // The time of day may be set meanwhile, so how long it takes is measured by another clock.
  const absl::Time asked = absl::Now();
  const absl::Time began = uptime.Now();
  const auto stream = stub->Connect(&context);
  stream->WaitForInitialMetadata();
  const absl::Duration took = uptime.Now() - began;
  const std::optional<absl::Time> server = TimeIn(context);
  context.TryCancel();
  (void)stream->Finish();
  {
    const absl::MutexLock lock(&mutex_);
    asking_ = nullptr;
  }
  if (!server) return std::nullopt;
  return node_checks::CompareClocks(asked, asked + took, *server);
}

void ServerClock::Interrupt() {
  const absl::MutexLock lock(&mutex_);
  interrupted_ = true;
  if (asking_ != nullptr) asking_->TryCancel();
}

}  // namespace spoke::netagent
