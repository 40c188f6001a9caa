// The targets that can be reached from a node, as an operator or the server asks and the agent
// answers. Values and their codec. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/node_api/fields.h"

namespace spoke::v1 {
class ProbeRequest;
class ProbeResults;
}  // namespace spoke::v1

namespace spoke::node_api {

struct ProbeTarget {
  ip::Address address;
  uint16_t port = 0;  // The TCP port; 0: ICMP echo.
  // The length of an echo's IP packet in bytes, which may not be fragmented then; 0: the shortest.
  uint16_t bytes = 0;

  bool operator==(const ProbeTarget&) const = default;
};

struct ProbeRequest {
  uint64_t id = 0;
  std::vector<ProbeTarget> targets;
  absl::Duration timeout;  // The time limit for each target.

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

// The answer to the request of that id.
struct ProbeAnswer {
  uint64_t id = 0;
  std::vector<ProbeResult> results;  // The results, in the order of the targets.
  std::string error;                 // The reason why nothing was tried.

  bool operator==(const ProbeAnswer&) const = default;
};

inline constexpr int kMaxProbeTargets = 64;
inline constexpr uint16_t kMaxProbeBytes = 9216;  // The largest frames that networks carry.
inline constexpr absl::Duration kMaxProbeTimeout = absl::Seconds(5);

void ToWire(const ProbeRequest& in, v1::ProbeRequest& out);
// A timeout is kept within kMaxProbeTimeout. Errors: kInvalidArgument (a target that is none, one
// of more than kMaxProbeBytes, more than kMaxProbeTargets).
absl::StatusOr<ProbeRequest> FromWire(const v1::ProbeRequest& in);

void ToWire(const ProbeAnswer& in, v1::ProbeResults& out);
// The length of the packets is not said again. Takes the first of more than kMaxProbeTargets
// results; texts are cut. Errors: kInvalidArgument
// (an address or port that is none).
absl::StatusOr<ProbeAnswer> FromWire(const v1::ProbeResults& in);

}  // namespace spoke::node_api
