// Tries what can be reached from this node, for an operator who verifies policy and for the server,
// which lets nodes probe each other. Probes go from the node's own address: those of pods are not
// the node's, so that it could not hear what is sent to them; the rules that keep spokes apart are
// the same for both.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/node_api/probes.h"

namespace spoke::netagent {

// Tries all `targets` at once: a TCP connection, closed as soon as it stands, or an ICMP echo
// (RFC 792, RFC 4443). One of a given length may not be fragmented, whatever a router has said of
// the path before (IP_PMTUDISC_PROBE of ip(7)); one that is longer than the node's own link was not
// tried. What is sent bears `mark` (SO_MARK of socket(7)), if it is not 0. Blocks up to `timeout`,
// less when `stop` becomes true. A result for each target, in order.
std::vector<node_api::ProbeResult> ProbeAll(const std::vector<node_api::ProbeTarget>& targets,
                                            absl::Duration timeout, const std::atomic<bool>& stop,
                                            uint32_t mark = 0);

// Not thread-safe; the agent's loop owns it. Probes on a thread of its own, one request at a time.
class PolicyProber {
 public:
  static constexpr size_t kMaxWaiting = 4;  // Requests; the next is answered with an error.

  // `post` runs work on the loop's thread, later, and is thread-safe; `answer` is called there. The
  // loop must not run anything of a prober that is gone.
  PolicyProber(std::function<void(std::function<void()>)> post,
               std::function<void(node_api::ProbeAnswer)> answer);
  PolicyProber(const PolicyProber&) = delete;
  PolicyProber& operator=(const PolicyProber&) = delete;
  // Gives up what is under way.
  ~PolicyProber();

  void Probe(const node_api::ProbeRequest& request);

 private:
  void Begin();

  const std::function<void(std::function<void()>)> post_;
  const std::function<void(node_api::ProbeAnswer)> answer_;
  std::deque<node_api::ProbeRequest> waiting_;  // The first one is under way when `busy_`.
  bool busy_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace spoke::netagent
