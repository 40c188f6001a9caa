// Questions to agents, of operators and of the server's other threads, until they are answered or
// given up.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fmt/core.h"
#include "ipam-server/session/agent_session.h"
#include "lib/base/status.h"
#include "lib/node_api/messages.h"

namespace spoke::ipam {

// How long an agent may take that answers from memory. One of an older version never does.
inline constexpr absl::Duration kTracePatience = absl::Seconds(2);

// Returns the error of an agent that has not answered in time; `lacks`: what an older one lacks.
inline absl::Status NoAnswerFrom(const std::string& node, std::string_view lacks) {
  return absl::DeadlineExceededError(fmt::format(
      "the agent of node {} did not answer in time: it is busy, or of a version that {}", node,
      lacks));
}

// `Answer` has the `id` of its question. Not thread-safe; the loop owns it. Calls each `done`
// exactly once.
template <typename Answer>
class PendingAnswers {
 public:
  // The most questions; beyond it, who asks is refused.
  static constexpr size_t kMost = 4096;
  using Done = std::function<void(absl::StatusOr<Answer>)>;

  explicit PendingAnswers(std::string lacks) : lacks_(std::move(lacks)) {}

  bool full() const { return waiting_.size() >= kMost; }
  bool empty() const { return waiting_.empty(); }

  // Notes that question `id` was sent to the agent of `node` in `session`.
  // NOLINTNEXTLINE(readability-function-size): what is known of one question.
  void Add(SessionId session, uint64_t id, Done done, std::string node, absl::Time now,
           absl::Duration patience) {
    waiting_.emplace(std::pair(session, id),
                     Waiting{std::move(node), std::move(done), now + patience, patience});
  }

  // An answer to nothing, or too late, is dropped.
  void Take(SessionId session, Answer answer) {
    const auto it = waiting_.find({session, answer.id});
    if (it == waiting_.end()) return;
    const Done done = std::move(it->second.done);
    waiting_.erase(it);
    done(std::move(answer));
  }

  // The session is over.
  void Drop(SessionId session, const absl::Status& why) {
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

  void Expire(absl::Time now) {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      // A clock that was put back must not keep a question for longer.
      const absl::Duration left = it->second.until - now;
      if (left > absl::ZeroDuration() && left <= it->second.patience) {
        ++it;
        continue;
      }
      const Waiting expired = std::move(it->second);
      it = waiting_.erase(it);
      expired.done(NoAnswerFrom(expired.node, lacks_));
    }
  }

 private:
  struct Waiting {
    std::string node;
    Done done;
    absl::Time until;
    absl::Duration patience;
  };
  std::string lacks_;
  std::map<std::pair<SessionId, uint64_t>, Waiting> waiting_;
};

inline constexpr std::string_view kLacksTraces = "keeps no traces";
inline constexpr std::string_view kLacksProbes = "does not probe";
inline constexpr std::string_view kLacksData = "does not tell its log";
inline constexpr std::string_view kLacksMaintenance = "knows of no maintenance";
inline constexpr std::string_view kLacksTrials = "does not count connections";
// A node's table of connections may be large, and others may have asked before.
inline constexpr absl::Duration kTrialPatience = absl::Seconds(10);
using TraceRequests = PendingAnswers<node_api::AttachTracesAnswer>;
using ProbeRequests = PendingAnswers<node_api::ProbeAnswer>;
using TrialRequests = PendingAnswers<node_api::PolicyTrialAnswer>;
using NodeDataRequests = PendingAnswers<node_api::NodeDataAnswer>;

}  // namespace spoke::ipam
