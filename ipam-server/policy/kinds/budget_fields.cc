#include "ipam-server/policy/kinds/budget_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "fmt/core.h"
#include "ipam-server/policy/kinds/shaping_fields.h"
#include "ipam-server/policy/objects/object.h"
#include "lib/base/status.h"
#include "lib/units/text.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::DurationLimits;
using config::Need;
using units::BitRate;
using units::ToText;

constexpr size_t kMaxTeams = 1000;  // Each node hears all their names.
constexpr double kMinWeight = 0.001;
constexpr double kMaxWeight = 1000;
// After a start the server waits until the longest grant has run out and decayed, so that none of
// these is endless.
constexpr DurationLimits kGrant = {absl::Seconds(2), absl::Hours(1)};
constexpr DurationLimits kRefresh = {absl::Seconds(1), absl::Minutes(30)};
constexpr DurationLimits kHold = {absl::ZeroDuration(), absl::Hours(1)};
constexpr DurationLimits kHalfLife = {absl::Seconds(1), absl::Minutes(10)};
constexpr uint32_t kMaxFloorNodes = 1'000'000;
// A share is read to a thousandth of a percent.
constexpr uint32_t kSharesInPercent = 1000;
constexpr uint32_t kSharesInAll = 100 * kSharesInPercent;
constexpr uint32_t kMaxShare = 10 * kSharesInPercent;

// Nodes are told times in milliseconds; they and the server must mean the same.
void ReadTime(const ConfigMap& map, std::string_view key, absl::Duration& out,
              const DurationLimits& limits) {
  absl::Duration read = out;
  map.Duration(key, &read, Need::kOptional, limits);
  if (read != absl::Trunc(read, absl::Milliseconds(1))) {
    return map.Error(key,
                     fmt::format("must be whole milliseconds, not {}", absl::FormatDuration(read)));
  }
  out = read;
}

// Formats "120s", "1500ms".
std::string TimeText(absl::Duration time) {
  const int64_t ms = absl::ToInt64Milliseconds(time);
  return ms % 1000 == 0 ? fmt::format("{}s", ms / 1000) : fmt::format("{}ms", ms);
}

// Reads "5%", "2.5%" as 5000, 2500.
absl::Status ParseShare(std::string_view text, uint32_t& out) {
  const auto refuse = [&] {
    return absl::InvalidArgumentError(
        fmt::format("must be from 0% to {}% with at most three decimals, such as 5%, not \"{}\"",
                    kMaxShare / kSharesInPercent, text.substr(0, 64)));
  };
  const auto is_number = [](std::string_view part) {
    return !part.empty() && part.size() <= 3 &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (text.empty() || text.back() != '%') return refuse();
  const std::string_view number = text.substr(0, text.size() - 1);
  const size_t point = std::min(number.find('.'), number.size());
  const std::string_view whole = number.substr(0, point);
  std::string decimals(number.substr(std::min(point + 1, number.size())));
  if (point == number.size()) decimals = "0";
  if (!is_number(whole) || !is_number(decimals)) return refuse();
  decimals.resize(3, '0');
  const std::string digits = std::string(whole) + decimals;
  uint32_t share = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), share);
  if (share > kMaxShare) return refuse();
  out = share;
  return absl::OkStatus();
}

std::string ShareText(double part) {
  return fmt::format("{}%",
                     static_cast<double>(std::lround(part * kSharesInAll)) / kSharesInPercent);
}

BudgetTeam ReadTeam(const ConfigMap& map) {
  BudgetTeam team;
  map.Custom("name", Need::kRequired, [&](std::string_view text) {
    if (text != kOtherTeams) RETURN_IF_ERROR(base::Annotate(CheckLabel(text), "a team"));
    team.name = text;
    return absl::OkStatus();
  });
  map.Double("weight", &team.weight, Need::kOptional, {kMinWeight, kMaxWeight});
  ReadRate(map, "min", Need::kOptional, team.min);
  ReadRate(map, "max", Need::kOptional, team.max);
  if (!team.max.is_zero() && team.min > team.max) {
    map.Error("min", fmt::format("{} is more than max, {}: lower it, or raise max",
                                 ToText(team.min), ToText(team.max)));
  }
  return team;
}

}  // namespace

BudgetTeamMaps ReadBudgetTeams(const ConfigMap& spec, BudgetSpec& out) {
  BudgetTeamMaps by_name;
  std::map<std::string, BudgetTeam> teams;
  std::vector<ConfigMap> maps;
  if (spec.Has("teams")) maps = spec.MapList("teams", Need::kOptional);
  for (const ConfigMap& map : maps) {
    BudgetTeam team = ReadTeam(map);
    if (team.name.empty()) continue;  // It was said already.
    const auto [first, inserted] = by_name.emplace(team.name, map);
    if (!inserted) {
      map.Error("name", fmt::format("\"{}\" is listed twice: line {} has it already; remove one",
                                    team.name, first->second.LineOf("name")));
      continue;
    }
    std::string name = team.name;
    teams.emplace(std::move(name), std::move(team));
  }
  if (spec.IsEmptyList("teams")) {
    spec.Error("teams", "an empty list names no team: remove it to let all teams share alike");
  }
  if (maps.size() > kMaxTeams) {
    spec.Error("teams",
               fmt::format("has {} teams, more than the {} allowed", maps.size(), kMaxTeams));
  }
  teams.try_emplace(kOtherTeams, BudgetTeam{.name = kOtherTeams});
  for (auto& [name, team] : teams) out.teams.push_back(std::move(team));
  return by_name;
}

void ReadGrant(const ConfigMap& spec, BudgetSpec& out) {
  const std::string_view key = spec.Renamed("lease", "grant");
  if (!spec.Has(key)) return;
  const ConfigMap map = spec.Map(key, Need::kOptional);
  ReadTime(map, "duration", out.grant, kGrant);
  ReadTime(map, "refresh", out.refresh, kRefresh);
  if (out.refresh > out.grant / 2) {
    map.Error("refresh", fmt::format("{} is more than half of the grant, {}: a lost message would "
                                     "cost a node its grant; lower it, or raise duration",
                                     TimeText(out.refresh), TimeText(out.grant)));
  }
}

void ReadOnLoss(const ConfigMap& spec, BudgetSpec& out) {
  if (!spec.Has("onLoss")) return;
  const ConfigMap map = spec.Map("onLoss", Need::kOptional);
  ReadTime(map, "hold", out.hold, kHold);
  ReadTime(map, "halfLife", out.half_life, kHalfLife);
  if (!map.Has("floor")) return;
  const ConfigMap floor = map.Map("floor", Need::kOptional);
  floor.Custom("share", Need::kOptional, [&](std::string_view text) {
    uint32_t share = 0;
    RETURN_IF_ERROR(ParseShare(text, share));
    out.floor_part = static_cast<double>(share) / kSharesInAll;
    return absl::OkStatus();
  });
  uint32_t nodes = 0;
  floor.Uint32("nodes", &nodes, Need::kOptional, {1, kMaxFloorNodes});
  if (nodes != 0) out.floor_nodes = nodes;
}

void CheckTeamRates(const ConfigMap& spec, const BudgetTeamMaps& maps, const BudgetSpec& read) {
  if (read.capacity.is_zero()) return;  // It was said already.
  const BitRate floors(FloorOfNode(read).count() * read.floor_nodes);
  const BitRate grantable = read.capacity - floors;
  const std::string why = fmt::format(
      "the {} that can be granted, which is the capacity without {} that is kept for "
      "nodes without a grant (onLoss.floor)",
      ToText(grantable), ToText(floors));
  BitRate promised;
  for (const BudgetTeam& team : read.teams) {
    promised += team.min;
    if (team.max <= grantable) continue;
    maps.at(team.name).Error("max",
                             fmt::format("{} is more than {}: lower it", ToText(team.max), why));
  }
  if (promised > grantable) {
    spec.Error("teams", fmt::format("the min of all teams together, {}, is more than {}: lower "
                                    "some",
                                    ToText(promised), why));
  }
}

nlohmann::json TeamsJson(const BudgetSpec& spec) {
  nlohmann::json list = nlohmann::json::array();
  for (const BudgetTeam& team : spec.teams) {
    nlohmann::json json = {{"name", team.name}, {"weight", team.weight}};
    if (!team.min.is_zero()) json["min"] = ToText(team.min);
    if (!team.max.is_zero()) json["max"] = ToText(team.max);
    list.push_back(std::move(json));
  }
  return list;
}

nlohmann::json GrantJson(const BudgetSpec& spec) {
  return {{"duration", TimeText(spec.grant)}, {"refresh", TimeText(spec.refresh)}};
}

nlohmann::json OnLossJson(const BudgetSpec& spec) {
  return {{"hold", TimeText(spec.hold)},
          {"halfLife", TimeText(spec.half_life)},
          {"floor", {{"share", ShareText(spec.floor_part)}, {"nodes", spec.floor_nodes}}}};
}

}  // namespace spoke::ipam
