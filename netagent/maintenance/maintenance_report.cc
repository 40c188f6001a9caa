#include "netagent/maintenance/maintenance_report.h"

namespace spoke::netagent {

void MaintenanceReport::OnSession() {
  told_.reset();
  next_ = absl::InfinitePast();
}

void MaintenanceReport::Tick() {
  const absl::Time now = edges_.clock.Now();
  if (now < next_) return;
  // Where nobody announces anything, all is said with the first word.
  next_ = edges_.read ? now + kLook : absl::InfiniteFuture();
  const std::optional<node_api::Maintenance> known =
      edges_.read ? edges_.read() : node_api::Maintenance();
  if (!known || known == told_) return;
  told_ = known;
  edges_.tell(*known);
}

}  // namespace spoke::netagent
