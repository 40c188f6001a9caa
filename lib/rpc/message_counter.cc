#include "lib/rpc/message_counter.h"

#include <google/protobuf/message_lite.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_interceptor.h>

#include <optional>
#include <vector>

#include "lib/rpc/peer_name.h"

namespace spoke::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;

// Counts the messages that one call reads.
class CountingCall final : public grpc::experimental::Interceptor {
 public:
  CountingCall(const MessageCounter& counter, grpc::experimental::ServerRpcInfo& info)
      : counter_(counter), info_(info) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      Count(static_cast<const google::protobuf::MessageLite*>(methods->GetRecvMessage()));
    }
    methods->Proceed();
  }

 private:
  // Counts a message; nullptr: there is no more.
  void Count(const google::protobuf::MessageLite* message) {
    if (message == nullptr) return;
    if (!bytes_) bytes_ = counter_.Find(ParsePeerName(info_.server_context()->peer()));
    if (*bytes_ == nullptr) return;
    (*bytes_)->fetch_add(message->ByteSizeLong() + MessageCounter::kAroundMessage,
                         std::memory_order_release);
  }

  const MessageCounter& counter_;
  grpc::experimental::ServerRpcInfo& info_;
  std::optional<MessageCounter::Bytes> bytes_;  // Found with the first message.
};

class CountingCalls final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CountingCalls(std::shared_ptr<const MessageCounter> counter)
      : counter_(std::move(counter)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return new CountingCall(*counter_, *info);
  }

 private:
  const std::shared_ptr<const MessageCounter> counter_;
};

}  // namespace

MessageCounter::Bytes MessageCounter::Add(const Peer& peer) {
  const absl::MutexLock lock(&mutex_);
  Bytes& bytes = bytes_[peer];
  bytes = std::make_shared<std::atomic<uint64_t>>(0);
  return bytes;
}

void MessageCounter::Remove(const Peer& peer, const Bytes& bytes) {
  const absl::MutexLock lock(&mutex_);
  const auto found = bytes_.find(peer);
  if (found != bytes_.end() && found->second == bytes) bytes_.erase(found);
}

MessageCounter::Bytes MessageCounter::Find(const Peer& peer) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = bytes_.find(peer);
  return found == bytes_.end() ? nullptr : found->second;
}

void MessageCounter::Watch(std::shared_ptr<const MessageCounter> counter,
                           grpc::ServerBuilder& builder) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> creators;
  creators.push_back(std::make_unique<CountingCalls>(std::move(counter)));
  builder.experimental().SetInterceptorCreators(std::move(creators));
}

}  // namespace spoke::rpc
