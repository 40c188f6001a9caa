// The nodes of the cluster at its API server: one list and one watch, and writes, over a Transport
// that it shares with nobody. Decides nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/http/transport.h"
#include "lib/kubernetes/api.h"
#include "lib/kubernetes/node_mirror.h"
#include "lib/os/clock.h"

namespace spoke::kubernetes {

// Not thread-safe: one thread owns it, and the transport.
class NodeClient {
 public:
  struct Options {
    ClusterAccess access;
    size_t max_writes = 64;                       // Under way at once.
    absl::Duration patience = absl::Seconds(10);  // With a write, and with a page of a list.
    uint64_t seed = 1;                            // Of the jitter between attempts.
  };
  // The end of a write. Errors: kAborted (the node has changed: look again); kNotFound (it is
  // gone); kFailedPrecondition (refused: an operator has to act); others: as http::Completion and
  // StatusOfAnswer(), worth another attempt.
  struct Written {
    std::string node;
    absl::Status status;
    bool throttled = false;  // The API server has no room (429).
  };

  // Borrows the transport, which has to allow `max_writes` connections and one, and the clock.
  NodeClient(Options options, http::Transport& transport, const os::Clock& clock)
      : options_(std::move(options)),
        transport_(transport),
        clock_(clock),
        mirror_(options_.seed) {}

  // How many writes may be begun now: none while the API server has asked to wait.
  size_t room() const;
  // Begins a write of that node; its end comes from Step().
  void Write(std::string node, http::Request request);
  // Moves everything on, for `wait` at the longest, and sooner when something has happened.
  std::vector<Written> Step(absl::Duration wait);
  // Makes the present or next Step() return. Any thread may call it.
  void Wake() { transport_.Wake(); }

  const NodeMirror& mirror() const { return mirror_; }
  size_t writing() const { return writing_.size(); }

 private:
  struct Writing {
    std::string node;
    bool is_json_patch = false;
  };

  // Returns the id; nullopt: it could not be sent, and `why` says so.
  std::optional<uint64_t> Send(http::Request request, absl::Duration timeout, absl::Status& why);
  void Observe();
  Written EndOf(const Writing& writing, const absl::StatusOr<http::Response>& response);

  const Options options_;
  http::Transport& transport_;
  const os::Clock& clock_;
  NodeMirror mirror_;
  uint64_t last_id_ = 0;
  std::optional<uint64_t> observing_;  // The list or watch under way.
  std::map<uint64_t, Writing> writing_;
  std::vector<Written> unsent_;
  absl::Time paused_until_ = absl::InfinitePast();
};

}  // namespace spoke::kubernetes
