// Says which limits and budgets there are for which pods: what the policy comes to on this node.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/policy/policy_bundle.h"
#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

// The team of pods that no team has.
inline constexpr std::string_view kNoTeam;
// The name by which a budget calls the teams that it does not name, together.
inline constexpr std::string_view kOtherTeams = "*";

// A limit of the rate of payload; zero: none.
struct RateLimit {
  units::BitRate rate = {};
  bool shadow = false;
  std::string name;  // The name of the object, or "annotation".

  bool operator==(const RateLimit&) const = default;
};

struct ResolvedBudget {
  std::string name;
  ClassNumber scope = kInternet;
  TrafficDirection direction = TrafficDirection::kIngress;
  std::vector<std::string> teams;  // The teams, sorted.
  units::BitRate floor = {};
  absl::Duration refresh;
  absl::Duration hold;
  absl::Duration half_life;
  bool shadow = false;

  // Returns what the budget calls the team that `team` is.
  std::string_view TeamIn(std::string_view team) const;
  bool operator==(const ResolvedBudget&) const = default;
};

class ShapingRules {
 public:
  // Resolves the policy; `groups` is ClassMap::groups(). Errors: kInvalidArgument, naming the
  // object (a team or group that is not there, two budgets of one scope and direction, a namespace
  // in two teams, a node's rate for namespaces, which could not be nested with those of teams).
  static absl::StatusOr<ShapingRules> Resolve(const Policy& policy,
                                              const std::map<std::string, ClassNumber>& groups);

  // Returns the scopes that some limit or budget has, sorted, and kInternet, since any pod may have
  // options.
  const std::vector<ClassNumber>& scopes() const { return scopes_; }
  // Returns whether some limit or budget is there, so that pods without options have flows too.
  bool limits_pods() const { return !limits_.empty() || !budgets_.empty(); }
  // Returns the team; kNoTeam: it is in none.
  std::string TeamOf(const std::string& pod_namespace) const;
  // Returns the lowest limit of the pod alone, its own options included; rate 0: there is none. A
  // limit in Shadow counts only when no enforced one is there.
  RateLimit PodLimit(const TrafficPod& pod, ClassNumber scope, TrafficDirection direction) const;
  // Returns the limit of all pods of the node together; rate 0: there is none.
  RateLimit NodeLimit(ClassNumber scope, TrafficDirection direction) const;
  // Returns the limit of all pods of one team on the node together; rate 0: there is none.
  RateLimit TeamLimit(std::string_view team, ClassNumber scope, TrafficDirection direction) const;
  // Returns the budget; nullptr: there is none.
  const ResolvedBudget* Budget(ClassNumber scope, TrafficDirection direction) const;
  const std::vector<ResolvedBudget>& budgets() const { return budgets_; }
  // Returns the host names of destination groups, with the group's number.
  const std::vector<std::pair<std::string, ClassNumber>>& host_names() const { return host_names_; }

  bool operator==(const ShapingRules&) const = default;

 private:
  struct Limit {
    policy::BandwidthLimit spec;
    std::string name;
    ClassNumber scope = kInternet;
    bool operator==(const Limit&) const = default;
  };
  // Adds one object. Errors: those of Resolve(), without the object's name.
  absl::Status AddTeam(const std::string& name, const policy::Team& team);
  absl::Status AddLimit(Limit limit);
  absl::Status AddBudget(ResolvedBudget budget);

  std::vector<ClassNumber> scopes_;
  std::map<std::string, std::string> team_of_;  // The teams, by namespace.
  std::vector<Limit> limits_;
  std::vector<ResolvedBudget> budgets_;
  std::vector<std::pair<std::string, ClassNumber>> host_names_;
};

}  // namespace spoke::netagent
