#include "ipam-server/jobs/trace_requests.h"

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ipam {

void TraceRequests::Add(SessionId session, uint64_t id, std::string node, TracesDone done,
                        absl::Time now) {
  waiting_.emplace(std::pair(session, id),
                   Waiting{std::move(node), std::move(done), now + kTracePatience});
}

void TraceRequests::Answer(SessionId session, AttachTraces traces) {
  const auto it = waiting_.find({session, traces.id});
  if (it == waiting_.end()) return;
  const TracesDone done = std::move(it->second.done);
  waiting_.erase(it);
  done(std::move(traces));
}

void TraceRequests::Drop(SessionId session, const absl::Status& why) {
  while (true) {
    const auto it = waiting_.lower_bound({session, 0});
    if (it == waiting_.end() || it->first.first != session) return;
    const Waiting dropped = std::move(it->second);
    waiting_.erase(it);
    dropped.done(
        absl::UnavailableError(fmt::format("the agent of node {} was lost before it answered: {}",
                                           dropped.node, base::MessageOf(why))));
  }
}

void TraceRequests::Expire(absl::Time now) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    // A clock that was put back must not keep a question for longer.
    const absl::Duration left = it->second.until - now;
    if (left > absl::ZeroDuration() && left <= kTracePatience) {
      ++it;
      continue;
    }
    const Waiting expired = std::move(it->second);
    it = waiting_.erase(it);
    expired.done(NoTracesFrom(expired.node));
  }
}

absl::Status NoTracesFrom(const std::string& node) {
  return absl::DeadlineExceededError(
      fmt::format("the agent of node {} did not answer in time: it is busy, or of a version that "
                  "keeps no traces",
                  node));
}

}  // namespace spoke::ipam
