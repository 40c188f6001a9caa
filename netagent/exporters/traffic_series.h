// Shows a node's traffic as series of metrics, few of them however many pods and namespaces there
// are: most bytes are counted in series of the pods and namespaces that move most, the rest in
// "_other".
//
// Which namespace or pod has series of its own is sticky. A pod gets them once it has moved
// SeriesLimits::pod_bytes, and has them until it ends; they begin at 0, and what it moved before
// stays in "_other". A namespace has them until it has no pods and another wants its place. So no
// series ever falls while it lives, and what the series show adds up to the totals, except for what
// series showed that have ended.
//
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/telemetry/samples.h"
#include "netagent/traffic/traffic_totals.h"

namespace spoke::netagent {

struct SeriesLimits {
  size_t namespaces = 4;               // Namespaces with series of their own.
  size_t pods = 6;                     // Pods with series of their own.
  uint64_t pod_bytes = 1'000'000'000;  // The bytes that a pod moves before it gets them.

  bool operator==(const SeriesLimits&) const = default;
};

// The label of a rest that has no series of its own. No namespace, pod or class has this name.
inline constexpr std::string_view kOtherSeries = "_other";

// The bytes of one class.
struct Flow {
  uint64_t sent = 0;
  uint64_t received = 0;
  bool operator==(const Flow&) const = default;
};
using Flows = std::map<std::string, Flow>;

// The past that the series of the present depend on. It is a value, so that it can be kept from one
// agent to the next.
struct SeriesState {
  // A pod's key has all three; a namespace's has only the first.
  struct Key {
    std::string pod_namespace;
    std::string pod = {};
    std::string uid = {};
    auto operator<=>(const Key&) const = default;
  };
  struct Slot {
    Flows base;   // The bytes counted in "_other".
    Flows shown;  // The bytes last shown by series of its own.
    bool operator==(const Slot&) const = default;
  };
  struct Level {
    std::map<Key, Slot> slots;
    Flows departed;  // The bytes that series have shown that are no more.
    Flows other;     // The bytes that "_other" has shown last.
    bool operator==(const Level&) const = default;
  };
  // The epoch of the totals; infinite: there were none yet.
  absl::Time epoch = absl::InfinitePast();
  Level namespaces;
  Level pods;

  bool operator==(const SeriesState&) const = default;
};

class TrafficSeries {
 public:
  // Takes up from where another one was.
  explicit TrafficSeries(const SeriesLimits& limits, SeriesState state = {})
      : limits_(limits), state_(std::move(state)) {}

  // Returns spoke_node_bytes_total and _packets_total, spoke_namespace_bytes_total,
  // spoke_pod_bytes_total. `totals` are not older than those of the last call; a change of their
  // epoch begins anew.
  std::vector<telemetry::Samples> Update(const TrafficTotals& totals);

  const SeriesState& state() const { return state_; }
  const SeriesLimits& limits() const { return limits_; }

 private:
  void UpdateNamespaces(const TrafficTotals& totals);
  void UpdatePods(const TrafficTotals& totals);

  const SeriesLimits limits_;
  SeriesState state_;
  // The namespaces of the last Update(); nullopt: there was none.
  std::optional<std::set<SeriesState::Key>> seen_;
};

}  // namespace spoke::netagent
