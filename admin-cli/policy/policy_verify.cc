#include <algorithm>
#include <utility>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

using Answers = std::vector<v1::VerifyPolicyResponse>;

// The nodes that did not try.
bool IsAsExpected(const v1::PolicyProbe& probe) {
  if (probe.expected()) return probe.reached();
  return !probe.reached() && probe.outcome() != "not tried";
}

struct Counts {
  size_t probes = 0;
  size_t as_expected = 0;
  size_t without = 0;  // Nodes that did not try.

  bool all_well() const { return probes > 0 && as_expected == probes && without == 0; }
};

Counts CountsOf(const Answers& answers) {
  Counts counts;
  for (const auto& answer : answers) {
    counts.without += answer.error().empty() ? 0 : 1;
    counts.probes += static_cast<size_t>(answer.probes_size());
    counts.as_expected += static_cast<size_t>(
        std::count_if(answer.probes().begin(), answer.probes().end(), IsAsExpected));
  }
  return counts;
}

Json ToJson(const Answers& answers) {
  Json value = {{"as_expected", CountsOf(answers).all_well()}, {"nodes", Json::array()}};
  for (const auto& answer : answers) {
    Json node = {{"node", answer.node()}, {"error", answer.error()}, {"probes", Json::array()}};
    for (const v1::PolicyProbe& probe : answer.probes()) {
      node["probes"].push_back({{"target", probe.target()},
                                {"class", probe.traffic_class()},
                                {"expected", probe.expected()},
                                {"reached", probe.reached()},
                                {"outcome", probe.outcome()},
                                {"as_expected", IsAsExpected(probe)},
                                {"took_us", probe.took_us()},
                                {"detail", probe.detail()}});
    }
    value["nodes"].push_back(std::move(node));
  }
  return value;
}

Cell ProbeCell(const v1::PolicyProbe& probe) {
  const bool well = IsAsExpected(probe);
  std::string text = well ? probe.outcome() : "!! " + probe.outcome();
  if (probe.reached()) text += fmt::format(" {:.1f} ms", probe.took_us() / 1000.0);
  return {std::move(text), well ? Tone::kGood : Tone::kBad};
}

// Prints a row for each target, a column for each node. All nodes have the same targets.
std::string Matrix(const Session& session, const Answers& answers) {
  std::vector<std::string> titles = {"TARGET", "CLASS", "EXPECTED"};
  std::vector<Row> rows;
  for (const auto& answer : answers) {
    if (!answer.error().empty()) continue;
    titles.push_back(Printable(answer.node()));
    for (int i = 0; i < answer.probes_size(); ++i) {
      const v1::PolicyProbe& probe = answer.probes(i);
      if (rows.size() <= static_cast<size_t>(i)) {
        rows.push_back(
            {{probe.target()}, {probe.traffic_class()}, {probe.expected() ? "yes" : "no"}});
      }
      Row& row = rows[static_cast<size_t>(i)];
      row.resize(titles.size() - 1);
      row.push_back(ProbeCell(probe));
    }
  }
  if (rows.empty()) return "";
  return FormatTable(titles, rows, {.colours = session.colours, .header = session.header}) + "\n";
}

std::string Summary(const Counts& counts) {
  if (counts.all_well()) {
    return fmt::format("all {} probes are as expected", counts.probes);
  }
  std::string text = fmt::format("{} of {} probes are not as expected",
                                 counts.probes - counts.as_expected, counts.probes);
  if (counts.without > 0) {
    text += fmt::format("; {} not try", Counted(counts.without, "node did", "nodes did"));
  }
  return text;
}

absl::StatusOr<int> Verify(Session& session) {
  v1::VerifyPolicyRequest request;
  for (const std::string& node : session.arguments.All("node")) request.add_nodes(node);
  for (const std::string& hub : session.arguments.All("hub")) request.add_hub_targets(hub);
  for (const std::string& spoke : session.arguments.All("spoke")) request.add_spoke_targets(spoke);
  request.set_timeout_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(session.arguments.Duration("within"))));
  Answers answers;
  RETURN_IF_ERROR(session.client.Read(kVerifyPolicy, request, [&](const auto& answer) {
    answers.push_back(answer);
    return absl::OkStatus();
  }));
  std::sort(answers.begin(), answers.end(),
            [](const auto& a, const auto& b) { return a.node() < b.node(); });
  const Counts counts = CountsOf(answers);
  if (!session.is_table()) {
    RETURN_IF_ERROR(session.PrintValue(ToJson(answers)));
    return counts.all_well() ? 0 : 1;
  }
  session.Out(Matrix(session, answers));
  for (const auto& answer : answers) {
    if (answer.error().empty()) continue;
    session.Out(
        Coloured(fmt::format("{}: {}\n", Printable(answer.node()), Printable(answer.error())),
                 Tone::kBad, session.colours));
  }
  session.Out(
      Coloured(Summary(counts), counts.all_well() ? Tone::kGood : Tone::kBad, session.colours) +
      "\n");
  return counts.all_well() ? 0 : 1;
}

}  // namespace

Command PolicyCommand() {
  return {.name = "policy",
          .summary = "Whether nodes do what policy says",
          .description = "Policy is what apply puts into force; see get and rollout.",
          .commands =
              {{.name = "verify",
                .summary = "Try from nodes that the hub is reached and other spokes are not",
                .description =
                    "Agents try each target at the same time, from their node's own address: a "
                    "TCP connection where a port is named, else an ICMP echo. Without targets, "
                    "one address of each block of hub and peerSpoke is tried; name those that "
                    "answer for a verdict about the hub, since one that nobody has cannot be "
                    "reached. A target that refuses a connection was reached.",
                .examples = {"spokectl policy verify --hub 10.8.0.10:443 --spoke 10.32.0.10:443",
                             "spokectl policy verify --node node1 --node node2 -o json"},
                .options = {{.name = "node",
                             .value = "NODE",
                             .help = "From this node; three that are connected otherwise",
                             .values = Values::kNode,
                             .repeated = true},
                            {.name = "hub",
                             .value = "ADDR[:PORT]",
                             .help = "Has to be reached",
                             .repeated = true},
                            {.name = "spoke",
                             .value = "ADDR[:PORT]",
                             .help = "Must not be reached",
                             .repeated = true},
                            {.name = "within",
                             .value = "TIME",
                             .help = "How long to wait for each target, 5s at most",
                             .values = Values::kDuration,
                             .fallback = "2s"}},
                .run = Verify,
                .exit_codes = "0 all is as expected; 1 something is not, or a node did not try; "
                              "2 could not ask or wrong usage; else as everywhere.",
                .failure_code = 2},
               PolicyHistoryVerb()},
          .group = kGroupPolicy};
}

}  // namespace spoke::ctl
