// Tells the server what the checks of the node find: at the beginning of a session, and when
// something new has been found for a while or something is over.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/node_api/node_findings.h"
#include "lib/node_checks/examine.h"
#include "lib/os/clock.h"

namespace spoke::netagent {

// Returns them as the server is told of them: blocking ones first.
node_api::NodeFindings SaidOf(const std::vector<node_checks::Finding>& findings);

// Not thread-safe; belongs to the agent's loop.
class FindingsReport {
 public:
  // How often it looks for what has changed; the checks are made once a minute.
  static constexpr absl::Duration kLook = absl::Seconds(5);
  // How long something has to be found before it is told. A node that starts lacks things that come
  // by themselves, the network configuration for one.
  static constexpr absl::Duration kSettle = absl::Seconds(30);

  // Both functions are called on the loop's thread, and must not block. A null `read` finds nothing
  // and says nothing.
  struct Edges {
    const os::Clock& clock;
    std::function<std::vector<node_checks::Finding>()> read;
    std::function<void(const node_api::NodeFindings&)> tell;
  };
  explicit FindingsReport(Edges edges) : edges_(std::move(edges)) {}

  // Notes that a session has begun: its server knows of nothing.
  void OnSession();
  // Looks when kLook is over.
  void Tick();
  // Returns what is found now, as of the last look.
  std::vector<node_api::NodeFinding> latest() const;
  absl::Time NextWake() const { return edges_.read ? next_ : absl::InfiniteFuture(); }

 private:
  struct Seen {
    node_api::NodeFinding finding;
    absl::Time since;
  };
  // Takes what is found now, and returns what of it is to be told.
  node_api::NodeFindings Settled(std::vector<node_api::NodeFinding> found, absl::Time now);

  const Edges edges_;
  std::vector<Seen> seen_;
  node_api::NodeFindings told_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
