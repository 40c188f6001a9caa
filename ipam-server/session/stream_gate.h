// What one agent's stream may say, and what waits to be written to it. Pure: the edge
// (node_service.h) reads, writes and locks.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/session.h"

namespace spoke::ipam {

// Who may speak, and in which order. Not thread-safe.
class StreamGate {
 public:
  struct Rules {
    std::string server_version;
    bool check_peer_name = true;  // False only where TLS is off.
  };
  // `names` and `uris` are those that the certificate at the other end proves. Borrows `rules`.
  StreamGate(const Rules& rules, std::vector<std::string> names, std::vector<std::string> uris)
      : rules_(rules), names_(std::move(names)), uris_(std::move(uris)) {}

  // Whether a message may come now: the hello first and once. Errors: kInvalidArgument.
  absl::Status CheckOrder(bool is_hello) const;
  // Admits the stream, and makes `hello` say what the certificate proves. Returns whether it proves
  // which instance the node is on. Errors: kPermissionDenied
  // (it does not bear the node's name, or proves another instance); kInvalidArgument (what it
  // says of the node cannot be); kFailedPrecondition (the versions do not work together).
  absl::StatusOr<bool> Admit(node_api::Hello& hello);

  // Returns whose stream it is; nullopt: it is not admitted.
  const std::optional<NodeKey>& node() const { return node_; }

 private:
  const Rules& rules_;
  const std::vector<std::string> names_;
  const std::vector<std::string> uris_;
  std::optional<NodeKey> node_;
};

// What waits to be written to one agent, one message at a time, and the end of its stream, which
// comes after that. Not thread-safe.
template <typename Message>
class StreamWrites {
 public:
  // Messages that wait for one slow agent. The loop answers what it is told, so more than a few
  // mean that the agent has stopped reading.
  static constexpr size_t kMaxUnsent = 1024;
  enum class Act {
    kNothing,
    kWrite,   // front(), and OnWritten() when that is done.
    kFinish,  // The stream, with why().
  };

  // Queues a message. One too many ends the stream with kResourceExhausted; no more is taken.
  void Push(Message message) {
    if (end_) return;
    if (unsent_.size() < kMaxUnsent) {
      unsent_.push_back(std::move(message));
      return;
    }
    end_ = absl::ResourceExhaustedError("the agent does not read what it is sent");
    unsent_.erase(unsent_.begin() + (writing_ ? 1 : 0), unsent_.end());
  }
  // The first reason counts.
  void End(absl::Status why) {
    if (!end_) end_ = std::move(why);
  }
  // Ends the stream without what waits to be written. Returns whether a write is on its way: it may
  // never be done, when the agent does not read.
  bool Abort(absl::Status why) {
    end_ = std::move(why);
    unsent_.erase(unsent_.begin() + (writing_ ? 1 : 0), unsent_.end());
    return writing_;
  }
  // `ok`: false when the stream is broken, so that nothing more can be written.
  void OnWritten(bool ok) {
    writing_ = false;
    unsent_.pop_front();
    if (!ok) unsent_.clear();
  }

  // What is to be done now; each act is said once.
  Act Next() {
    if (writing_ || finished_) return Act::kNothing;
    if (!unsent_.empty()) {
      writing_ = true;
      return Act::kWrite;
    }
    if (!end_) return Act::kNothing;
    finished_ = true;
    return Act::kFinish;
  }
  // Returns the first message, which stays where it is until OnWritten().
  const Message& front() const { return unsent_.front(); }
  const absl::Status& why() const { return *end_; }
  bool has_ended() const { return end_.has_value(); }

 private:
  std::deque<Message> unsent_;  // The front one is in flight when `writing_`.
  bool writing_ = false;
  bool finished_ = false;
  std::optional<absl::Status> end_;
};

}  // namespace spoke::ipam
