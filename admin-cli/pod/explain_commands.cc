#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/output/views.h"
#include "admin-cli/pod/wanted_pods.h"
#include "admin-cli/run.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {
namespace {

// Steps take from microseconds to seconds: all are told in one unit, so that they compare.
std::string Milliseconds(uint64_t us) { return fmt::format("{}.{:03}", us / 1000, us % 1000); }

// Numbers of a column end below each other.
void AlignRight(std::vector<Row>& rows, size_t column) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row[column].text.size());
  for (Row& row : rows) row[column].text.insert(0, width - row[column].text.size(), ' ');
}

uint64_t EndOf(const v1::AddTrace& add) {
  uint64_t end = 0;
  for (const v1::AddTrace::Step& step : add.steps()) {
    end = std::max(end, step.begin_us() + step.took_us());
  }
  return end;
}

std::string TextOf(const Session& session, const v1::AddTrace& add) {
  const Cell result =
      add.error().empty()
          ? Cell{fmt::format("succeeded after {} ms", Milliseconds(EndOf(add))), Tone::kGood}
          : Cell{"failed: " + add.error(), Tone::kBad};
  std::string text = FormatFields({{"Pod", {PodOf(add.pod_namespace(), add.pod_name())}},
                                   {"Container", {add.container_id()}},
                                   {"Interface", {add.ifname()}},
                                   {"Address", {absl::StrJoin(add.addresses(), ", ")}},
                                   {"Node", {add.node()}},
                                   {"Trace id", {add.trace_id()}},
                                   {"Began", {session.AgoOf(add.since_unix_ms())}},
                                   {"Result", result}},
                                  session.colours);
  if (add.steps().empty()) return text + "\nit ended before its first step\n";
  std::vector<Row> rows;
  for (const v1::AddTrace::Step& step : add.steps()) {
    rows.push_back(
        {{step.name()}, {Milliseconds(step.begin_us())}, {Milliseconds(step.took_us())}});
  }
  AlignRight(rows, 1);
  AlignRight(rows, 2);
  return text + "\n" +
         FormatTable({"STEP", "AT (ms)", "TOOK (ms)"}, rows,
                     {.colours = session.colours, .header = session.header});
}

Json ToJson(const v1::AddTrace& add) {
  Json value = {{"pod_namespace", add.pod_namespace()},
                {"pod", add.pod_name()},
                {"container", add.container_id()},
                {"interface", add.ifname()},
                {"addresses", JsonList(add.addresses())},
                {"node", add.node()},
                {"trace_id", add.trace_id()},
                {"began", TimeOf(add.since_unix_ms())},
                {"succeeded", add.error().empty()},
                {"error", add.error()},
                {"steps", Json::array()}};
  for (const v1::AddTrace::Step& step : add.steps()) {
    value["steps"].push_back(
        {{"step", step.name()}, {"at_us", step.begin_us()}, {"took_us", step.took_us()}});
  }
  return value;
}

absl::StatusOr<v1::ExplainRequest> RequestOf(const Arguments& arguments) {
  const std::string& what = arguments.Text("what");
  const std::string& name = arguments.Text("name");
  if (what != "pod" && arguments.Has("node")) {
    return absl::InvalidArgumentError(
        fmt::format("explain {}: --node says where to look for a pod", what));
  }
  v1::ExplainRequest request;
  if (what == "node") {
    request.set_node(name);
  } else if (what == "ip") {
    request.set_address(name);
  } else {
    if (!OnePod(name)) {
      return absl::InvalidArgumentError(
          fmt::format("explain pod: \"{}\" is not NAMESPACE/NAME", name));
    }
    request.set_pod(name);
    request.set_on_node(arguments.Text("node"));
  }
  return request;
}

// Returns the details without the advice to name the node of a pod, where it is named.
std::vector<std::string> DetailsOf(const v1::ExplainRequest& request,
                                   const v1::ExplainResponse& response) {
  std::vector<std::string> details(response.details().begin(), response.details().end());
  if (request.on_node().empty()) return details;
  const std::string advice = fmt::format(
      ", and for the steps of its ADD spokectl explain pod {} --node NAME", request.pod());
  for (std::string& detail : details) {
    const size_t at = detail.find(advice);
    if (at != std::string::npos) detail.erase(at, advice.size());
  }
  return details;
}

// Returns the exit code of an explanation. A pod of which no address and no ADD is known is none,
// unless pods wait for an address on some node; a note says what was probably meant. It is no
// error, so that --watch goes on until there is such a pod.
absl::StatusOr<int> EndOfPod(const Session& session, const v1::ExplainRequest& request,
                             const v1::ExplainResponse& response) {
  const std::optional<WantedPods> pod = OnePod(request.pod());
  if (!pod || !response.adds().empty()) return 0;
  const absl::Status known = CheckThereAreSuch(session, *pod);
  if (!absl::IsNotFound(known)) return Done(known);
  session.Note(base::MessageOf(known));
  ASSIGN_OR_RETURN(const v1::GetStatusResponse status, session.client.Ask(kGetStatus));
  return status.pods_waiting() == 0 ? kExitNoSuchThing : kExitDone;
}

absl::StatusOr<int> Explain(Session& session) {
  ASSIGN_OR_RETURN(const v1::ExplainRequest request, RequestOf(session.arguments));
  ASSIGN_OR_RETURN(const v1::ExplainResponse response, session.client.Ask(kExplain, request));
  if (!request.on_node().empty() && response.adds().empty()) {
    v1::GetNodeRequest node;  // There are no steps also where the name is wrong.
    node.set_name(request.on_node());
    RETURN_IF_ERROR(session.client.Ask(kGetNode, node).status());
  }
  const std::vector<std::string> details = DetailsOf(request, response);
  if (!session.is_table()) {
    Json value = {{"summary", response.summary()},
                  {"details", JsonList(details)},
                  {"expected", TimeOf(response.eta_unix_ms())}};
    if (!request.pod().empty()) {
      value["adds"] = JsonList(response.adds(), [](const auto& add) { return ToJson(add); });
      value["without_adds"] = JsonList(response.without_adds());
    }
    RETURN_IF_ERROR(session.PrintValue(value));
    return EndOfPod(session, request, response);
  }
  std::string text = Coloured(Printable(response.summary()), Tone::kBold, session.colours) + "\n";
  for (const std::string& detail : details) text += "  " + Printable(detail) + "\n";
  if (response.eta_unix_ms() != 0) {
    const int64_t left = response.eta_unix_ms() / 1000 - absl::ToUnixSeconds(session.now());
    text += fmt::format("Expected to be well in {}\n", FormatAge(left));
  }
  for (const v1::AddTrace& add : response.adds()) text += "\n" + TextOf(session, add);
  for (const std::string& why : response.without_adds()) {
    text += "\nNo steps of an ADD: " + Printable(why) + "\n";
  }
  session.Out(text);
  return EndOfPod(session, request, response);
}

absl::StatusOr<int> WhatIf(Session& session) {
  const Arguments& arguments = session.arguments;
  v1::WhatIfRequest request;
  request.set_nodes(arguments.Count("nodes"));
  request.set_pods_per_node(arguments.Count("pods-per-node"));
  request.set_vnet(arguments.Text("vnet"));
  for (const auto& [key, label] : arguments.Labels("label")) {
    (*request.mutable_labels())[key] = label;
  }
  ASSIGN_OR_RETURN(const v1::WhatIfResponse response, session.client.Ask(kWhatIf, request));
  using Limit = v1::WhatIfLimit;
  const ListForm<Limit> form = {
      .what = "limits",
      .name = [](const Limit& limit) { return limit.what(); },
      .json =
          [](const Limit& limit) {
            return Json{{"what", limit.what()},
                        {"needed", limit.needed()},
                        {"available", limit.available()},
                        {"ok", limit.ok()},
                        {"remedy", limit.remedy()}};
          },
      .columns = {{"LIMIT", [](const Limit& limit) { return Cell{limit.what()}; }},
                  {"NEEDED", [](const Limit& limit) { return NumberCell(limit.needed()); }},
                  {"AVAILABLE", [](const Limit& limit) { return NumberCell(limit.available()); }},
                  {"FITS",
                   [](const Limit& limit) {
                     return limit.ok() ? Cell{"yes", Tone::kGood} : Cell{"no", Tone::kBad};
                   }},
                  {"REMEDY", [](const Limit& limit) { return Cell{limit.remedy()}; }}}};
  if (session.is_table()) {
    session.Out(
        Coloured(fmt::format("{} nodes with {} pods each {}: {} more addresses needed",
                             request.nodes(), request.pods_per_node(),
                             response.fits() ? "fit" : "do not fit", response.addresses_needed()),
                 response.fits() ? Tone::kGood : Tone::kBad, session.colours) +
        "\n\n");
    RETURN_IF_ERROR(PrintList(session, form, response.limits()));
  } else {
    Json value = {{"fits", response.fits()},
                  {"addresses_needed", response.addresses_needed()},
                  {"limits", Json::array()}};
    for (const Limit& limit : response.limits()) value["limits"].push_back(form.json(limit));
    RETURN_IF_ERROR(session.PrintValue(value));
  }
  return response.fits() ? 0 : 1;
}

}  // namespace

std::vector<Command> ExplainCommands() {
  return {
      {.name = "explain",
       .summary = "Why a pod, a node or an address is as it is",
       .description =
           "Says why something has no address, or the one it has: pool, limits, "
           "cooldown, throttling by the cloud, reservations; what to do, and when it is "
           "expected to be well.\n\nOf a pod, its node's agent also tells how the last ADD "
           "went, step by step. A pod that never had an address is on a node that only "
           "you know: name it with --node.",
       .examples = {"spokectl explain pod web/frontend-7d4b9",
                    "spokectl explain pod web/frontend-7d4b9 --node node1",
                    "spokectl explain node node1", "spokectl explain ip 10.1.0.5"},
       .positionals = {{.name = "what",
                        .value = "WHAT",
                        .help = "What to explain",
                        .choices = {"pod", "node", "ip"},
                        .required = true},
                       {.name = "name",
                        .value = "NAME",
                        .help = "NAMESPACE/NAME of a pod, a node's name, or an address",
                        .values = Values::kExplained,
                        .required = true}},
       .options = {{.name = "node",
                    .value = "NODE",
                    .help = "Of a pod: the node whose agent is asked for the steps of its ADD",
                    .values = Values::kNode}},
       .run = Explain,
       .group = kGroupLook,
       .exit_codes =
           "4 also for a pod of which no address and no ADD is known, while no pod waits for an "
           "address; what can be said of it is printed all the same. Else as everywhere",
       .watchable = true},
      {.name = "whatif",
       .summary = "Would so many more nodes fit",
       .description = "Compares what a scale-up needs with what pools, VNets, NICs and the cloud's "
                      "limits have left. Changes nothing.",
       .examples = {"spokectl whatif --nodes 500 --pods-per-node 27",
                    "spokectl whatif --nodes 64 --pods-per-node 8 --label accelerator=h100"},
       .options = {{.name = "nodes",
                    .value = "N",
                    .help = "How many nodes more",
                    .values = Values::kCount,
                    .required = true},
                   {.name = "pods-per-node",
                    .value = "N",
                    .help = "How many pods on each",
                    .values = Values::kCount,
                    .required = true},
                   {.name = "label",
                    .value = "KEY=VALUE",
                    .help = "A label they will have",
                    .values = Values::kLabel,
                    .repeated = true},
                   {.name = "vnet", .value = "VNET", .help = "The VNet they will be in"}},
       .run = WhatIf,
       .group = kGroupLook,
       .exit_codes =
           "0 it fits, 1 it does not, 2 could not ask or wrong usage; else as everywhere.",
       .failure_code = 2}};
}

}  // namespace spoke::ctl
