// The verbs `logs node` and `node state`: what a node's agent has kept, as it tells by way of the
// server.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "admin-cli/output/console.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

constexpr std::array<std::string_view, 3> kLevels = {"info", "warning", "error"};

// Returns the part of that name of what the agent of `node` has kept.
absl::StatusOr<std::string> AskForPart(Session& session, const std::string& node,
                                       const std::string& part) {
  v1::GetNodeDataRequest request;
  request.set_node(node);
  request.add_parts(part);
  ASSIGN_OR_RETURN(const v1::GetNodeDataResponse response,
                   session.client.Ask(kGetNodeData, request));
  for (const v1::NodeData::Part& told : response.parts()) {
    if (told.name() == part) return told.text();
  }
  return absl::NotFoundError(fmt::format("the agent of node {} keeps no {}", node, part));
}

// Whether a line is of `least` or above.
bool IsOfLevel(std::string_view line, std::string_view least) {
  bool counts = false;
  for (const std::string_view level : kLevels) {
    counts = counts || level == least;
    if (counts && absl::StrContains(std::string(line), fmt::format(" level={} ", level))) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<int> Logs(Session& session) {
  const std::string& node = session.arguments.Text("node");
  ASSIGN_OR_RETURN(const std::string text, AskForPart(session, node, "log"));
  const std::string& least = session.arguments.Text("level");
  const std::string& wanted = session.arguments.Text("grep");
  Json lines = Json::array();
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (line.empty() || !IsOfLevel(line, least) || !absl::StrContains(line, wanted)) continue;
    if (session.is_table() || session.format == Format::kName) {
      session.Out(Printable(line) + "\n");
    } else {
      lines.push_back(line);
    }
  }
  if (!session.is_table() && session.format != Format::kName) {
    RETURN_IF_ERROR(session.PrintValue({{"node", node}, {"lines", std::move(lines)}}));
  }
  return 0;
}

absl::StatusOr<int> State(Session& session) {
  const std::string& node = session.arguments.Text("node");
  ASSIGN_OR_RETURN(const std::string text, AskForPart(session, node, "state"));
  const Json state = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (state.is_discarded()) {
    return absl::DataLossError(
        fmt::format("what the agent of node {} tells is no JSON document", node));
  }
  // There is no table of it.
  if (session.is_table()) session.format = Format::kJson;
  RETURN_IF_ERROR(session.PrintValue(state));
  return 0;
}

const Parameter kNode = {
    .name = "node", .value = "NODE", .help = "The node", .values = Values::kNode, .required = true};

}  // namespace

Command LogsCommand() {
  return {.name = "logs",
          .summary = "What agents have logged of late",
          .commands = {{.name = "node",
                        .summary = "The end of the log of a node's agent",
                        .description =
                            "The agent itself keeps it, some 256 KiB since it was started, and "
                            "tells it by way of the server: no way to the node is needed. What was "
                            "before is where the node keeps its logs: kubectl logs, or journalctl.",
                        .examples = {"spokectl logs node node1",
                                     "spokectl logs node node1 --level warning",
                                     "spokectl logs node node1 --grep cni_add"},
                        .positionals = {kNode},
                        .options = {{.name = "level",
                                     .value = "LEVEL",
                                     .help = "Only lines of this level and above",
                                     .choices = {"info", "warning", "error"},
                                     .fallback = "info"},
                                    {.name = "grep",
                                     .value = "TEXT",
                                     .help = "Only lines that hold this text"}},
                        .run = Logs,
                        .watchable = false}},
          .group = kGroupLook};
}

Command NodeStateCommand() {
  return {
      .name = "state",
      .summary = "What a node's agent knows, as it tells itself",
      .description =
          "Its addresses by use, its pods, what its checks find and what maintenance is "
          "announced, as a document. `node show` says what the server knows.",
      .examples = {"spokectl node state node1", "spokectl node state node1 | jq '.pods[].name'"},
      .positionals = {kNode},
      .run = State};
}

}  // namespace spoke::ctl
