#include "admin-cli/budget/budget_explain.h"
#include "admin-cli/budget/budget_views.h"
#include "admin-cli/budget/rate_history.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"
#include "lib/units/text.h"

namespace spoke::ctl {
namespace {

using units::BitRate;
using units::Rounded;

const Parameter kName = {.name = "name",
                         .value = "NAME",
                         .help = "Name of a bandwidth budget",
                         .values = Values::kBudget,
                         .required = true};

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const v1::GetBudgetsResponse response, ReadBudgets(session, "", ""));
  RETURN_IF_ERROR(PrintList(session, BudgetForm(), response.budgets()));
  return 0;
}

std::string Seconds(uint32_t seconds) { return absl::FormatDuration(absl::Seconds(seconds)); }

std::string TermsText(const v1::BudgetInfo& budget, bool colours) {
  return FormatFields(
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
                     FormatShare(budget.usage(), budget.capacity()))}},
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
       {"State", StateCell(budget)}},
      colours);
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
    RETURN_IF_ERROR(session.PrintValue(ToJson(budget)));
    return 0;
  }
  session.Out(TermsText(budget, session.colours) + "\n");
  RETURN_IF_ERROR(PrintList(session, BudgetTeamForm(budget), budget.teams()));
  return 0;
}

std::string TextOf(const BudgetWords& words, bool colours) {
  std::string text = Coloured(Printable(words.summary), Tone::kBold, colours) + "\n";
  for (const std::string& detail : words.details) text += "  " + Printable(detail) + "\n";
  return text;
}

Json ToJson(const BudgetWords& words) {
  Json value = {{"summary", words.summary}, {"details", Json::array()}};
  for (const std::string& detail : words.details) value["details"].push_back(detail);
  return value;
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
    value["nodes"] = Json::array();
    const ListForm<v1::NodeBudgetInfo> form = BudgetNodeForm();
    for (const auto& node : response.nodes()) value["nodes"].push_back(form.json(node));
  }
  if (!session.is_table()) {
    RETURN_IF_ERROR(session.PrintValue(value));
    return 0;
  }
  session.Out(text);
  if (only.empty()) return 0;
  session.Out("\n");
  RETURN_IF_ERROR(PrintList(session, BudgetNodeForm(), response.nodes()));
  return 0;
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
                         "spokectl budget list -o json | jq '.[].usage_bits'"},
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
