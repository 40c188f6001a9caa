// The verb `connectivity test`: what can be reached from nodes, as a list of tests that pass or
// fail.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"
#include "lib/ip/address.h"

namespace spoke::ctl {
namespace {

constexpr size_t kNodesByDefault = 5;
constexpr size_t kMaxNodes = 20;

struct Test {
  std::string from;
  std::string name;  // "agent", "nodes", "to", "internet" or "must-fail".
  std::string target;
  bool passed = false;
  std::string detail;
};

struct Chosen {
  std::vector<std::string> connected;
  std::vector<std::string> away;
};

std::string_view RemedyOf(std::string_view name) {
  if (name == "agent") {
    return "The node could not try. Look at its agent's log; docs/runbooks/SpokeAgentsAway.md.";
  }
  if (name == "nodes") {
    return "`spokectl reachability show` says which node loses packets; "
           "docs/runbooks/SpokeNodeLosesPackets.md.";
  }
  if (name == "internet") {
    return "Look at the node's way out: `spokectl get EgressPolicy`; docs/EGRESS.md.";
  }
  if (name == "must-fail") {
    return "Policy is not in force there: `spokectl rollout status`, `spokectl policy verify`.";
  }
  return "Does it answer others? Is it part of a block that policy lets through? "
         "docs/runbooks/symptoms/pod-cannot-reach.md.";
}

// Returns `count` of the names, as far from each other as can be.
std::vector<std::string> Spread(const std::vector<std::string>& names, size_t count) {
  if (names.size() <= count) return names;
  std::vector<std::string> chosen;
  for (size_t i = 0; i < count; ++i) {
    chosen.push_back(names[i * (names.size() - 1) / (count - 1)]);
  }
  return chosen;
}

absl::StatusOr<Chosen> ChooseNodes(Session& session) {
  const auto& given = session.arguments.All("node");
  const std::set<std::string> named(given.begin(), given.end());
  if (named.size() > kMaxNodes) {
    return absl::InvalidArgumentError(
        fmt::format("{} nodes: at most {} can be tested at once", named.size(), kMaxNodes));
  }
  std::map<std::string, bool> known;  // By name, whether it is connected.
  RETURN_IF_ERROR(session.client.Read(kListNodes, {}, [&](const v1::ListNodesResponse& batch) {
    for (const v1::NodeInfo& node : batch.nodes()) {
      if (node.mode() != "retired") known[node.name()] = known[node.name()] || node.connected();
    }
    return absl::OkStatus();
  }));
  Chosen chosen;
  for (const auto& [name, connected] : known) {
    if (connected && (named.empty() || named.contains(name))) chosen.connected.push_back(name);
    if (!connected && named.contains(name)) chosen.away.push_back(name);
  }
  for (const std::string& name : named) {
    if (known.contains(name)) continue;
    return absl::NotFoundError(
        fmt::format("there is no node {}; see: spokectl node list", Printable(name)));
  }
  if (named.empty()) chosen.connected = Spread(chosen.connected, kNodesByDefault);
  if (chosen.connected.empty() && chosen.away.empty()) {
    return absl::FailedPreconditionError("no agent is connected that could try");
  }
  return chosen;
}

// Whether a bare address stands where a port is needed, which would only be an ICMP echo.
absl::Status CheckInternet(const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    if (!ip::Address::Parse(target).ok()) continue;
    return absl::InvalidArgumentError(
        fmt::format("--internet: {} has no port: write ADDRESS:PORT", Printable(target)));
  }
  return absl::OkStatus();
}

// Adds the tests of an agent's answer. It has first the targets that are to be reached, in the
// order of the command line; the server adds those of policy where none are named.
void AddProbes(const Arguments& arguments, const v1::VerifyPolicyResponse& answer,
               std::vector<Test>& tests) {
  const size_t to = arguments.All("to").size();
  const size_t reachable = to + arguments.All("internet").size();
  size_t positive = 0;
  for (const v1::PolicyProbe& probe : answer.probes()) {
    Test test{.from = answer.node(), .name = "must-fail", .target = probe.target()};
    const bool tried = probe.outcome() != "not tried";
    if (probe.expected()) {
      // Nobody may have the address that the server chooses of a hub's block.
      if (reachable == 0) continue;
      test.name = positive++ < to ? "to" : "internet";
    }
    test.passed = tried && probe.reached() == probe.expected();
    test.detail = probe.outcome();
    if (probe.reached()) test.detail += fmt::format(" in {:.1f} ms", probe.took_us() / 1000.0);
    if (!probe.detail().empty()) test.detail += ": " + probe.detail();
    tests.push_back(std::move(test));
  }
  if (positive < reachable) {
    tests.push_back({.from = answer.node(),
                     .name = "agent",
                     .target = "targets",
                     .detail = fmt::format("told of {} of {}", positive, reachable)});
  }
}

absl::Status TestTargets(Session& session, const std::vector<std::string>& nodes,
                         std::vector<Test>& tests) {
  const Arguments& arguments = session.arguments;
  v1::VerifyPolicyRequest request;
  for (const std::string& node : nodes) request.add_nodes(node);
  for (const std::string& target : arguments.All("to")) request.add_hub_targets(target);
  for (const std::string& target : arguments.All("internet")) request.add_hub_targets(target);
  for (const std::string& target : arguments.All("must-fail")) request.add_spoke_targets(target);
  if (nodes.empty() || (request.hub_targets().empty() && request.spoke_targets().empty())) {
    return absl::OkStatus();
  }
  request.set_timeout_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(arguments.Duration("within"))));
  std::set<std::string> silent(nodes.begin(), nodes.end());
  RETURN_IF_ERROR(session.client.Read(kVerifyPolicy, request, [&](const auto& answer) {
    silent.erase(answer.node());
    if (answer.error().empty()) {
      AddProbes(arguments, answer, tests);
    } else {
      tests.push_back(
          {.from = answer.node(), .name = "agent", .target = "targets", .detail = answer.error()});
    }
    return absl::OkStatus();
  }));
  for (const std::string& node : silent) {
    tests.push_back(
        {.from = node, .name = "agent", .target = "targets", .detail = "did not answer"});
  }
  return absl::OkStatus();
}

absl::Status TestNodes(Session& session, const std::vector<std::string>& nodes,
                       std::vector<Test>& tests) {
  if (nodes.size() < 2) return absl::OkStatus();
  v1::CheckNodesRequest request;
  for (const std::string& node : nodes) request.add_nodes(node);
  request.set_timeout_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(session.arguments.Duration("within"))));
  v1::CheckNodesResponse result;
  RETURN_IF_ERROR(session.client.Read(kCheckNodes, request, [&](const auto& message) {
    if (message.over()) result = message;
    return absl::OkStatus();
  }));
  if (!result.over()) return absl::InternalError("the server ended the check early; see its log");
  std::set<std::string> unheard;
  for (const std::string& text : result.unheard()) {
    const std::string node = text.substr(0, text.find(": "));
    unheard.insert(node);
    tests.push_back({.from = node, .name = "agent", .target = "nodes", .detail = text});
  }
  std::map<std::string, size_t> lost;
  for (const v1::ReachabilityBetween& pair : result.pairs()) {
    ++lost[pair.a()];
    ++lost[pair.b()];
    tests.push_back({.from = pair.a(),
                     .name = "nodes",
                     .target = pair.b(),
                     .detail = fmt::format("{} of {} probes lost", pair.tally().lost(),
                                           pair.tally().probes())});
  }
  std::set<std::string> heard;
  for (const v1::ReachabilityNode& node : result.nodes()) heard.insert(node.name());
  for (const std::string& node : nodes) {
    if (unheard.contains(node) || lost[node] > 0) continue;
    // A node of which there are no probes has shown nothing.
    const bool passed = heard.contains(node);
    tests.push_back(
        {.from = node,
         .name = "nodes",
         .target = nodes.size() == 2 ? "1 other" : fmt::format("{} others", nodes.size() - 1),
         .passed = passed,
         .detail = passed ? "no probe lost" : "no probe was answered for"});
  }
  return absl::OkStatus();
}

Json ToJson(const std::vector<Test>& tests, bool passed) {
  Json value = {{"passed", passed}, {"tests", Json::array()}};
  for (const Test& test : tests) {
    value["tests"].push_back({{"from", test.from},
                              {"test", test.name},
                              {"target", test.target},
                              {"passed", test.passed},
                              {"detail", test.detail},
                              {"remedy", test.passed ? "" : RemedyOf(test.name)}});
  }
  return value;
}

void Print(const Session& session, const std::vector<Test>& tests, size_t failed) {
  std::vector<Row> rows;
  std::set<std::string> names;
  for (const Test& test : tests) {
    if (!test.passed) names.insert(test.name);
    rows.push_back({{test.passed ? "PASS" : "FAIL", test.passed ? Tone::kGood : Tone::kBad},
                    {Printable(test.from)},
                    {test.name},
                    {Printable(test.target)},
                    {Printable(test.detail)}});
  }
  session.Out(FormatTable({"RESULT", "FROM", "TEST", "TARGET", "DETAIL"}, rows,
                          {.colours = session.colours, .header = session.header}));
  for (const std::string& name : names) {
    session.Out(fmt::format("\n{}: {}", name, RemedyOf(name)));
  }
  const std::string summary = failed == 0
                                  ? fmt::format("all {} tests passed", tests.size())
                                  : fmt::format("{} of {} tests failed", failed, tests.size());
  session.Out(
      fmt::format("{}\n{}\n", names.empty() ? "" : "\n",
                  Coloured(summary, failed == 0 ? Tone::kGood : Tone::kBad, session.colours)));
}

absl::StatusOr<int> TestConnectivity(Session& session) {
  RETURN_IF_ERROR(CheckInternet(session.arguments.All("internet")));
  ASSIGN_OR_RETURN(const Chosen chosen, ChooseNodes(session));
  std::vector<Test> tests;
  for (const std::string& node : chosen.away) {
    tests.push_back(
        {.from = node, .name = "agent", .target = "", .detail = "its agent is not connected"});
  }
  // First the targets: the server refuses wrong ones before nodes do anything.
  RETURN_IF_ERROR(TestTargets(session, chosen.connected, tests));
  RETURN_IF_ERROR(TestNodes(session, chosen.connected, tests));
  if (tests.empty()) {
    return absl::FailedPreconditionError(
        "one node alone has nothing to test: name targets with --to, or connect another node");
  }
  std::stable_sort(tests.begin(), tests.end(),
                   [](const Test& a, const Test& b) { return a.from < b.from; });
  const auto failed = static_cast<size_t>(
      std::count_if(tests.begin(), tests.end(), [](const Test& test) { return !test.passed; }));
  if (session.is_table()) {
    Print(session, tests, failed);
  } else {
    RETURN_IF_ERROR(session.PrintValue(ToJson(tests, failed == 0)));
  }
  return failed == 0 ? 0 : 1;
}

Parameter TargetOption(const char* name, const char* value, const char* help) {
  return {.name = name, .value = value, .help = help, .repeated = true};
}

}  // namespace

Command ConnectivityCommand() {
  return {
      .name = "connectivity",
      .summary = "Whether nodes reach what pods need",
      .commands =
          {{.name = "test",
            .summary = "Try from some nodes what is to be reached, and what is not",
            .description =
                "Agents try all targets at the same time, from their node's own address: a TCP "
                "connection where a port is named, else an ICMP echo. A target that refuses a "
                "connection was reached. The nodes also probe each other. With --to or "
                "--internet and without --must-fail, one address of each block of peerSpoke must "
                "not be reached either, if a ClusterNetwork is applied.",
            .examples = {"spokectl connectivity test",
                         "spokectl connectivity test --node node1 --node node2 --to 10.8.0.10:443",
                         "spokectl connectivity test --internet 192.0.2.10:443 --must-fail "
                         "10.32.0.10:443 -o json"},
            .options = {{.name = "node",
                         .value = "NODE",
                         .help = "From this node, of 20 at most; five that are connected otherwise",
                         .values = Values::kNode,
                         .repeated = true},
                        TargetOption("to", "ADDR[:PORT]", "Has to be reached"),
                        TargetOption("internet", "ADDR:PORT", "Outside; has to be reached"),
                        TargetOption("must-fail", "ADDR[:PORT]", "Must not be reached"),
                        {.name = "within",
                         .value = "TIME",
                         .help = "How long to wait for each target, 5s at most",
                         .values = Values::kDuration,
                         .fallback = "2s"}},
            .run = TestConnectivity,
            .exit_codes = "0 all tests passed; 1 one failed, or a node could not try; 2 could not "
                          "ask or wrong usage; else as everywhere.",
            .failure_code = 2}},
      .group = kGroupLook};
}

}  // namespace spoke::ctl
