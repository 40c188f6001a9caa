// Gathers what the agent's readiness is made of (node/service_state.h), and says it when it
// changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "netagent/node/service_state.h"

namespace spoke::netagent {

// Not thread-safe; belongs to the agent's loop.
class ServiceHealth {
 public:
  // How often it looks again where nobody tells it of a change.
  static constexpr absl::Duration kLook = absl::Seconds(1);

  // All functions are called on the loop's thread, and must not block; null ones say nothing.
  struct Edges {
    const os::Clock& clock;
    std::function<std::string()>
        cni_reason;  // What keeps plugin and conflist away; empty: nothing does.
    std::function<std::vector<std::string>()> node_findings;  // Those that block, with remedies.
    // Says why there is no certificate yet, with the remedy; empty: there is one.
    std::function<std::string()> no_certificate;
    std::function<void(std::vector<std::string>)> say;  // Told why it is not ready; empty: it is.
  };
  ServiceHealth(std::string server, std::string nic, Edges edges);

  // Takes what ServerSession::Callbacks::on_outcome says.
  void OnSession(const absl::Status& outcome);
  // Takes whether the device could be read when it had to be.
  void OnNic(const absl::Status& state);
  // Looks when something has changed or kLook is over.
  void Tick();
  absl::Time NextWake() const { return edges_.say ? next_ : absl::InfiniteFuture(); }

 private:
  const Edges edges_;
  ServiceFacts facts_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
