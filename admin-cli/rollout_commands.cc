#include "admin-cli/list_form.h"
#include "admin-cli/progress.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

Json ToJson(const v1::GetRolloutResponse& rollout) {
  Json value = {{"version", rollout.version()},
                {"nodes", rollout.nodes()},
                {"nodes_current", rollout.nodes_current()},
                {"nodes_refused", rollout.nodes_refused()},
                {"nodes_away", rollout.nodes_away()},
                {"behind", Json::array()}};
  for (const v1::NodeInfo& node : rollout.behind()) {
    value["behind"].push_back({{"name", node.name()},
                               {"policy_version", node.policy_version()},
                               {"policy_error", node.policy_error()}});
  }
  return value;
}

// Whether there is nothing to wait for: each node that is here has it or has refused it. A node
// that is away gets it when it comes back.
bool IsOver(const v1::GetRolloutResponse& rollout) {
  return rollout.nodes_current() + rollout.nodes_refused() + rollout.nodes_away() >=
         rollout.nodes();
}

std::string CountsOf(const v1::GetRolloutResponse& rollout) {
  return fmt::format("{} of {} nodes have version {}; {} refused it, {} are away",
                     rollout.nodes_current(), rollout.nodes(), rollout.version(),
                     rollout.nodes_refused(), rollout.nodes_away());
}

absl::Status PrintRollout(const Session& session, const v1::GetRolloutResponse& rollout) {
  if (!session.is_table()) return session.PrintValue(ToJson(rollout));
  const bool well = IsOver(rollout) && rollout.nodes_refused() == 0;
  session.Out(Coloured(CountsOf(rollout), well ? Tone::kGood : Tone::kWarning, session.colours) +
              "\n");
  if (rollout.behind().empty()) return absl::OkStatus();
  session.Out("\n");
  using Node = v1::NodeInfo;
  return PrintList(
      session,
      ListForm<Node>{
          .what = "nodes behind",
          .name = [](const Node& node) { return node.name(); },
          .json = [](const Node& node) { return Json(node.name()); },
          .columns = {{"NODE", [](const Node& node) { return Cell{node.name()}; }},
                      {"POLICY",
                       [](const Node& node) { return NumberCell(node.policy_version()); }},
                      {"WHY",
                       [](const Node& node) {
                         return node.policy_error().empty()
                                    ? Cell{"on its way"}
                                    : Cell{"refused: " + node.policy_error(), Tone::kBad};
                       }}}},
      rollout.behind());
}

absl::StatusOr<int> Status(Session& session) {
  constexpr absl::Duration kInterval = absl::Seconds(1);
  ASSIGN_OR_RETURN(v1::GetRolloutResponse rollout, session.client.GetRollout());
  if (!session.arguments.Has("watch")) {
    RETURN_IF_ERROR(PrintRollout(session, rollout));
    return 0;
  }
  const absl::Duration limit = session.arguments.Duration("timeout");
  const absl::Time until = session.now() + limit;
  {
    Progress progress(session.world.console, "rollout");
    while (!IsOver(rollout)) {
      progress.Show(rollout.nodes_current(), rollout.nodes() - rollout.nodes_away(),
                    CountsOf(rollout));
      if (session.now() >= until || !session.world.wait(kInterval)) break;
      ASSIGN_OR_RETURN(rollout, session.client.GetRollout());
    }
  }
  RETURN_IF_ERROR(PrintRollout(session, rollout));
  if (!IsOver(rollout)) {
    session.Note(fmt::format("rollout status: after {} not all nodes have version {}",
                             absl::FormatDuration(limit), rollout.version()));
    return 1;
  }
  return rollout.nodes_refused() == 0 ? 0 : 1;
}

}  // namespace

Command RolloutCommand() {
  return {
      .name = "rollout",
      .summary = "Which nodes have the newest policy",
      .description = "Policy reaches nodes as one bundle a version.",
      .commands = {{.name = "status",
                    .summary = "How many nodes have the newest policy, and which have not",
                    .description =
                        "With --watch, waits until each connected node has it or has refused "
                        "it. A node that is away is not waited for: it gets the policy when "
                        "it comes back.",
                    .examples = {"spokectl rollout status",
                                 "spokectl apply -f policies/ && spokectl rollout status --watch",
                                 "spokectl rollout status --watch --timeout 5m"},
                    .options = {{.name = "watch", .help = "Wait until it is over", .letter = 'w'},
                                {.name = "timeout",
                                 .value = "TIME",
                                 .help = "How long to wait for that",
                                 .values = Values::kDuration,
                                 .fallback = "10m"}},
                    .run = Status,
                    .exit_codes =
                        "with --watch 0 when every connected node has it, 1 when one has "
                        "refused it or the time is over; 2 could not ask or wrong usage; else "
                        "as everywhere.",
                    .failure_code = 2}},
      .group = kGroupPolicy};
}

}  // namespace spoke::ctl
