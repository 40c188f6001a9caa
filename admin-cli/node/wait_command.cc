#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "admin-cli/output/views.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "fmt/ranges.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

constexpr absl::Duration kBetween = absl::Seconds(1);

struct Condition {
  std::string_view name;
  bool (*holds)(const v1::NodeInfo& node);
};

constexpr std::array<Condition, 4> kConditions = {{
    {"connected", [](const v1::NodeInfo& node) { return node.connected(); }},
    {"away", [](const v1::NodeInfo& node) { return !node.connected(); }},
    {"synced",
     [](const v1::NodeInfo& node) {
       return node.connected() && node.desired_version() == node.acked_version() &&
              node.policy_error().empty();
     }},
    {"empty",
     [](const v1::NodeInfo& node) {
       return node.attached() == 0 && node.attaching() == 0 && node.detaching() == 0;
     }},
}};

// Returns how many addresses the node has, and how many are on their way: each that keeps it from
// being empty.
std::string AddressesOf(const v1::NodeInfo& node) {
  std::string text;
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(node.attaching(), "attaching");
  add(node.attached(), "attached");
  add(node.detaching(), "detaching");
  return text.empty() ? "0 attached" : text;
}

// Returns those of `names` for which the condition does not hold, with what they are instead.
// Errors: those of the call; kNotFound (there is no such node).
absl::StatusOr<std::vector<std::string>> Missing(const Session& session, const Condition& condition,
                                                 const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    v1::GetNodeRequest request;
    request.set_name(name);
    ASSIGN_OR_RETURN(const v1::GetNodeResponse response, session.client.Ask(kGetNode, request));
    const v1::NodeInfo& node = response.node();
    if (condition.holds(node)) continue;
    missing.push_back(
        fmt::format("{} ({}, {}, {}{})", name, node.connected() ? "connected" : "away", node.mode(),
                    AddressesOf(node), node.policy_error().empty() ? "" : ", refuses its policy"));
  }
  return missing;
}

// Whether the server is away, or another begins to lead: that is what one may be waiting for.
bool PassesByItself(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
}

absl::StatusOr<int> Wait(Session& session) {
  const auto* const condition =
      std::find_if(kConditions.begin(), kConditions.end(),
                   [&](const Condition& one) { return one.name == session.arguments.Text("for"); });
  const absl::Time deadline = session.now() + session.arguments.Duration("within");
  std::vector<std::string> missing;
  Progress progress(session.world.console, "node wait");
  while (true) {
    auto looked = Missing(session, *condition, session.arguments.All("node"));
    if (!looked.ok() && !PassesByItself(looked.status())) return looked.status();
    if (looked.ok() && looked->empty()) break;
    if (session.now() >= deadline) {
      return absl::DeadlineExceededError(
          fmt::format("not {} within {}: {}", condition->name, session.arguments.Text("within"),
                      looked.ok() ? fmt::format("{}", fmt::join(*looked, ", "))
                                  : std::string(base::MessageOf(looked.status()))));
    }
    const size_t all = session.arguments.All("node").size();
    const size_t done = looked.ok() ? all - looked->size() : 0;
    progress.Show(done, all, fmt::format("{} of {} nodes are {}", done, all, condition->name));
    if (!session.world.wait(kBetween)) return absl::CancelledError("interrupted");
  }
  progress.Clear();
  for (const std::string& name : session.arguments.All("node")) {
    session.Out(session.format == Format::kName ? name + "\n"
                                                : fmt::format("{} is {}\n", name, condition->name));
  }
  return 0;
}

}  // namespace

Command WaitCommand() {
  return {.name = "wait",
          .summary = "Wait until nodes are connected, synced, empty or away",
          .description =
              "connected: the agent has a session. synced: it also has all that it was told of "
              "addresses, and has refused no policy. empty: nothing is attached or on its way, as "
              "after a drain. away: it has no session. Looks once a second, and goes on when the "
              "server is away.",
          .examples = {"spokectl node wait node1 node2 --for connected",
                       "spokectl node drain node1 && spokectl node wait node1 --for empty --within "
                       "30m"},
          .positionals = {{.name = "node",
                           .value = "NODE",
                           .help = "Names of nodes",
                           .values = Values::kNode,
                           .repeated = true,
                           .required = true}},
          .options = {{.name = "for",
                       .value = "CONDITION",
                       .help = "What to wait for",
                       .choices = {"connected", "synced", "empty", "away"},
                       .required = true},
                      {.name = "within",
                       .value = "TIME",
                       .help = "How long to wait: 30s, 5m",
                       .values = Values::kDuration,
                       .fallback = "5m"}},
          .run = Wait,
          .exit_codes = "0 all are; 3 not all within the time, or no server answered at the end"};
}

}  // namespace spoke::ctl
