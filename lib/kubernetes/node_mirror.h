// All nodes of the cluster, as one list and one watch tell them: which call to make next, and what
// its answer means. Pure: no clock, no socket.
//
// A watch that breaks goes on where it was; one whose version is forgotten (410) begins with a list
// again, which replaces everything at its end. Until then the nodes are as they were, and trouble()
// says why they may be old.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/base/backoff.h"
#include "lib/http/message.h"
#include "lib/kubernetes/node_objects.h"

namespace spoke::kubernetes {

// Not thread-safe. Memory is bounded by the cluster: one Node a node, and one line of a watch.
class NodeMirror {
 public:
  // The longest line of a watch: an object has 1.5 MiB at most.
  static constexpr size_t kMaxLineBytes = size_t{4} << 20U;
  // For how long nothing may come from a watch, which has a bookmark about every minute.
  static constexpr absl::Duration kLongestSilence = absl::Minutes(3);

  struct Counters {
    uint64_t lists = 0;      // Lists that were completed.
    uint64_t watches = 0;    // Watches that were begun.
    uint64_t forgotten = 0;  // Versions that the API server had forgotten.
    uint64_t unreadable = 0;
  };

  // `seed`: of the jitter between attempts.
  explicit NodeMirror(uint64_t seed = 1) : random_(seed) {}

  // Returns the call to make at `now`; nullopt: one is under way, or it is too early for the next.
  // Whoever gets one calls OnPart() and OnEnd() for it, or OnEnd() alone.
  std::optional<http::Request> Next(absl::Time now);
  // When Next() has a call, if nothing happens before; InfiniteFuture while one is under way.
  absl::Time NextAt() const;
  // Takes a part of the body of a watch. Returns whether the call is still of use; if not it counts
  // as ended, whatever else it brings.
  bool OnPart(std::string_view body, absl::Time now);
  // The call has ended.
  void OnEnd(const absl::StatusOr<http::Response>& response, absl::Time now);

  // Takes the answer to a patch, unless the watch has told a newer version, or the end, already.
  void Take(Node node);

  // By name; empty before complete().
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  // Whether all nodes have been listed once.
  bool complete() const { return complete_; }
  // OK: the nodes are as the API server told them a moment ago. kFailedPrecondition: it refuses us;
  // others: it cannot be reached, is too slow, or says what cannot be read.
  absl::Status Trouble(absl::Time now) const;
  const Counters& counters() const { return counters_; }

 private:
  enum class Call : uint8_t { kNone, kList, kWatch };

  void OnListPage(const http::Response& response, absl::Time now);
  absl::Status OnLines(std::string_view body, absl::Time now);
  absl::Status OnLine(std::string_view line, absl::Time now);
  void Put(Node node);
  void Fail(const absl::Status& why, bool list_anew, absl::Time not_before, absl::Time now);
  void ListAnew();
  double Jitter();

  uint64_t random_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Node> listing_;  // The pages so far.
  std::string next_page_;
  std::string version_;  // Where the watch goes on; empty: a list is due.
  std::string line_;     // The beginning of a line whose end has not come.
  Call call_ = Call::kNone;
  absl::Time not_before_ = absl::InfinitePast();
  absl::Time heard_ = absl::InfinitePast();
  absl::Time begun_ = absl::InfinitePast();
  int failures_ = 0;
  bool complete_ = false;
  absl::Status trouble_ = absl::UnavailableError("the nodes have not been listed yet");
  Counters counters_;
};

}  // namespace spoke::kubernetes
