// The pods of a node that wait for addresses, and how that stands. Values and their codec. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "lib/node_api/bounds.h"

namespace spoke::v1 {
class Demand;
class Forecast;
}  // namespace spoke::v1

namespace spoke::node_api {

// The numbers of pods of each namespace that wait for addresses that the node does not have: all of
// them, not a change.
struct Demand {
  std::map<std::string, uint32_t> waiting;

  uint64_t pods() const;
  bool operator==(const Demand&) const = default;
};

// The state of what was demanded.
struct Forecast {
  std::string reason;  // The reason: what is being done, or why nothing can be.
  absl::Duration eta;  // The time from when it was said; zero: unknown.

  bool operator==(const Forecast&) const = default;
};

inline constexpr uint32_t kMaxWaitingPods = 4096;
inline constexpr size_t kMaxWaitingNamespaces = 256;
inline constexpr absl::Duration kMaxForecast = absl::Hours(24);

void ToWire(const Demand& in, v1::Demand& out);
// Reads a demand. Never fails. Takes kMaxWaitingPods pods and kMaxWaitingNamespaces namespaces; a
// node cannot serve more at once, and the rest is there when these are served.
Demand FromWire(const v1::Demand& in);

// Neither fails: a reason is cut, an ETA is rounded up to milliseconds and kept within
// kMaxForecast.
void ToWire(const Forecast& in, v1::Forecast& out);
Forecast FromWire(const v1::Forecast& in);

}  // namespace spoke::node_api
