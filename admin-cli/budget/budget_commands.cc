#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "admin-cli/budget/budget_views.h"
#include "admin-cli/budget/rate_history.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/units/text.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {
namespace {

using units::BitRate;
using units::Rounded;

using Team = v1::BudgetTeamInfo;
using Budget = v1::BudgetInfo;

// The server reckons with floats; what is as near as this is the same.
constexpr double kNear = 0.005;

bool AtLeast(BitRate a, BitRate b) {
  return static_cast<double>(a.count()) >= static_cast<double>(b.count()) * (1 - kNear);
}

bool Above(BitRate a, BitRate b) { return !AtLeast(b, a); }

double WeightsOf(const Budget& budget) {
  double sum = 0;
  for (const Team& team : budget.teams()) sum += team.weight();
  return sum;
}

// Returns its part of what can be granted when every team wants more than it gets, and no min or
// max is met.
BitRate PartOf(const Budget& budget, const Team& team) {
  const double weights = WeightsOf(budget);
  if (weights <= 0) return {};
  const auto grantable = static_cast<double>(GrantableOf(budget).count());
  return BitRate(static_cast<uint64_t>(grantable * team.weight() / weights));
}

BitRate FairOf(const Team& team) { return BitRate(team.fair()); }

// Returns whether it wants more than it would get if all were settled.
bool IsHeld(const Team& team) { return Above(BitRate(team.demand()), FairOf(team)); }

bool MeetsMax(const Team& team) {
  return team.max() != 0 && IsHeld(team) && AtLeast(FairOf(team), BitRate(team.max()));
}

// Returns what is left of its part: it wants no more, or may not have more.
BitRate LeftBy(const Budget& budget, const Team& team) {
  const BitRate part = PartOf(budget, team);
  if (IsHeld(team) && !MeetsMax(team)) return {};
  return Above(part, FairOf(team)) ? part - FairOf(team) : BitRate();
}

// Returns what it gets beyond its part and beyond what its min promises.
BitRate BorrowedBy(const Budget& budget, const Team& team) {
  const BitRate own = std::max(PartOf(budget, team), BitRate(team.min()));
  return budget.borrow() && Above(FairOf(team), own) ? FairOf(team) - own : BitRate();
}

std::string NameOf(const Team& team) {
  return team.name() == kOtherTeams ? "\"*\" (all other teams)" : team.name();
}

// Returns "vision (1 Gbit/s), language (200 Mbit/s)", the most first; at most five by name.
template <typename Amount>
std::string ListOf(const Budget& budget, const Team* but, Amount amount) {
  constexpr size_t kNamed = 5;
  std::vector<std::pair<BitRate, std::string>> all;
  for (const Team& team : budget.teams()) {
    const BitRate rate = amount(budget, team);
    if (rate.is_zero() || &team == but) continue;
    all.emplace_back(rate, fmt::format("{} ({})", NameOf(team), Rounded(rate)));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return b.first < a.first; });
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(all.size(), kNamed); ++i) texts.push_back(all[i].second);
  if (all.size() > kNamed) texts.push_back(fmt::format("{} more", all.size() - kNamed));
  return absl::StrJoin(texts, ", ");
}

std::string PartText(const Budget& budget, const Team& team) {
  return fmt::format("weight {:g} of {:g} is {} of the {} that can be granted", team.weight(),
                     WeightsOf(budget), Rounded(PartOf(budget, team)),
                     Rounded(GrantableOf(budget)));
}

// Says why the fair share of a team that wants more is what it is.
std::string WhyHeld(const Budget& budget, const Team& team) {
  const BitRate part = PartOf(budget, team);
  if (MeetsMax(team)) {
    return fmt::format("its max of {} is reached: raise max if it may have more",
                       Rounded(BitRate(team.max())));
  }
  if (const BitRate borrowed = BorrowedBy(budget, team); !borrowed.is_zero()) {
    return fmt::format("it has its part and {} that others leave: {}", Rounded(borrowed),
                       ListOf(budget, &team, LeftBy));
  }
  if (team.min() != 0 && Above(BitRate(team.min()), part) &&
      AtLeast(FairOf(team), BitRate(team.min()))) {
    return fmt::format("its min of {} is more than its part, and comes before others share",
                       Rounded(BitRate(team.min())));
  }
  if (!budget.borrow()) {
    return "it has its part, and what others leave is not shared out (borrow: false)";
  }
  if (Above(part, FairOf(team))) {
    return "it has less than its part, since the mins of other teams come first";
  }
  return "it has its part, and no other team leaves anything";
}

std::string WhyAll(const Budget& budget, const Team& team) {
  if (team.demand() == 0) {
    return team.nodes() == 0 ? "no node has pods of it" : "its pods want nothing at present";
  }
  if (const BitRate borrowed = BorrowedBy(budget, team); !borrowed.is_zero()) {
    return fmt::format("it gets all it wants, {} of it borrowed from what others leave: {}",
                       Rounded(borrowed), ListOf(budget, &team, LeftBy));
  }
  return "it gets all it wants";
}

void AddGrantWords(const Budget& budget, const Team& team, std::vector<std::string>& details) {
  const BitRate due = std::min(FairOf(team), BitRate(team.demand()));
  if (!Above(due, BitRate(team.granted()))) return;
  details.push_back(
      fmt::format("{} of its fair share is granted so far", Rounded(BitRate(team.granted()))));
  if (budget.unknown() == 0) {
    details.push_back("the rest follows once nodes have said that they use less");
    return;
  }
  details.push_back(fmt::format(
      "the rest is free in {} at the latest: until then nodes that were not heard since the server "
      "started may hold {} of the budget",
      absl::FormatDuration(absl::Seconds(budget.learning_s())),
      Rounded(BitRate(budget.unknown()))));
}

void AddHeldBackWords(const Budget& budget, const Team& team, std::vector<std::string>& details) {
  if (team.throttled() > 0) {
    details.push_back(fmt::format("{} {} held back now", Rounded(BitRate(team.throttled())),
                                  budget.shadow() ? "would be" : "is"));
  }
  if (team.refused_connections() > 0) {
    details.push_back(fmt::format("{} new connections a second {} refused, and {} pass",
                                  team.refused_connections(), budget.shadow() ? "would be" : "are",
                                  team.connections()));
    details.push_back(
        fmt::format("the budget has {} new connections a second for all", budget.connections()));
  }
}

const Parameter kName = {.name = "name",
                         .value = "NAME",
                         .help = "Name of a bandwidth budget",
                         .values = Values::kBudget,
                         .required = true};

// The sentences, from the general to the particular.
struct BudgetWords {
  std::string summary;
  std::vector<std::string> details;
};

// Says how the budget stands altogether: use, floors, learning, unknown grants, and which team
// leaves bandwidth to which.
BudgetWords ExplainBudget(const Budget& budget) {
  BudgetWords words;
  words.summary =
      fmt::format("{}: {} {} {}, {}; {} used ({}), {}", budget.name(),
                  Rounded(BitRate(budget.capacity())), budget.egress() ? "to" : "from",
                  budget.destination_group().empty() ? "the Internet" : DestinationOf(budget),
                  budget.shadow() ? "in Shadow" : "enforced", Rounded(BitRate(budget.usage())),
                  FullnessOf(budget, BitRate(budget.usage())), StateCell(budget).text);
  if (budget.shadow()) {
    words.details.push_back("nothing is held back, since the budget is in Shadow");
  }
  if (budget.floors() > 0) {
    words.details.push_back(fmt::format("{} is set apart for nodes without a grant",
                                        Rounded(BitRate(budget.floors()))));
    words.details.push_back(fmt::format("{} of the {} that can be granted is granted",
                                        Rounded(BitRate(budget.granted())),
                                        Rounded(GrantableOf(budget))));
  }
  if (budget.learning_s() > 0) {
    words.details.push_back("the server is learning what the one before it has granted");
    words.details.push_back(
        fmt::format("{} counts as taken by nodes that were not heard yet, for {} at most",
                    Rounded(BitRate(budget.unknown())),
                    absl::FormatDuration(absl::Seconds(budget.learning_s()))));
  } else if (budget.unknown() > 0) {
    words.details.push_back(
        fmt::format("{} may still be held by nodes that were not heard since the server started",
                    Rounded(BitRate(budget.unknown()))));
  }
  if (const std::string left = ListOf(budget, nullptr, LeftBy); !left.empty()) {
    const std::string borrowed = ListOf(budget, nullptr, BorrowedBy);
    if (!budget.borrow()) {
      words.details.push_back(
          fmt::format("these leave a part, which is not shared out (borrow: false): {}", left));
    } else if (!borrowed.empty()) {
      words.details.push_back(fmt::format("these borrow what others leave: {}", borrowed));
      words.details.push_back(fmt::format("these leave a part: {}", left));
    }
  }
  return words;
}

// Says why `team`, one of the budget's, gets what it gets.
BudgetWords ExplainTeam(const Budget& budget, const Team& team) {
  BudgetWords words;
  words.summary =
      fmt::format("{}: uses {}, wants {}, has {} granted; its fair share is {}", NameOf(team),
                  Rounded(BitRate(team.usage())), Rounded(BitRate(team.demand())),
                  Rounded(BitRate(team.granted())), Rounded(BitRate(team.fair())));
  words.details.push_back(PartText(budget, team));
  words.details.push_back(IsHeld(team) ? WhyHeld(budget, team) : WhyAll(budget, team));
  if (const BitRate left = LeftBy(budget, team); !left.is_zero() && budget.borrow()) {
    words.details.push_back(fmt::format("it leaves {} of its part to others", Rounded(left)));
  }
  AddGrantWords(budget, team, words.details);
  AddHeldBackWords(budget, team, words.details);
  return words;
}

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const v1::GetBudgetsResponse response, ReadBudgets(session, "", ""));
  const std::string& team = session.arguments.Text("team");
  if (team.empty()) return Done(PrintList(session, BudgetForm(), response.budgets()));
  std::vector<Budget> with_team;
  for (const Budget& budget : response.budgets()) {
    const auto& teams = budget.teams();
    if (std::any_of(teams.begin(), teams.end(),
                    [&](const Team& one) { return one.name() == team; })) {
      with_team.push_back(budget);
    }
  }
  ListForm<Budget> form = BudgetForm();
  form.what = fmt::format("bandwidth budgets that name team {}", team);
  return Done(PrintList(session, std::move(form), with_team));
}

std::string Seconds(uint32_t seconds) { return absl::FormatDuration(absl::Seconds(seconds)); }

std::string TermsText(const Session& session, const v1::BudgetInfo& budget) {
  return session.Fields(
      {{"Name", {budget.name(), Tone::kBold}},
       {"Destination", {DestinationOf(budget)}},
       {"Direction",
        {fmt::format("{} ({} the pods)", DirectionOf(budget),
                     budget.egress() ? "from" : "towards")}},
       {"Mode",
        {budget.shadow() ? "Shadow: nothing is held back, only counted" : "Enforce",
         budget.shadow() ? Tone::kNote : Tone::kPlain}},
       {"Capacity", {Rounded(BitRate(budget.capacity()))}},
       {"Used",
        {fmt::format("{} ({})", Rounded(BitRate(budget.usage())),
                     FullnessOf(budget, BitRate(budget.usage())))}},
       {"Granted", {Rounded(BitRate(budget.granted()))}},
       {"Unknown",
        {budget.unknown() == 0
             ? ""
             : Rounded(BitRate(budget.unknown())) + ", maybe held by nodes not heard yet",
         Tone::kWarning}},
       {"Floors",
        {budget.floors() == 0
             ? ""
             : Rounded(BitRate(budget.floors())) + ", set apart for nodes without a grant"}},
       {"Connections",
        {budget.connections() == 0 ? "not limited"
                                   : fmt::format("{} new ones a second", budget.connections())}},
       {"Borrow", {budget.borrow() ? "yes: teams use what others leave" : "no"}},
       {"Grant",
        {fmt::format("{}, refreshed every {}", Seconds(budget.grant_s()),
                     Seconds(budget.refresh_s()))}},
       {"On loss",
        {fmt::format("held for {}, then halved every {}, down to the floor",
                     Seconds(budget.hold_s()), Seconds(budget.half_life_s()))}},
       {"State", StateCell(budget)}});
}

absl::StatusOr<int> Show(Session& session) {
  ASSIGN_OR_RETURN(const v1::GetBudgetsResponse response,
                   ReadBudgets(session, session.arguments.Text("name"), ""));
  const v1::BudgetInfo& budget = response.budgets(0);
  if (session.format == Format::kName) {
    session.Out(Printable(budget.name()) + "\n");
    return 0;
  }
  if (!session.is_table()) {
    return Done(session.PrintValue(ToJson(budget)));
  }
  session.Out(TermsText(session, budget) + "\n");
  return Done(PrintList(session, BudgetTeamForm(budget), budget.teams()));
}

std::string TextOf(const BudgetWords& words, bool colours) {
  std::string text = Coloured(Printable(words.summary), Tone::kBold, colours) + "\n";
  for (const std::string& detail : words.details) text += "  " + Printable(detail) + "\n";
  return text;
}

Json ToJson(const BudgetWords& words) {
  return {{"summary", words.summary}, {"details", JsonList(words.details)}};
}

absl::StatusOr<int> Explain(Session& session) {
  const std::string& only = session.arguments.Text("team");
  ASSIGN_OR_RETURN(const v1::GetBudgetsResponse response,
                   ReadBudgets(session, session.arguments.Text("name"), only));
  const v1::BudgetInfo& budget = response.budgets(0);
  const BudgetWords whole = ExplainBudget(budget);
  Json value = ToJson(whole);
  value["teams"] = Json::array();
  std::string text = TextOf(whole, session.colours);
  for (const v1::BudgetTeamInfo& team : budget.teams()) {
    if (!only.empty() && team.name() != only) continue;
    const BudgetWords words = ExplainTeam(budget, team);
    text += "\n" + TextOf(words, session.colours);
    Json& of_team = value["teams"].emplace_back(ToJson(words));
    of_team["name"] = team.name();
  }
  if (!only.empty()) {
    value["nodes"] = JsonList(response.nodes(), BudgetNodeForm().json);
  }
  if (!session.is_table()) return Done(session.PrintValue(value));
  session.Out(text);
  if (only.empty()) return 0;
  session.Out("\n");
  return Done(PrintList(session, BudgetNodeForm(), response.nodes()));
}

}  // namespace

Command BudgetCommand() {
  return {
      .name = "budget",
      .summary = "Bandwidth that all nodes share, and who has what of it",
      .description =
          "A BandwidthBudget bounds what all pods together exchange with the Internet or a "
          "destination group, and shares it among teams. Rates are bits of payload a second. In "
          "Shadow nothing is held back; shown is what would be.",
      .commands =
          {{.name = "list",
            .summary = "Budgets",
            .description =
                "STATE is ok, saturated (as good as all is in use), or learning: after a start "
                "the server has to hear what nodes hold before it can grant that again. GRANTED is "
                "what nodes may use at most.",
            .examples = {"spokectl budget list", "spokectl budget list -o wide --watch",
                         "spokectl budget list --team vision",
                         "spokectl budget list -o json | jq '.[].usage_bits'"},
            .options =
                {{.name = "team", .value = "TEAM", .help = "Only budgets that name this team"}},
            .run = List,
            .watchable = true},
           {.name = "show",
            .summary = "A budget's terms and its teams",
            .description =
                "WANTS is what a team could use as far as its nodes can tell, FAIR its share of "
                "the capacity with demands as they are, GRANTED what its nodes may use now, "
                "HELD-BACK what they offered beyond that. The team \"*\" is all that the budget "
                "does not name.",
            .examples = {"spokectl budget show internet", "spokectl budget show internet -o wide"},
            .positionals = {kName},
            .run = Show,
            .watchable = true},
           {.name = "explain",
            .summary = "Why each team gets what it gets",
            .description =
                "Says of each team whether it gets all it wants, and if not, what holds it: its "
                "max, its weight, what others want, grants that are not free yet. With --team, "
                "only that one, and its nodes, those that use most first (1,000 at most). "
                "BELIEVED is the most that a node may think it has.",
            .examples = {"spokectl budget explain internet",
                         "spokectl budget explain internet --team vision"},
            .positionals = {kName},
            .options = {{.name = "team",
                         .value = "TEAM",
                         .help = "Only this team, with its nodes",
                         .values = Values::kBudgetTeam}},
            .run = Explain,
            .watchable = true}},
      .group = kGroupLook};
}

}  // namespace spoke::ctl
