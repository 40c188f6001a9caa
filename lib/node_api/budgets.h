// The use that a node makes of budgets that all nodes share, and what it may use of them. Values
// and their codec. Pure. Rates are of payload, over all of one team's pods of the node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/node_api/fields.h"
#include "lib/units/quantity.h"

namespace spoke::v1 {
class BudgetGrants;
class BudgetReport;
}  // namespace spoke::v1

namespace spoke::node_api {

struct BudgetUse {
  std::string budget;
  std::string team;
  units::BitRate usage = {};   // The usage over the last second or so.
  units::BitRate demand = {};  // The rate that it could use, as far as the node can tell.
  units::BitRate held = {};    // The grant in force, or what is left of it.
  // The rate that was held back or dropped; in Shadow, that would have been.
  units::BitRate throttled = {};
  uint32_t connections = 0;          // The new ones a second that passed.
  uint32_t held_connections = 0;     // The new ones a second of the grant in force.
  uint32_t refused_connections = 0;  // The refused ones a second.

  bool operator==(const BudgetUse&) const = default;
};

// All budgets and teams that have pods on the node or a grant, not a change.
struct BudgetReport {
  uint64_t sequence = 0;  // The number, from 1 with each stream.
  uint64_t applied = 0;   // The latest BudgetGrants in force; 0: none of this stream.
  std::vector<BudgetUse> uses;

  bool operator==(const BudgetReport&) const = default;
};

struct BudgetGrant {
  std::string budget;
  std::string team;
  units::BitRate rate = {};
  uint32_t connections = 0;  // The new TCP connections a second; 0: not limited.
  absl::Duration duration;

  bool operator==(const BudgetGrant&) const = default;
};

// All grants of the node, not a change: what is not here has none.
struct BudgetGrants {
  uint64_t sequence = 0;  // The number, from 1 with each stream.
  uint64_t answers = 0;   // The report that was last received: durations count from its sending.
  std::vector<BudgetGrant> grants;

  bool operator==(const BudgetGrants&) const = default;
};

inline constexpr int kMaxBudgetUses = 1000;
inline constexpr units::BitRate kMaxBudgetRate{10'000'000'000'000};  // The highest rate: 10 Tbit.
inline constexpr uint32_t kMaxBudgetConnections = 100'000'000;  // The most connections a second.
inline constexpr units::BitRate kMaxGrantedRate{1'000'000'000'000'000};

void ToWire(const BudgetReport& in, v1::BudgetReport& out);
// Reads a report. Never fails. The first kMaxBudgetUses uses are taken, without those whose budget
// or team is no name; rates end at kMaxBudgetRate and kMaxBudgetConnections, so that those of all
// nodes together still fit.
BudgetReport FromWire(const v1::BudgetReport& in);

// Durations are rounded down to milliseconds, so that no node holds a grant longer than the server
// believes, and end at what 32 bits hold.
void ToWire(const BudgetGrants& in, v1::BudgetGrants& out);
// Reads grants. Never fails. Rates end at kMaxGrantedRate.
BudgetGrants FromWire(const v1::BudgetGrants& in);

}  // namespace spoke::node_api
