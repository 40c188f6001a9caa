// Asks the server what time it is, over the connection of the agent's session: by a second call of
// NodeService.Connect, which says nothing and is ended as soon as the server has begun to answer.
// The server says its time there (rpc::kTimeKey). That is some hundred bytes, and no session.
#pragma once

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/node_checks/services/service_answers.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace spoke::netagent {

// Thread-safe; one thread at a time may Ask().
class ServerClock {
 public:
  // How long the server may take. Its answer says less, the later it comes.
  static constexpr absl::Duration kPatience = absl::Seconds(2);

  // Takes the connection of the session that begins; it is asked as long as the session keeps it.
  void OnConnection(const std::shared_ptr<grpc::Channel>& connection);

  // Asks, and waits. nullopt: there is no connection, no answer, or one without a time, as of a
  // server that is older.
  std::optional<node_checks::ClockDifference> Ask();

  // Ends the Ask() that is under way, and all that come.
  void Interrupt();

 private:
  absl::Mutex mutex_;
  std::weak_ptr<grpc::Channel> connection_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* asking_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace spoke::netagent
