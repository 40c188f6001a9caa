#include "netagent/shaping/shaping_rules.h"

#include <algorithm>
#include <set>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kOwnRequest = "annotation";

std::string_view NameOf(std::string_view key) { return key.substr(key.find('/') + 1); }

template <typename T>
bool Contains(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// The teams and groups that names stand for. Errors do not name the object yet.
class Names {
 public:
  Names(const Policy& policy, const std::map<std::string, ClassNumber>& groups) : groups_(groups) {
    for (const auto& [key, entry] : policy.entries) {
      if (std::holds_alternative<policy::Team>(entry.value)) teams_.emplace(NameOf(key));
    }
  }

  absl::StatusOr<ClassNumber> Scope(const std::string& group) const {
    if (group.empty()) return kInternet;
    if (const auto found = groups_.find(group); found != groups_.end()) return found->second;
    return absl::InvalidArgumentError(
        fmt::format("names the destination group {}, which is not there", group));
  }

  absl::Status CheckTeams(const std::vector<std::string>& teams) const {
    for (const std::string& team : teams) {
      if (!teams_.contains(team)) {
        return absl::InvalidArgumentError(
            fmt::format("names the team {}, which is not there", team));
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::map<std::string, ClassNumber>& groups_;
  std::set<std::string, std::less<>> teams_;
};

absl::StatusOr<ResolvedBudget> ResolveBudget(const std::string& name,
                                             const policy::BandwidthBudget& budget,
                                             const Names& names) {
  ResolvedBudget out{
      .name = name,
      .direction = budget.egress ? TrafficDirection::kEgress : TrafficDirection::kIngress,
      .teams = budget.teams,
      .floor = budget.floor,
      .refresh = budget.refresh,
      .hold = budget.hold,
      .half_life = budget.half_life,
      .shadow = budget.shadow};
  ASSIGN_OR_RETURN(out.scope, names.Scope(budget.destination_group));
  // These teams have their share in any case.
  out.teams.erase(std::remove(out.teams.begin(), out.teams.end(), kOtherTeams), out.teams.end());
  RETURN_IF_ERROR(names.CheckTeams(out.teams));
  std::sort(out.teams.begin(), out.teams.end());
  out.teams.erase(std::unique(out.teams.begin(), out.teams.end()), out.teams.end());
  return out;
}

units::BitRate PodRate(const policy::BandwidthLimit& limit, TrafficDirection direction) {
  return direction == TrafficDirection::kIngress ? limit.pod_ingress : limit.pod_egress;
}

units::BitRate NodeRate(const policy::BandwidthLimit& limit, TrafficDirection direction) {
  return direction == TrafficDirection::kIngress ? limit.node_ingress : limit.node_egress;
}

// Keeps the lowest limit that is offered to it, an enforced one before all in Shadow, and of equal
// ones the first.
class Lowest {
 public:
  void Offer(units::BitRate rate, bool shadow, std::string_view name) {
    if (rate.is_zero()) return;
    const bool better = best_.rate.is_zero() || (best_.shadow && !shadow) ||
                        (best_.shadow == shadow && rate < best_.rate);
    if (better) best_ = {.rate = rate, .shadow = shadow, .name = std::string(name)};
  }
  RateLimit Take() && { return std::move(best_); }

 private:
  RateLimit best_;
};

}  // namespace

std::string_view ResolvedBudget::TeamIn(std::string_view team) const {
  const auto found = std::lower_bound(teams.begin(), teams.end(), team);
  return found != teams.end() && *found == team ? std::string_view(*found) : kOtherTeams;
}

absl::StatusOr<ShapingRules> ShapingRules::Resolve(
    const Policy& policy, const std::map<std::string, ClassNumber>& groups) {
  ShapingRules rules;
  const Names names(policy, groups);
  for (const auto& [key, entry] : policy.entries) {
    absl::Status status;
    if (const auto* team = std::get_if<policy::Team>(&entry.value)) {
      status = rules.AddTeam(std::string(NameOf(key)), *team);
    } else if (const auto* group = std::get_if<policy::DestinationGroup>(&entry.value)) {
      for (const std::string& host_name : group->names) {
        const auto number = names.Scope(std::string(NameOf(key)));
        status.Update(number.status());
        if (number.ok()) rules.host_names_.emplace_back(host_name, *number);
      }
    } else if (const auto* limit = std::get_if<policy::BandwidthLimit>(&entry.value)) {
      const auto scope = names.Scope(limit->destination_group);
      status = scope.status();
      status.Update(names.CheckTeams(limit->teams));
      if (status.ok()) status = rules.AddLimit({*limit, std::string(NameOf(key)), *scope});
    } else if (const auto* budget = std::get_if<policy::BandwidthBudget>(&entry.value)) {
      auto resolved = ResolveBudget(std::string(NameOf(key)), *budget, names);
      status = resolved.ok() ? rules.AddBudget(*std::move(resolved)) : resolved.status();
    }
    RETURN_IF_ERROR(base::Annotate(status, key));
  }
  // Any pod may come with options of its own.
  std::set<ClassNumber> scopes = {kInternet};
  for (const Limit& limit : rules.limits_) scopes.insert(limit.scope);
  for (const ResolvedBudget& budget : rules.budgets_) scopes.insert(budget.scope);
  rules.scopes_.assign(scopes.begin(), scopes.end());
  return rules;
}

absl::Status ShapingRules::AddTeam(const std::string& name, const policy::Team& team) {
  for (const std::string& pod_namespace : team.namespaces) {
    const auto [known, added] = team_of_.emplace(pod_namespace, name);
    if (!added && known->second != name) {
      return absl::InvalidArgumentError(
          fmt::format("namespace {} is of the team {} already; a namespace has one team",
                      pod_namespace, known->second));
    }
  }
  return absl::OkStatus();
}

absl::Status ShapingRules::AddLimit(Limit limit) {
  // Queues are nested, node, team, pod: a choice of namespaces has no place there.
  const bool whole = !limit.spec.node_ingress.is_zero() || !limit.spec.node_egress.is_zero();
  if (whole && !limit.spec.namespaces.empty()) {
    return absl::InvalidArgumentError(
        "limits namespaces of a node together; name their teams, or limit each pod");
  }
  limits_.push_back(std::move(limit));
  return absl::OkStatus();
}

absl::Status ShapingRules::AddBudget(ResolvedBudget budget) {
  if (const ResolvedBudget* other = Budget(budget.scope, budget.direction); other != nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("is a budget of what the budget {} is of already: one destination has one "
                    "budget in each direction",
                    other->name));
  }
  budgets_.push_back(std::move(budget));
  return absl::OkStatus();
}

std::string ShapingRules::TeamOf(const std::string& pod_namespace) const {
  const auto found = team_of_.find(pod_namespace);
  return found == team_of_.end() ? std::string(kNoTeam) : found->second;
}

RateLimit ShapingRules::PodLimit(const TrafficPod& pod, ClassNumber scope,
                                 TrafficDirection direction) const {
  const std::string team = TeamOf(pod.pod_namespace);
  Lowest lowest;
  for (const Limit& limit : limits_) {
    if (limit.scope != scope) continue;
    const bool everyone = limit.spec.namespaces.empty() && limit.spec.teams.empty();
    if (everyone || Contains(limit.spec.namespaces, pod.pod_namespace) ||
        Contains(limit.spec.teams, team)) {
      lowest.Offer(PodRate(limit.spec, direction), limit.spec.shadow, limit.name);
    }
  }
  if (scope == kInternet) {
    const bool ingress = direction == TrafficDirection::kIngress;
    lowest.Offer(ingress ? pod.internet.ingress : pod.internet.egress, false, kOwnRequest);
  }
  return std::move(lowest).Take();
}

RateLimit ShapingRules::NodeLimit(ClassNumber scope, TrafficDirection direction) const {
  Lowest lowest;
  for (const Limit& limit : limits_) {
    if (limit.scope != scope || !limit.spec.teams.empty()) continue;
    lowest.Offer(NodeRate(limit.spec, direction), limit.spec.shadow, limit.name);
  }
  return std::move(lowest).Take();
}

RateLimit ShapingRules::TeamLimit(std::string_view team, ClassNumber scope,
                                  TrafficDirection direction) const {
  Lowest lowest;
  for (const Limit& limit : limits_) {
    if (limit.scope != scope || !Contains(limit.spec.teams, std::string(team))) continue;
    lowest.Offer(NodeRate(limit.spec, direction), limit.spec.shadow, limit.name);
  }
  return std::move(lowest).Take();
}

const ResolvedBudget* ShapingRules::Budget(ClassNumber scope, TrafficDirection direction) const {
  const auto found =
      std::find_if(budgets_.begin(), budgets_.end(), [&](const ResolvedBudget& budget) {
        return budget.scope == scope && budget.direction == direction;
      });
  return found == budgets_.end() ? nullptr : &*found;
}

}  // namespace spoke::netagent
