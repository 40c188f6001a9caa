// Counts, for each connection of a gRPC server, the bytes of the messages that its calls have read
// whole. What a connection has sent beyond that is still on its way to a message, or never becomes
// one.
#pragma once

#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lib/ip/address.h"

namespace spoke::rpc {

// The counter. Thread-safe.
class MessageCounter {
 public:
  using Peer = std::pair<ip::Address, uint16_t>;
  using Bytes = std::shared_ptr<std::atomic<uint64_t>>;

  // Begins to count the bytes that the connection from `peer` has sent in whole messages, and what
  // belongs to each: at most kAroundMessage, of framing, of the call's header and of answers to
  // flow control (RFC 9113).
  Bytes Add(const Peer& peer);
  // Ends it, unless another connection has taken the port meanwhile.
  void Remove(const Peer& peer, const Bytes& bytes);
  // Returns the bytes of that connection; nullptr: there is none.
  Bytes Find(const Peer& peer) const;

  static constexpr uint64_t kAroundMessage = 1024;

  // Makes every call of the server that `builder` starts count for `counter`. The services must
  // read protobuf messages, not bytes.
  static void Watch(std::shared_ptr<const MessageCounter> counter, grpc::ServerBuilder& builder);

 private:
  mutable absl::Mutex mutex_;
  std::map<Peer, Bytes> bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::rpc
