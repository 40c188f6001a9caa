#include "admin-cli/output/console.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/policy/objects.h"
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
                {"nodes_held", rollout.nodes_held()},
                {"connections", rollout.connections()},
                {"connections_cut", rollout.connections_cut()},
                {"held_connections", rollout.held_connections()},
                {"held_connections_cut", rollout.held_connections_cut()},
                {"behind", Json::array()}};
  for (const v1::NodeInfo& node : rollout.behind()) {
    value["behind"].push_back({{"name", node.name()},
                               {"policy_version", node.policy_version()},
                               {"policy_error", node.policy_error()}});
  }
  return value;
}

// Returns whether there is nothing to wait for: each node that is here has it or has refused it. A
// node that is away gets it when it comes back.
bool IsOver(const v1::GetRolloutResponse& rollout) {
  return rollout.nodes_current() + rollout.nodes_refused() + rollout.nodes_away() >=
         rollout.nodes();
}

std::string CountsOf(const v1::GetRolloutResponse& rollout) {
  return fmt::format("{} of {} nodes have version {}; {} refused it, {} are away",
                     rollout.nodes_current(), rollout.nodes(), rollout.version(),
                     rollout.nodes_refused(), rollout.nodes_away());
}

// Says what it does to connections, a line each; empty: nothing that anybody has counted.
std::string CutsOf(const v1::GetRolloutResponse& rollout) {
  std::string text;
  if (rollout.connections_cut() > 0) {
    text += fmt::format("it has cut {} of {} connections\n", rollout.connections_cut(),
                        rollout.connections());
  }
  if (rollout.nodes_held() > 0) {
    text += fmt::format(
        "stopped on {}, of whose {} connections it would cut {}; to go on there: spokectl rollout "
        "resume {}\n",
        Counted(rollout.nodes_held(), "node", "nodes"), rollout.held_connections(),
        rollout.held_connections_cut(), rollout.version());
  }
  return text;
}

absl::Status PrintRollout(const Session& session, const v1::GetRolloutResponse& rollout) {
  if (!session.is_table()) return session.PrintValue(ToJson(rollout));
  const bool well = IsOver(rollout) && rollout.nodes_refused() == 0;
  session.Out(Coloured(CountsOf(rollout), well ? Tone::kGood : Tone::kWarning, session.colours) +
              "\n");
  const std::string cuts = CutsOf(rollout);
  if (!cuts.empty()) {
    const Tone tone = rollout.nodes_held() > 0 ? Tone::kBad : Tone::kWarning;
    session.Out(Coloured(cuts, tone, session.colours));
  }
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
                       },
                       false, Fit::kWidth}}},
      rollout.behind());
}

absl::StatusOr<int> Status(Session& session) {
  constexpr absl::Duration kInterval = absl::Seconds(1);
  ASSIGN_OR_RETURN(v1::GetRolloutResponse rollout, session.client.Ask(kGetRollout));
  if (!session.arguments.Has("watch")) {
    return Done(PrintRollout(session, rollout));
  }
  const absl::Duration limit = session.arguments.Duration("timeout");
  const absl::Time until = session.now() + limit;
  {
    Progress progress(session.world.console, "rollout");
    while (!IsOver(rollout)) {
      progress.Show(rollout.nodes_current(), rollout.nodes() - rollout.nodes_away(),
                    CountsOf(rollout));
      if (session.now() >= until || !session.world.wait(kInterval)) break;
      ASSIGN_OR_RETURN(rollout, session.client.Ask(kGetRollout));
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

absl::StatusOr<int> Resume(Session& session) {
  v1::ResumeRolloutRequest request;
  request.set_version(session.arguments.Version("policy-version"));
  ASSIGN_OR_RETURN(const v1::ResumeRolloutResponse response,
                   session.client.Ask(kResumeRollout, request));
  if (!session.is_table()) {
    return Done(session.PrintValue({{"version", request.version()},
                                    {"nodes", response.nodes()},
                                    {"connections", response.connections()},
                                    {"connections_cut", response.connections_cut()}}));
  }
  session.Out(fmt::format("{} version {} now; it ends {} of their {} connections\n",
                          Counted(response.nodes(), "node takes", "nodes take"), request.version(),
                          response.connections_cut(), response.connections()));
  return 0;
}

absl::StatusOr<int> Undo(Session& session) {
  v1::UndoRolloutRequest request;
  request.set_to_version(session.arguments.Version("to"));
  request.set_dry_run(session.arguments.Has("dry-run"));
  ASSIGN_OR_RETURN(const v1::ApplyResponse response, session.client.Ask(kUndoRollout, request));
  return Done(PrintChanges(session, response.changes(), request.dry_run()));
}

Command UndoCommand() {
  return {.name = "undo",
          .summary = "Put policy objects back as they were at an earlier version",
          .description =
              "Applies the objects as they were, as a new version, all or nothing and by the rules "
              "of apply: what clashes with addresses in use by now is refused. Without --to, what "
              "the last change has changed. The server keeps what was before the last 20 changes; "
              "spokectl policy history lists them.",
          .examples = {"spokectl policy history", "spokectl rollout undo --dry-run",
                       "spokectl rollout undo --to 1789034112345"},
          .options = {{.name = "to",
                       .value = "VERSION",
                       .help = "The version to go back to, as spokectl policy history shows it",
                       .values = Values::kVersion},
                      {.name = "dry-run", .help = "Say what would change, change nothing"}},
          .run = Undo};
}

}  // namespace

Command RolloutCommand() {
  return {
      .name = "rollout",
      .summary = "Which nodes have the newest policy",
      .description = "Policy reaches nodes as one bundle a version.",
      .commands =
          {{.name = "status",
            .summary = "How many nodes have the newest policy, and which have not",
            .description = "With --watch, waits until each connected node has it or has refused "
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
            .exit_codes = "with --watch 0 when every connected node has it, 1 when one has "
                          "refused it or the time is over; 2 could not ask or wrong usage; else "
                          "as everywhere.",
            .failure_code = 2},
           {.name = "resume",
            .summary = "Let nodes take a policy that ends many of their connections",
            .description =
                "A node does not take a policy that ends more of its connections than the "
                "server's policy.max_cut_share, nor does it end any of them, until an "
                "operator says so: for this version of the policy, on all nodes. Names the "
                "version that spokectl rollout status shows, so that it means what was "
                "looked at.",
            .examples = {"spokectl rollout status", "spokectl rollout resume 1789034112345"},
            .positionals = {{.name = "policy-version",
                             .value = "VERSION",
                             .help = "Of the policy, as spokectl rollout status shows it",
                             .values = Values::kVersion,
                             .required = true}},
            .run = Resume},
           UndoCommand()},
      .group = kGroupPolicy};
}

}  // namespace spoke::ctl
