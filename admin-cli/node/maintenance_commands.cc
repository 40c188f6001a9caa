// The verbs `maintenance list` and `maintenance start`: what clouds have announced for nodes.
#include <string>
#include <utility>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/output/views.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

// An event of a node.
struct Announced {
  std::string node;
  v1::MaintenanceEvent event;
};

std::string BeginsText(const Session& session, const v1::MaintenanceEvent& event) {
  if (event.started()) return "has begun";
  if (event.not_before_unix_ms() == 0) return "any time";
  const std::string left = session.UntilOf(event.not_before_unix_ms());
  return left.empty() ? "any time" : fmt::format("in {}", left);
}

std::string OthersText(const v1::MaintenanceEvent& event) {
  if (event.other_machines() == 0) return "";
  // Not all of them have a name that can be told.
  if (event.others().empty()) return fmt::format("{}", event.other_machines());
  return fmt::format("{} ({}{})", event.other_machines(), event.others(0),
                     event.other_machines() > 1 ? ", ..." : "");
}

ListForm<Announced> MaintenanceForm(const Session& session) {
  return {
      .what = "nodes with maintenance",
      .name = [](const Announced& of) { return of.node; },
      .json =
          [](const Announced& of) {
            Json value = {{"node", of.node}};
            value.update(ToJson(of.event));
            return value;
          },
      .columns = {{"NODE", [](const Announced& of) { return Cell{of.node}; }},
                  {"KIND",
                   [](const Announced& of) {
                     return Cell{of.event.kind(), Tone::kWarning};
                   }},
                  {"BEGINS",
                   [&](const Announced& of) { return Cell{BeginsText(session, of.event)}; }},
                  {"TAKES",
                   [](const Announced& of) {
                     const int64_t ms = of.event.duration_ms();
                     return Cell{ms == 0 ? "" : fmt::format("{}s", ms / 1000)};
                   }},
                  {"BY", [](const Announced& of) { return Cell{of.event.origin()}; }},
                  {"OTHERS", [](const Announced& of) { return Cell{OthersText(of.event)}; }},
                  {"EVENT", [](const Announced& of) { return Cell{of.event.id()}; }},
                  {"WHY", [](const Announced& of) { return Cell{of.event.description()}; }, true}}};
}

absl::StatusOr<int> List(Session& session) {
  ListPrinter<Announced> printer(session, MaintenanceForm(session));
  RETURN_IF_ERROR(session.client.Read(kListNodes, {}, [&](const v1::ListNodesResponse& batch) {
    for (const v1::NodeInfo& node : batch.nodes()) {
      for (const v1::MaintenanceEvent& event : node.maintenance()) {
        printer.Add({node.name(), event});
      }
    }
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(printer.Print());
  return 0;
}

absl::StatusOr<int> Start(Session& session) {
  v1::StartMaintenanceRequest request;
  request.set_node(session.arguments.Text("node"));
  for (const std::string& event : session.arguments.All("event")) request.add_events(event);
  ASSIGN_OR_RETURN(const v1::StartMaintenanceResponse response,
                   session.client.Ask(kStartMaintenance, request));
  if (!session.is_table() && session.format != Format::kName) {
    RETURN_IF_ERROR(
        session.PrintValue({{"node", request.node()}, {"events", JsonList(response.events())}}));
    return 0;
  }
  for (const std::string& event : response.events()) {
    session.Out(fmt::format("node {}: maintenance {} may begin now\n", Printable(request.node()),
                            Printable(event)));
  }
  return 0;
}

}  // namespace

Command MaintenanceCommand() {
  return {
      .name = "maintenance",
      .summary = "What the cloud is about to do to nodes' machines",
      .description =
          "Agents learn it where their configuration says (maintenance.source): from Azure's "
          "Scheduled Events, or from a file.",
      .commands = {{.name = "list",
                    .summary = "What is announced, by node",
                    .examples = {"spokectl maintenance list", "spokectl maintenance list -o json"},
                    .run = List,
                    .watchable = true},
                   {.name = "start",
                    .summary = "Let what is announced for a node begin now",
                    .description =
                        "For a node that has no pod to lose any more, so that it need not wait for "
                        "the time that the cloud has set. An event that is for several machines "
                        "begins for all of them: see OTHERS in maintenance list.",
                    .examples = {"spokectl maintenance start node1",
                                 "spokectl maintenance start node1 --event "
                                 "C7061BAC-AFDC-4513-B24B-AA5F13A16123"},
                    .positionals = {{.name = "node",
                                     .value = "NODE",
                                     .help = "The node",
                                     .values = Values::kNode,
                                     .required = true}},
                    .options = {{.name = "event",
                                 .value = "ID",
                                 .help = "Only this event; else all that have not begun",
                                 .repeated = true}},
                    .run = Start}},
      .group = kGroupNouns};
}

}  // namespace spoke::ctl
