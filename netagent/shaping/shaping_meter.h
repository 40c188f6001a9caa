// Finds what flows use, could use and were refused, from two readings. Pure.
//
// A flow can use a little more than it did within kDemandWindow (kHeadroom), and several times what
// it does (kGrowth), but no less than kLeastWanted, while it is held back: its class has dropped,
// or waits, or it fills all of what it, or its team, may. Once it is not held back any more, it can
// grow as much again as it just has. It can never use more than the limit of the pod alone. In
// short: what it had or was given, and does not use, shall be free within seconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "netagent/shaping/budget_holder.h"
#include "netagent/shaping/shaping_plan.h"
#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

inline constexpr double kHeadroom = 1.1;
inline constexpr double kGrowth = 4;
inline constexpr units::BitRate kLeastWanted{1'000'000};
inline constexpr absl::Duration kDemandWindow = absl::Seconds(2);

// The use of one flow over the last interval; rates are of payload.
struct FlowUse {
  units::BitRate offered;  // The rate of what came to the queue.
  units::BitRate passed;   // The rate of what left the queue; without a class it is the same.
  units::BitRate demand;
  // The rate of what was offered and not passed; in shadow, of what is above its bound.
  units::BitRate throttled;
  bool held_back = false;
  uint64_t connections = 0;  // The number of new connections a second.
  uint64_t refused_connections = 0;
};

// The totals for metrics, which only grow.
struct ShapingTotals {
  uint64_t dropped_packets = 0;
  absl::Duration throttled_for;  // The time for which some flow of it was held back.
  units::ByteCount passed;       // The payload that has passed.
  units::ByteCount throttled;    // The payload that was held back; in Shadow, would have been.

  bool operator==(const ShapingTotals&) const = default;
};

// The meter is not thread-safe.
class ShapingMeter {
 public:
  // Takes a reading. `plan` is the one that was in force during the interval that ends at `now`.
  // Totals that went back (a class was made anew) count from 0, as do those of flows that are new;
  // the very first reading only says where to count from. A reading that is not later than the one
  // before is passed over.
  void OnReading(const ShapingReading& reading, const ShapingPlan& plan,
                 const std::vector<GrantInForce>& grants, absl::Time now);

  const std::map<ShapedFlowKey, FlowUse>& flows() const { return flows_; }
  // Returns the demand of each flow, as PlanShaping() wants it.
  std::map<ShapedFlowKey, units::BitRate> Demand() const;
  // Returns a row for each of `grants`: flows of the same budget and team together.
  std::vector<node_api::BudgetUse> Uses(const ShapingPlan& plan,
                                        const std::vector<GrantInForce>& grants) const;
  // Returns whether a team that was not held back at the reading before is now, and could use more
  // than its grant.
  bool newly_held_back() const { return newly_held_back_; }
  // Returns the totals, by budget ("": limits alone) and direction.
  const std::map<std::pair<std::string, TrafficDirection>, ShapingTotals>& totals() const {
    return totals_;
  }

 private:
  struct Sample {
    absl::Time at;
    units::BitRate rate;
  };
  struct Seen {
    ShapedFlowReading flow;
    ShapeClassReading queue;
    std::vector<Sample> recent;  // The rates within kDemandWindow, with headroom.
    units::BitRate used;         // The rate at the reading before.
    bool held_back = false;      // Whether it was held back then.
  };
  // The use of one flow in the interval.
  struct Step {
    const PlannedFlow* flow = nullptr;
    FlowUse use;
    uint64_t dropped_packets = 0;
    units::BitRate ceil;  // The ceil of its class, as payload; 0: it has no class.
  };
  // Measures one step for each flow of the plan, in its order.
  std::vector<Step> Measure(const ShapingReading& reading, const ShapingPlan& plan,
                            absl::Duration interval);
  static void MarkFullTeams(std::vector<Step>& steps, const std::vector<GrantInForce>& grants);
  static void MarkShadow(std::vector<Step>& steps, const ShapingPlan& plan);
  void EstimateDemand(Step& step, absl::Time now);
  void AddToTotals(const std::vector<Step>& steps, absl::Duration interval);
  void CompareTeams(const std::vector<Step>& steps, const std::vector<GrantInForce>& grants);

  std::optional<absl::Time> last_;
  std::map<ShapedFlowKey, Seen> seen_;
  std::map<ShapedFlowKey, FlowUse> flows_;
  std::map<std::pair<std::string, TrafficDirection>, ShapingTotals> totals_;
  // The budgets and teams that are held back.
  std::set<std::pair<std::string, std::string>> held_back_;
  bool newly_held_back_ = false;
};

}  // namespace spoke::netagent
