// By which rules nodes get and give back addresses. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "ipam-server/pools/pool_plan.h"
#include "ipam-server/release/breaker.h"
#include "ipam-server/release/release_plan.h"

namespace spoke::ipam {

// How far agents' reports of conflicts put addresses into quarantine by themselves.
struct ConflictPolicy {
  absl::Duration quarantine = absl::Minutes(10);  // Begun anew by each report.
  uint32_t per_node = 4;                          // The addresses at a time.
  double share = 0.02;                            // The share of a pool at a time.
  uint64_t floor = 8;                             // The addresses of a pool, however small it is.
};

struct FleetPolicy {
  TargetPolicy target;
  absl::Duration cooldown = absl::Seconds(30);
  // The end of a large job, spread over an hour, stays below the breaker, whose window is one round
  // of reviews; what suddenly frees many at once does not.
  ReleasePolicy release{.jitter_spread = absl::Hours(1)};
  BreakerPolicy breaker{.window = absl::Minutes(1)};
  ConflictPolicy conflict;
  // A NIC of Azure takes 256 IP configurations, the primary one included.
  uint32_t nic_configurations = 255;
  // The cloud says which address a new entry gets; otherwise we do.
  bool cloud_chooses = false;
  std::string name_prefix = "spoke-";  // The prefix of our entries' names.
  // The machines with addresses under one name: a replaced one has them until the cloud says gone.
  uint32_t machines_per_name = 4;
  // How long the record of a machine stays that holds no address, and whose name another has: until
  // the cloud says that it is gone, or until what it was granted of budgets has ended at the
  // latest, by the longest times that a budget can have (policy/kinds/budget_fields.cc).
  absl::Duration replaced_stays = absl::Hours(9);
  // How long an attached address must be off its NIC before that is believed.
  absl::Duration lost_after = absl::Minutes(1);
};

}  // namespace spoke::ipam
