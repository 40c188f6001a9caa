// The verbs `logs node` and `node state`: what a node's agent has kept, as it tells by way of the
// server.
#include <algorithm>
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

// Returns the level that a line says; empty: none.
std::string_view LevelOf(std::string_view line) {
  constexpr std::string_view kKey = " level=";
  const size_t at = line.find(kKey);
  if (at == std::string_view::npos) return "";
  line.remove_prefix(at + kKey.size());
  return line.substr(0, line.find(' '));
}

// Whether a line, which begins with its time, is from `since` on. What has no time is of the line
// before, so that it is not lost.
class Since {
 public:
  explicit Since(absl::Time since) : since_(since) {}

  bool Has(std::string_view line) {
    absl::Time at;
    const std::string word(line.substr(0, line.find(' ')));
    std::string ignored;
    if (absl::ParseTime(absl::RFC3339_full, word, &at, &ignored)) is_later_ = at >= since_;
    return is_later_;
  }

 private:
  const absl::Time since_;
  bool is_later_ = true;
};

absl::StatusOr<int> Logs(Session& session) {
  const std::string& node = session.arguments.Text("node");
  ASSIGN_OR_RETURN(const std::string text, AskForPart(session, node, "log"));
  const std::string& least = session.arguments.Text("level");
  const std::string& wanted = session.arguments.Text("grep");
  absl::Time from = absl::InfinitePast();
  if (session.arguments.Has("since")) {
    ASSIGN_OR_RETURN(from, ParseTime(session.arguments.Text("since"), session.now()));
  }
  Since since(from);
  std::vector<std::string> lines;
  for (std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (line.empty() || !since.Has(line) || !IsOfLevel(LevelOf(line), least)) continue;
    if (absl::StrContains(line, wanted)) lines.push_back(std::move(line));
  }
  for (const char* option : {"tail", "limit"}) {
    if (!session.arguments.Has(option)) continue;
    const size_t last = std::min<size_t>(lines.size(), session.arguments.Count(option));
    lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(last));
  }
  if (!session.is_table() && session.format != Format::kName) {
    return Done(session.PrintValue({{"node", node}, {"lines", lines}}));
  }
  for (const std::string& line : lines) session.Out(Printable(line) + "\n");
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
  return {
      .name = "logs",
      .summary = "What agents have logged of late",
      .commands =
          {{.name = "node",
            .summary = "The end of the log of a node's agent",
            .description = "The agent itself keeps it, some 256 KiB since it was started, and "
                           "tells it by way of the server: no way to the node is needed. What was "
                           "before is where the node keeps its logs: kubectl logs, or journalctl.",
            .examples = {"spokectl logs node node1",
                         "spokectl logs node node1 --level warning --tail 20",
                         "spokectl logs node node1 --grep cni_add"},
            .positionals = {kNode},
            .options = {LevelOption(),
                        {.name = "grep", .value = "TEXT", .help = "Only lines that hold this text"},
                        {.name = "since",
                         .value = "TIME",
                         .help = "Only since then: 2024-05-01T12:00:00Z, or how long "
                                 "ago, such as 15m",
                         .values = Values::kTime},
                        {.name = "tail",
                         .value = "N",
                         .help = "Only the last so many of them",
                         .values = Values::kCount},
                        {.name = "limit",
                         .value = "N",
                         .help = "The same as --tail, as spokectl events has it",
                         .values = Values::kCount}},
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
