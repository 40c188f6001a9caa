// What can be reached from a node, as its agent is asked and answers. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

inline constexpr size_t kMaxProbeTargets = 64;
inline constexpr absl::Duration kMaxProbeTimeout = absl::Seconds(5);

struct ProbeTarget {
  ip::Address address;
  uint16_t port = 0;  // TCP; 0: ICMP echo.

  bool operator==(const ProbeTarget&) const = default;
};

struct ProbeRequest {
  uint64_t id = 0;
  std::vector<ProbeTarget> targets;
  absl::Duration timeout;  // For each.

  bool operator==(const ProbeRequest&) const = default;
};

enum class ProbeOutcome { kNotTried, kReached, kRefused, kUnreachable, kTimedOut };

struct ProbeResult {
  ProbeTarget target;
  ProbeOutcome outcome = ProbeOutcome::kNotTried;
  absl::Duration took;
  std::string detail;

  bool operator==(const ProbeResult&) const = default;
};

// Answers the request of that id.
struct ProbeAnswer {
  uint64_t id = 0;
  std::vector<ProbeResult> results;
  std::string error;  // Why nothing was tried.

  bool operator==(const ProbeAnswer&) const = default;
};

}  // namespace spoke::ipam
