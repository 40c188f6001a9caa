// A bandwidth budget as its operator has written it: what all nodes together may exchange with one
// destination, and how teams share it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/units/quantity.h"

namespace spoke::ipam {

// The teams that a budget does not name share as one, of this name. It may be named like any other.
inline constexpr char kOtherTeams[] = "*";

struct BudgetTeam {
  std::string name;
  double weight = 1;
  units::BitRate min;  // Comes before any sharing, as far as it is needed.
  units::BitRate max;  // 0: no such bound.

  bool operator==(const BudgetTeam&) const = default;
};

struct BudgetSpec {
  std::string name;
  std::string destination_group;  // Empty: the Internet.
  bool egress = false;            // False: towards the pods.
  units::BitRate capacity;        // The payload's rate.
  uint32_t connections = 0;       // New connections a second, shared likewise; 0: not limited.
  std::vector<BudgetTeam> teams;  // Sorted by name; "*" is always there (weight 1 unless named).
  bool borrow = true;             // What a team leaves unused is given to others.
  absl::Duration grant = absl::Seconds(120);
  absl::Duration refresh = absl::Seconds(5);
  absl::Duration hold = absl::Seconds(300);
  absl::Duration half_life = absl::Seconds(30);
  // The part of the capacity that is set apart for nodes without a grant, and how many nodes it is
  // for: each may always use as much of it.
  double floor_part = 0.05;
  uint64_t floor_nodes = 8192;
  bool shadow = false;

  bool operator==(const BudgetSpec&) const = default;
};

// What one node may use without a grant, all its teams together.
units::BitRate FloorOfNode(const BudgetSpec& spec);

}  // namespace spoke::ipam
