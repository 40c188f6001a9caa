// Operators' questions to agents about how ADDs went, until they are answered or given up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/core/attach_trace.h"
#include "ipam-server/core/session.h"
#include "ipam-server/jobs/mailbox.h"

namespace spoke::ipam {

// How long an agent may take, which answers from memory. One of an older version never does.
inline constexpr absl::Duration kTracePatience = absl::Seconds(2);

// Not thread-safe; the loop owns it. Calls each `done` exactly once.
class TraceRequests {
 public:
  // Beyond it, operators are refused.
  static constexpr size_t kMost = 256;

  bool full() const { return waiting_.size() >= kMost; }
  bool empty() const { return waiting_.empty(); }

  // Request `id` was sent to the agent of `node` in `session`.
  void Add(SessionId session, uint64_t id, std::string node, TracesDone done, absl::Time now);
  // An answer to nothing, or too late, is dropped.
  void Answer(SessionId session, AttachTraces traces);
  // The session is over.
  void Drop(SessionId session, const absl::Status& why);
  void Expire(absl::Time now);

 private:
  struct Waiting {
    std::string node;
    TracesDone done;
    absl::Time until;
  };
  std::map<std::pair<SessionId, uint64_t>, Waiting> waiting_;
};

// For an agent that has not answered in time.
absl::Status NoTracesFrom(const std::string& node);

}  // namespace spoke::ipam
