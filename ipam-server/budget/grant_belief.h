// What one node may believe that it holds for one team of a budget, as the server can know it.
// Pure.
//
// A node has one of the grants that it was sent since the one that it last said it applies, and
// after the grant's end what its own rules leave of it: held, then halved again and again. So the
// largest of them counts, for as long as the node can have it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "lib/units/quantity.h"

namespace spoke::ipam {

// The most by which a node's clock may be slower than ours.
inline constexpr double kClockMargin = 1.01;

// How often a rate has been halved by then, at least; from kHalvings on nothing is left.
int HalvingsAt(absl::Time until, absl::Duration half_life, absl::Time now);

// What the rules of a node leave of `rate`, whose halvings begin at `until`: at most. It rounds up;
// after kHalvings nothing is left. `half_life` not above 0: nothing is left from `until` on.
inline constexpr int kHalvings = 40;
units::BitRate DecayedRate(units::BitRate rate, absl::Time until, absl::Duration half_life,
                           absl::Time now);

// Not thread-safe.
class GrantBelief {
 public:
  // Notes that it may hold this from `message` on, undiminished until `until` if nothing follows.
  // Either the message was sent, and a `rate` of zero means that it takes the grant away; or the
  // node says that it holds it after it has applied that message, and it is more than was known.
  // Numbers of messages rise over all streams of a node.
  void Add(uint64_t message, units::BitRate rate, uint32_t connections, absl::Time until);
  // The node applies this message: what was sent before it is over.
  void OnApplied(uint64_t message);
  // Nodes hold grants so much longer than was thought.
  void Extend(absl::Duration by);

  units::BitRate RateAt(absl::Time now, absl::Duration half_life) const;
  // A node keeps them as long as any of the rate is left.
  uint32_t ConnectionsAt(absl::Time now, absl::Duration half_life) const;
  bool empty() const { return grants_.empty(); }

 private:
  struct Grant {
    uint64_t message = 0;
    units::BitRate rate = {};
    uint32_t connections = 0;
    absl::Time until;  // The end of the time in which it is held undiminished.
  };
  // A node that does not say what it applies costs memory for no more than so many.
  static constexpr size_t kMost = 6;
  void DropNothing();
  absl::InlinedVector<Grant, 2> grants_;
};

}  // namespace spoke::ipam
