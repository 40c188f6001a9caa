// What this node holds of budgets that all nodes share: grants from the server, and what becomes of
// them when it falls silent. Pure: times are handed in, of one monotonic clock.
//
// A grant counts from when the report was sent that it answers, so that a node never holds it
// longer than the server believes. After its end the rate is held for `hold`, then halved, at once
// and again every `half_life`, and never falls below the team's part of the budget's floor, which
// no grant is made of. New connections are halved alike, down to one a second.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/node_api/budgets.h"
#include "netagent/shaping/shaping_rules.h"

namespace spoke::netagent {

enum class GrantMode : uint8_t { kFloor, kGranted, kHolding, kDecaying };

struct GrantInForce {
  std::string budget;
  std::string team;
  // The grant or what is left of it, or the part of the floor if that is more.
  units::BitRate rate = {};
  units::BitRate held = {};  // The grant or what is left of it, without the floor.
  uint32_t connections = 0;
  GrantMode mode = GrantMode::kFloor;
  absl::Duration age;  // The time since the grant was sent for; zero: there is none.

  bool operator==(const GrantInForce&) const = default;
};

// The holder is not thread-safe.
class BudgetHolder {
 public:
  // Begins a new stream: sequences begin anew; what is held stays held.
  void OnStream();
  // Notes that the report with this number is being sent.
  void OnReportSent(uint64_t sequence, absl::Time now);
  // Takes what the server says. Returns false when it is old, or answers a report that this stream
  // has not sent, and nothing has changed. Grants of budgets that are gone are passed over.
  bool OnGrants(const node_api::BudgetGrants& grants, absl::Time now);
  // Returns the sequence that was last taken in this stream; 0: none.
  uint64_t applied() const { return applied_; }

  // Returns what holds for each team of `here` (budget and team, as budgets call it, that have pods
  // on this node), and for each that is still held. A team's part of the floor is an equal one
  // among those of the budget here.
  std::vector<GrantInForce> At(absl::Time now, const std::vector<ResolvedBudget>& budgets,
                               const std::vector<std::pair<std::string, std::string>>& here) const;
  // Returns the first time after `now` at which At() says something else; InfiniteFuture: never.
  absl::Time NextChange(absl::Time now, const std::vector<ResolvedBudget>& budgets) const;

 private:
  struct Held {
    units::BitRate rate = {};
    uint32_t connections = 0;
    absl::Time from;
    absl::Duration duration;
  };
  // Returns what is left of `held`, without names and the floor.
  static GrantInForce Left(const Held& held, const ResolvedBudget& budget, absl::Time now);

  uint64_t applied_ = 0;
  // When a report was sent, by its sequence; the last few only.
  std::map<uint64_t, absl::Time> sent_;
  std::map<std::pair<std::string, std::string>, Held> held_;
};

}  // namespace spoke::netagent
