// The verbs `reachability` and `check`: whether nodes reach each other, by what they probe all the
// time and on an operator's word.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

constexpr int kMostRows = 20;

std::string TimeText(uint32_t us) {
  if (us == 0) return "";
  return us < 10'000 ? fmt::format("{:.2f} ms", us / 1000.0) : fmt::format("{} ms", us / 1000);
}

std::string LostText(const v1::ProbeTally& tally) {
  const double share = tally.probes() == 0 ? 0
                                           : 100.0 * static_cast<double>(tally.lost()) /
                                                 static_cast<double>(tally.probes());
  return fmt::format("{} of {} ({:.1f} %)", tally.lost(), tally.probes(), share);
}

Cell LostCell(const v1::ProbeTally& tally, bool is_bad) {
  return {LostText(tally), is_bad ? Tone::kBad : Tone::kPlain};
}

Json ToJson(const v1::ProbeTally& tally) {
  return {{"probes", tally.probes()},
          {"lost", tally.lost()},
          {"p50_us", tally.p50_us()},
          {"p99_us", tally.p99_us()}};
}

Json ToJson(const v1::ReachabilityNode& node) {
  Json value = {{"node", node.name()}, {"group", node.group()}};
  value.update(ToJson(node.tally()));
  value.update({{"peers", node.peers()},
                {"peers_lost", node.peers_lost()},
                {"suspicion", node.suspicion()},
                {"since", TimeOf(node.since_unix_ms())}});
  return value;
}

Json ToJson(const v1::ReachabilityBetween& between) {
  Json value = {{"a", between.a()}, {"b", between.b()}};
  value.update(ToJson(between.tally()));
  value["suspicion"] = between.suspicion();
  return value;
}

template <typename List>
Json ToJsonList(const List& list) {
  return JsonList(list, [](const auto& item) { return ToJson(item); });
}

std::string Table(const Session& session, const std::vector<std::string>& titles,
                  const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.front().text);
  return session.Table(titles, rows, names) + "\n";
}

std::string More(size_t all) {
  return all > kMostRows ? fmt::format("... and {} more; see -o json\n", all - kMostRows) : "";
}

// A table of nodes with what is suspected of them below.
std::string Suspects(const Session& session,
                     const google::protobuf::RepeatedPtrField<v1::ReachabilityNode>& nodes) {
  std::vector<Row> rows;
  std::string reasons;
  for (const v1::ReachabilityNode& node : nodes) {
    if (rows.size() == kMostRows) break;
    rows.push_back({{Printable(node.name()), Tone::kBad},
                    {Printable(node.group())},
                    LostCell(node.tally(), true),
                    {fmt::format("{} of {}", node.peers_lost(), node.peers())},
                    {TimeText(node.tally().p50_us())},
                    {session.AgeOf(node.since_unix_ms())}});
    reasons += fmt::format("{}: {}\n", Printable(node.name()), Printable(node.suspicion()));
  }
  if (rows.empty()) return "";
  return Table(session, {"NODE", "GROUP", "LOST", "PEERS LOST", "P50", "SINCE"}, rows) + reasons +
         More(static_cast<size_t>(nodes.size()));
}

std::string Pairs(const Session& session,
                  const google::protobuf::RepeatedPtrField<v1::ReachabilityBetween>& pairs) {
  std::vector<Row> rows;
  for (const v1::ReachabilityBetween& pair : pairs) {
    if (rows.size() == kMostRows) break;
    rows.push_back({{Printable(pair.a())},
                    {Printable(pair.b())},
                    LostCell(pair.tally(), true),
                    {TimeText(pair.tally().p50_us())}});
  }
  return Table(session, {"NODE", "NODE", "LOST", "P50"}, rows) +
         More(static_cast<size_t>(pairs.size()));
}

absl::StatusOr<v1::GetReachabilityResponse> AskReachability(Session& session,
                                                            const std::string& node) {
  v1::GetReachabilityRequest request;
  request.set_node(node);
  ASSIGN_OR_RETURN(v1::GetReachabilityResponse response,
                   session.client.Ask(kGetReachability, request));
  if (!response.enabled()) {
    return absl::FailedPreconditionError(
        "nodes do not probe each other: the server's configuration switches it off "
        "(reachability.interval)");
  }
  if (response.at_unix_ms() == 0) {
    return absl::FailedPreconditionError(
        "no round of probes has ended yet since this server began; try again in half a minute");
  }
  return response;
}

std::string Whole(const v1::GetReachabilityResponse& response) {
  return fmt::format(
      "{} nodes probed each other in the last {} s: {} lost, round trips {} (p50), {} "
      "(p99)\n",
      response.nodes(), response.window_s(), LostText(response.all()),
      TimeText(response.all().p50_us()), TimeText(response.all().p99_us()));
}

absl::StatusOr<int> Show(Session& session) {
  ASSIGN_OR_RETURN(const v1::GetReachabilityResponse response, AskReachability(session, ""));
  const bool well =
      response.suspects().empty() && response.pairs().empty() && response.unjudged().empty();
  if (!session.is_table()) {
    RETURN_IF_ERROR(session.PrintValue({{"at", TimeOf(response.at_unix_ms())},
                                        {"window_s", response.window_s()},
                                        {"nodes", response.nodes()},
                                        {"all", ToJson(response.all())},
                                        {"unjudged", response.unjudged()},
                                        {"suspects", ToJsonList(response.suspects())},
                                        {"pairs", ToJsonList(response.pairs())}}));
    return well ? 0 : 1;
  }
  session.Out(Whole(response));
  if (!response.unjudged().empty()) {
    session.Out(Coloured(response.unjudged() + "\n", Tone::kBad, session.colours));
  }
  session.Out(Suspects(session, response.suspects()));
  if (!response.pairs().empty()) {
    session.Out("pairs that do not reach each other, while both reach others:\n");
    session.Out(Pairs(session, response.pairs()));
  }
  if (well) {
    session.Out(Coloured("no node is suspected of losing packets\n", Tone::kGood, session.colours));
  }
  return well ? 0 : 1;
}

absl::StatusOr<int> ShowNode(Session& session) {
  ASSIGN_OR_RETURN(const v1::GetReachabilityResponse response,
                   AskReachability(session, session.arguments.Text("node")));
  const v1::ReachabilityNode& node = response.node();
  const int code = node.suspicion().empty() ? 0 : 1;
  if (!session.is_table()) {
    Json value = ToJson(node);
    value["fleet"] = ToJson(response.all());
    value["with"] = ToJsonList(response.peers());
    RETURN_IF_ERROR(session.PrintValue(value));
    return code;
  }
  session.Out(fmt::format(
      "{}: {} lost with {} other{} in the last {} s, round trips {} (p50), {} "
      "(p99); all nodes: {:.1f} % lost, {} (p50)\n",
      Printable(node.name()), LostText(node.tally()), node.peers(), node.peers() == 1 ? "" : "s",
      response.window_s(), TimeText(node.tally().p50_us()), TimeText(node.tally().p99_us()),
      response.all().probes() == 0 ? 0
                                   : 100.0 * static_cast<double>(response.all().lost()) /
                                         static_cast<double>(response.all().probes()),
      TimeText(response.all().p50_us())));
  if (code != 0) {
    session.Out(Coloured(fmt::format("suspected for {}: {}\n", session.AgeOf(node.since_unix_ms()),
                                     Printable(node.suspicion())),
                         Tone::kBad, session.colours));
  }
  std::vector<Row> rows;
  for (const v1::ReachabilityBetween& peer : response.peers()) {
    rows.push_back({{Printable(peer.b())},
                    LostCell(peer.tally(), peer.tally().lost() > 0),
                    {TimeText(peer.tally().p50_us())},
                    {TimeText(peer.tally().p99_us())}});
  }
  session.Out(Table(session, {"WITH", "LOST", "P50", "P99"}, rows));
  return code;
}

absl::StatusOr<int> ShowMatrix(Session& session) {
  ASSIGN_OR_RETURN(const v1::GetReachabilityResponse response, AskReachability(session, ""));
  if (!session.is_table()) {
    return Done(session.PrintValue(
        {{"label", response.group_label()}, {"groups", ToJsonList(response.groups())}}));
  }
  std::map<std::pair<std::string, std::string>, Cell> cells;
  std::set<std::string> names;
  for (const v1::ReachabilityBetween& groups : response.groups()) {
    const auto& tally = groups.tally();
    const double share = static_cast<double>(tally.lost()) /
                         static_cast<double>(std::max<uint64_t>(tally.probes(), 1));
    const Cell cell = {fmt::format("{:.1f} % {}", 100 * share, TimeText(tally.p50_us())),
                       share >= 0.05 ? Tone::kBad : Tone::kPlain};
    cells[{groups.a(), groups.b()}] = cell;
    cells[{groups.b(), groups.a()}] = cell;
    names.insert(groups.a());
    names.insert(groups.b());
  }
  const auto shown = [](const std::string& name) {
    return name.empty() ? std::string("(none)") : Printable(name);
  };
  std::vector<std::string> titles = {"GROUP"};
  std::vector<Row> rows;
  for (const std::string& name : names) {
    titles.push_back(shown(name));
    Row& row = rows.emplace_back();
    row.push_back({shown(name)});
    for (const std::string& other : names) {
      const auto cell = cells.find({name, other});
      row.push_back(cell == cells.end() ? Cell{"-", Tone::kFaint} : cell->second);
    }
  }
  session.Out(fmt::format("lost, and round trip (p50), between nodes by their label {}:\n",
                          Printable(response.group_label())));
  session.Out(Table(session, titles, rows));
  return 0;
}

std::string CheckSummary(const v1::CheckNodesResponse& result) {
  std::string text = fmt::format(
      "{} nodes: {} of small probes lost, {} of full size; round trips {} (p50), {} "
      "(p99)",
      result.nodes_size(), LostText(result.small()), LostText(result.full()),
      TimeText(result.small().p50_us()), TimeText(result.small().p99_us()));
  if (result.pairs_lost() > 0) {
    text += fmt::format("; {} pairs lost probes", result.pairs_lost());
  }
  if (!result.unheard().empty()) {
    text += fmt::format("; {} not try", Counted(static_cast<uint64_t>(result.unheard_size()),
                                                "node could", "nodes could"));
  }
  return text;
}

absl::StatusOr<int> ProbeEachOther(Session& session) {
  v1::CheckNodesRequest request;
  for (const std::string& node : session.arguments.All("node")) request.add_nodes(node);
  request.set_job(session.arguments.Text("job"));
  if (request.nodes().empty() && request.job().empty()) {
    return absl::InvalidArgumentError("name nodes, or a job with --job NAMESPACE/NAME");
  }
  request.set_timeout_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(session.arguments.Duration("within"))));
  v1::CheckNodesResponse result;
  {
    Progress progress(session.world.console, "check");
    RETURN_IF_ERROR(session.client.Read(kCheckNodes, request, [&](const auto& message) {
      if (message.over()) {
        result = message;
      } else {
        progress.Show(message.done(), message.total(),
                      fmt::format("{} of {} questions", message.done(), message.total()));
      }
      return absl::OkStatus();
    }));
  }
  if (!result.over()) return absl::InternalError("the server ended the check early; see its log");
  const bool well = result.pairs_lost() == 0 && result.unheard().empty();
  if (!session.is_table()) {
    RETURN_IF_ERROR(session.PrintValue({{"well", well},
                                        {"small", ToJson(result.small())},
                                        {"full", ToJson(result.full())},
                                        {"nodes", ToJsonList(result.nodes())},
                                        {"pairs_lost", result.pairs_lost()},
                                        {"pairs", ToJsonList(result.pairs())},
                                        {"unheard", JsonList(result.unheard())}}));
    return well ? 0 : 1;
  }
  google::protobuf::RepeatedPtrField<v1::ReachabilityNode> suspects;
  for (const v1::ReachabilityNode& node : result.nodes()) {
    if (!node.suspicion().empty()) *suspects.Add() = node;
  }
  session.Out(Suspects(session, suspects));
  session.Out(Pairs(session, result.pairs()));
  for (const std::string& node : result.unheard()) {
    session.Out(Coloured(Printable(node) + "\n", Tone::kBad, session.colours));
  }
  session.Out(Coloured(CheckSummary(result), well ? Tone::kGood : Tone::kBad, session.colours) +
              "\n");
  return well ? 0 : 1;
}

constexpr const char* kExitCodes =
    "0 nothing is suspected; 1 something is; 2 could not ask or wrong "
    "usage; else as everywhere.";

}  // namespace

Command ReachabilityCommand() {
  return {
      .name = "reachability",
      .summary = "Whether nodes reach each other",
      .description =
          "Each node probes some others every 20 s (reachability, in the server's configuration) "
          "with ICMP echoes from its own address; the next round has others, so that all pairs "
          "meet. A node that loses many more than the rest is suspected.",
      .commands = {{.name = "show",
                    .summary = "Nodes and pairs that lose packets",
                    .examples = {"spokectl reachability show",
                                 "spokectl reachability show -o json"},
                    .run = Show,
                    .exit_codes = kExitCodes,
                    .failure_code = 2,
                    .watchable = true},
                   {.name = "node",
                    .summary = "A node's probes, by peer",
                    .examples = {"spokectl reachability node node1"},
                    .positionals = {{.name = "node",
                                     .value = "NODE",
                                     .help = "The node",
                                     .values = Values::kNode,
                                     .required = true}},
                    .run = ShowNode,
                    .exit_codes = kExitCodes,
                    .failure_code = 2,
                    .watchable = true},
                   {.name = "matrix",
                    .summary = "What is lost between groups of nodes",
                    .description =
                        "Groups are the values of the label that reachability.group_label names, "
                        "that of a zone or fault domain for instance.",
                    .examples = {"spokectl reachability matrix"},
                    .run = ShowMatrix,
                    .watchable = true}},
      .group = kGroupLook};
}

Command CheckCommand() {
  return {
      .name = "check",
      .summary = "Let all of some nodes probe each other now",
      .description =
          "Each of the nodes probes all others, with small packets and with the largest that "
          "both NICs take, which may not be fragmented. With --job, the nodes are those where "
          "the job's pods run: pods of the namespace whose names are NAME, or begin with NAME-.",
      .examples = {"spokectl check node1 node2 node3", "spokectl check --job ml/train-7",
                   "spokectl check --job ml/train-7 -o json"},
      .positionals = {{.name = "node",
                       .value = "NODE",
                       .help = "A node that takes part",
                       .values = Values::kNode,
                       .repeated = true}},
      .options = {{.name = "job",
                   .value = "NAMESPACE/NAME",
                   .help = "The nodes of the job's pods as well"},
                  {.name = "within",
                   .value = "TIME",
                   .help = "How long to wait for each probe, 5s at most",
                   .values = Values::kDuration,
                   .fallback = "1s"}},
      .run = ProbeEachOther,
      .group = kGroupLook,
      .exit_codes =
          "0 all probes arrived; 1 some were lost, or a node could not try; 2 could not "
          "ask or wrong usage; else as everywhere.",
      .failure_code = 2};
}

}  // namespace spoke::ctl
