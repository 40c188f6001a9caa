#include "netagent/node/service_health.h"

#include <utility>

namespace spoke::netagent {

ServiceHealth::ServiceHealth(std::string server, std::string nic, Edges edges)
    : edges_(std::move(edges)), facts_{.server = std::move(server), .nic = std::move(nic)} {}

void ServiceHealth::OnSession(const absl::Status& outcome) {
  facts_.session_established = facts_.session_established || outcome.ok();
  facts_.last_attempt = outcome;
  next_ = absl::InfinitePast();
}

void ServiceHealth::OnNic(const absl::Status& state) {
  facts_.nic_state = state;
  next_ = absl::InfinitePast();
}

void ServiceHealth::Tick() {
  const absl::Time now = edges_.clock.Now();
  // A clock that was set back must not keep it from looking.
  if (now < next_ && next_ - now <= kLook) return;
  next_ = now + kLook;
  if (!edges_.say) return;
  if (edges_.cni_reason) facts_.cni_reason = edges_.cni_reason();
  if (edges_.no_certificate) facts_.no_certificate = edges_.no_certificate();
  if (edges_.node_findings) facts_.node_findings = edges_.node_findings();
  edges_.say(ReasonsNotReady(facts_));
}

}  // namespace spoke::netagent
