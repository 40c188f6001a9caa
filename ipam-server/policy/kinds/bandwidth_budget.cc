#include "ipam-server/policy/kinds/bandwidth_budget.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "fmt/core.h"
#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/kinds/budget_fields.h"
#include "ipam-server/policy/kinds/shaping_fields.h"
#include "lib/policy/wire.h"
#include "lib/units/text.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;
using units::ToText;

constexpr std::string_view kIngress = "Ingress";
constexpr std::string_view kEgress = "Egress";
constexpr uint32_t kMaxConnections = 10'000'000;  // New ones a second, of all nodes.

struct Lines {
  int group = 0;
  int direction = 0;
  std::map<std::string, int> teams;  // The named teams'.
};

std::string_view DirectionText(const BudgetSpec& budget) {
  return budget.egress ? kEgress : kIngress;
}

class BandwidthBudgetObject : public Spec {
 public:
  BandwidthBudgetObject(BudgetSpec budget, Lines lines)
      : budget_(std::move(budget)), lines_(std::move(lines)) {}

  const BudgetSpec& budget() const { return budget_; }

  std::string ToJson() const override {
    nlohmann::json json = {
        {"direction", DirectionText(budget_)}, {"capacity", ToText(budget_.capacity)},
        {"teams", TeamsJson(budget_)},         {"borrow", budget_.borrow},
        {"grant", GrantJson(budget_)},         {"onLoss", OnLossJson(budget_)},
        {"mode", ModeText(budget_.shadow)}};
    if (!budget_.destination_group.empty()) json["destinationGroup"] = budget_.destination_group;
    if (budget_.connections != 0) json["connectionsPerSecond"] = budget_.connections;
    return json.dump();
  }

  // A byte is taken from one budget, so that a team has one share of it.
  std::vector<Claim> Claims() const override {
    const bool internet = budget_.destination_group.empty();
    return {{.space = "budgets",
             .share = budget_.name,
             .what = internet ? fmt::format("{} of the Internet", DirectionText(budget_))
                              : fmt::format("{} of destination group {}", DirectionText(budget_),
                                            budget_.destination_group),
             .role = "the scope",
             .path = internet ? "spec.direction" : "spec.destinationGroup",
             .line = internet ? lines_.direction : lines_.group}};
  }

  std::vector<Reference> References() const override {
    std::vector<Reference> references;
    for (const auto& [team, line] : lines_.teams) {
      if (team != kOtherTeams) references.push_back({{"Team", team}, "spec.teams", line});
    }
    if (!budget_.destination_group.empty()) {
      references.push_back(ReferenceTo({budget_.destination_group, lines_.group}));
    }
    return references;
  }

  std::optional<NodeEntry> ForNodes(const ObjectKey& key) const override {
    policy::BandwidthBudget budget{.destination_group = budget_.destination_group,
                                   .egress = budget_.egress,
                                   .teams = {},
                                   .floor = FloorOfNode(budget_),
                                   .refresh = budget_.refresh,
                                   .hold = budget_.hold,
                                   .half_life = budget_.half_life,
                                   .shadow = budget_.shadow};
    for (const BudgetTeam& team : budget_.teams) {
      if (team.name != kOtherTeams) budget.teams.push_back(team.name);
    }
    return NodeEntry{.value = policy::ToWire(key.kind + "/" + key.name, budget), .wanted = {}};
  }

 private:
  BudgetSpec budget_;
  Lines lines_;
};

void ReadDirection(const ConfigMap& spec, BudgetSpec& out) {
  spec.Custom("direction", Need::kRequired, [&](std::string_view text) {
    out.egress = text == kEgress;
    if (out.egress || text == kIngress) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format(
        "must be Ingress (towards the pods) or Egress, not \"{}\"", text.substr(0, 64)));
  });
}

}  // namespace

std::shared_ptr<const Spec> ReadBandwidthBudget(const ConfigMap& spec, const std::string& name) {
  BudgetSpec budget;
  budget.name = name;
  const Listed<std::string> group = ReadScope(spec);
  budget.destination_group = group.value;
  ReadDirection(spec, budget);
  ReadRate(spec, "capacity", Need::kRequired, budget.capacity);
  spec.Uint32("connectionsPerSecond", &budget.connections, Need::kOptional, {1, kMaxConnections});
  Lines lines{.group = group.line, .direction = spec.LineOf("direction"), .teams = {}};
  const BudgetTeamMaps teams = ReadBudgetTeams(spec, budget);
  for (const auto& [team, map] : teams) lines.teams.emplace(team, map.LineOf("name"));
  spec.Bool("borrow", &budget.borrow, Need::kOptional);
  ReadGrant(spec, budget);
  ReadOnLoss(spec, budget);
  budget.shadow = ReadShadow(spec);
  CheckTeamRates(spec, teams, budget);
  return std::make_shared<const BandwidthBudgetObject>(std::move(budget), std::move(lines));
}

const BudgetSpec* BudgetOf(const PolicyObject& object) {
  const auto* spec = SpecOf<BandwidthBudgetObject>(object);
  return spec == nullptr ? nullptr : &spec->budget();
}

std::vector<BudgetSpec> BudgetsOf(const ObjectSet& set) {
  std::vector<BudgetSpec> budgets;
  for (const auto& [key, object] : set.objects()) {
    if (const BudgetSpec* budget = BudgetOf(*object)) budgets.push_back(*budget);
  }
  return budgets;
}

}  // namespace spoke::ipam
