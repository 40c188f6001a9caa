// The settings of the rounds in which nodes probe each other. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace spoke::ipam {

struct ReachabilitySettings {
  absl::Duration interval = absl::Seconds(20);  // A round each; zero: nodes do not probe.
  uint32_t peers = 5;                           // How many others each node probes in a round.
  absl::Duration window = absl::Minutes(3);     // For how long a probe counts.
  std::string group_label = "topology.kubernetes.io/zone";

  bool operator==(const ReachabilitySettings&) const = default;
};

}  // namespace spoke::ipam
