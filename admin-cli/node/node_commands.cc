#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "admin-cli/node/label_selector.h"
#include "admin-cli/output/views.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

const Parameter kNode = {.name = "node",
                         .value = "NODE",
                         .help = "Name of a node",
                         .values = Values::kNode,
                         .required = true};

// Returns what --selector wants of labels; of several, each. Errors: kInvalidArgument.
absl::StatusOr<LabelSelector> SelectorOf(const Arguments& arguments) {
  LabelSelector all;
  for (const std::string& text : arguments.All("selector")) {
    const auto selector = ParseLabelSelector(text);
    RETURN_IF_ERROR(base::Annotate(selector.status(), "node list: --selector"));
    all.insert(all.end(), selector->begin(), selector->end());
  }
  return all;
}

bool IsSelected(const v1::NodeInfo& node, const LabelSelector& selector) {
  return Matches(selector, [&](const std::string& key) {
    const auto found = node.labels().find(key);
    return found == node.labels().end() ? nullptr : &found->second;
  });
}

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const LabelSelector selector, SelectorOf(session.arguments));
  ListForm<v1::NodeInfo> form = NodeForm(session);
  if (!selector.empty()) form.what = "nodes with such labels";
  ListPrinter<v1::NodeInfo> printer(session, std::move(form));
  RETURN_IF_ERROR(session.client.Read(kListNodes, {}, [&](const v1::ListNodesResponse& batch) {
    for (const v1::NodeInfo& node : batch.nodes()) {
      if (IsSelected(node, selector)) printer.Add(node);
    }
    return absl::OkStatus();
  }));
  return Done(printer.Print());
}

// Returns what the agent's checks find, each with its remedy.
std::string FindingsOf(const v1::NodeInfo& node) {
  std::string text;
  for (const v1::NodeFinding& finding : node.findings()) {
    text += fmt::format("{}{}{}: {} {}. Remedy: {}", text.empty() ? "" : "; ",
                        finding.blocking() ? "blocking: " : "", finding.check(), finding.object(),
                        finding.what(), finding.remedy());
  }
  return text;
}

// Returns what the cloud has announced for the node's machine.
std::string MaintenanceOf(const Session& session, const v1::NodeInfo& node) {
  std::string text;
  for (const v1::MaintenanceEvent& event : node.maintenance()) {
    const std::string left = session.UntilOf(event.not_before_unix_ms());
    text += fmt::format("{}{} {}{}{}", text.empty() ? "" : "; ", event.kind(),
                        event.started() ? "has begun"
                        : left.empty()  ? "may begin at any time"
                                        : "begins not before " + left + " from now",
                        event.description().empty() ? "" : ": ", event.description());
  }
  return text;
}

std::string CloudText(const Session& session, const v1::NodeInfo& node) {
  if (node.cloud_lane().empty()) return "";
  const std::string left =
      node.cloud_eta_unix_ms() == 0
          ? ""
          : fmt::format(", time left about {}", session.UntilOf(node.cloud_eta_unix_ms()));
  return fmt::format("changes its NIC (lane {}){}: waits for {}", node.cloud_lane(), left,
                     node.cloud_waits_for());
}

std::string WithheldOf(const v1::NodeInfo& node) {
  if (node.withheld() == 0) return "";
  return fmt::format("{} of the attached are in quarantine, or off the NIC: no pod gets them",
                     node.withheld());
}

std::string NodeText(const Session& session, const v1::NodeInfo& node) {
  const bool synced = node.desired_version() == node.acked_version();
  return session.Fields(
      {{"Name", {node.name(), Tone::kBold}},
       {"VM", {node.vm_id()}},
       {"Boot", {node.boot_id()}},
       {"Mode", {node.mode(), node.mode() == "active" ? Tone::kPlain : Tone::kWarning}},
       {"Agent",
        {fmt::format("{} (version {}, last seen {})", node.connected() ? "connected" : "away",
                     node.agent_version().empty() ? "unknown" : node.agent_version(),
                     session.AgoOf(node.last_seen_unix_ms())),
         node.connected() ? Tone::kGood : Tone::kBad}},
       {"Addresses",
        {fmt::format("{} wanted, {} attached, {} in use, {} in cooldown; {} attaching, {} "
                     "detaching, {} reserved",
                     node.target(), node.attached(), node.in_use(), node.cooldown(),
                     node.attaching(), node.detaching(), node.reserved())}},
       {"Withheld", {WithheldOf(node), Tone::kWarning}},
       {"Shortage", {node.shortage(), Tone::kWarning}},
       {"Cloud", {CloudText(session, node)}},
       {"Instance", {node.instance()}},
       {"Synced",
        {fmt::format("{} (has version {} of {})", synced ? "yes" : "no", node.acked_version(),
                     node.desired_version()),
         synced ? Tone::kPlain : Tone::kWarning}},
       {"Policy", {fmt::format("version {}", node.policy_version())}},
       {"Policy error", {node.policy_error(), Tone::kBad}},
       {"Maintenance", {MaintenanceOf(session, node), Tone::kWarning}},
       {"Checks", {FindingsOf(node), Tone::kBad}},
       {"NIC", {node.nic_mac()}},
       {"VNet", {node.vnet()}},
       {"Labels", {LabelsOf(node.labels())}}});
}

absl::StatusOr<int> Show(Session& session) {
  v1::GetNodeRequest request;
  request.set_name(session.arguments.Text("node"));
  ASSIGN_OR_RETURN(const v1::GetNodeResponse response, session.client.Ask(kGetNode, request));
  if (session.format == Format::kName) {
    session.Out(response.node().name() + "\n");
    return 0;
  }
  if (!session.is_table()) {
    Json value = ToJson(response.node());
    value["addresses"] =
        JsonList(response.addresses(), [](const auto& address) { return ToJson(address); });
    value["retired"] =
        JsonList(response.retired(), [](const auto& retired) { return ToJson(retired); });
    return Done(session.PrintValue(value));
  }
  session.Out(NodeText(session, response.node()));
  if (!response.addresses().empty()) {
    session.Out("\n");
    RETURN_IF_ERROR(PrintList(session, AddressForm(session), response.addresses()));
  }
  if (!response.retired().empty()) {
    session.Out("\nEarlier VMs of that name that still hold addresses:\n");
    RETURN_IF_ERROR(PrintList(session, NodeForm(session), response.retired()));
  }
  return 0;
}

// Does something with each node named, and goes on after one with which it cannot be done: the
// others should not have to wait for it. The first error is the result.
using Change =
    std::function<absl::StatusOr<v1::NodeInfo>(const Client& client, const std::string& name)>;
Verb ForEach(Change change, std::string done) {
  return [change = std::move(change),
          done = std::move(done)](Session& session) -> absl::StatusOr<int> {
    absl::Status first;
    Json values = Json::array();
    for (const std::string& name : session.arguments.All("node")) {
      const auto node = change(session.client, name);
      if (!node.ok()) {
        if (!first.ok()) session.Note(base::MessageOf(node.status()));
        first.Update(node.status());
      } else if (session.format == Format::kName) {
        session.Out(Printable(name) + "\n");
      } else if (session.is_table()) {
        session.Out(fmt::format("node {} {}\n", Printable(name), done));
      } else {
        values.push_back(ToJson(*node));
      }
    }
    if (!session.is_table() && session.format != Format::kName) {
      RETURN_IF_ERROR(session.PrintValue(values));
    }
    return Done(first);
  };
}

Verb SetMode(std::string mode, std::string done) {
  return ForEach(
      [mode = std::move(mode)](const Client& client, const std::string& name) {
        v1::SetNodeModeRequest request;
        request.set_name(name);
        request.set_mode(mode);
        return client.Ask(kSetNodeMode, request);
      },
      std::move(done));
}

absl::StatusOr<v1::NodeInfo> Retry(const Client& client, const std::string& name) {
  v1::RetryNodeRequest request;
  request.set_name(name);
  return client.Ask(kRetryNode, request);
}

absl::StatusOr<int> Forget(Session& session) {
  v1::ForgetNodeRequest request;
  request.set_name(session.arguments.Text("node"));
  request.set_vm_id(session.arguments.Text("vm"));
  request.set_in_use(session.arguments.Count("in-use"));
  ASSIGN_OR_RETURN(const v1::ForgetNodeResponse response, session.client.Ask(kForgetNode, request));
  return Done(session.PrintOne(
      request.name(),
      {{"name", request.name()}, {"vm_id", response.vm_id()}, {"addresses", response.addresses()}},
      fmt::format("node {} (VM {}) is forgotten: {} free after the cooldown\n",
                  Printable(request.name()), Printable(response.vm_id()),
                  Counted(response.addresses(), "address is", "addresses are"))));
}

Command ForgetCommand() {
  return {.name = "forget",
          .summary = "End the record of a machine that is gone",
          .description =
              "For a machine that no longer exists and that the cloud does not report as gone. Its "
              "addresses are given to other nodes after the cooldown: if it still runs, they are "
              "then in two places. Refused while its agent is connected or the cloud still has it, "
              "and unless --in-use says how many addresses its pods used last (spokectl node "
              "show).",
          .examples = {"spokectl node forget node1", "spokectl node forget node1 --in-use 12",
                       "spokectl node forget node1 --vm 8f2c1c5e-7d0b"},
          .positionals = {kNode},
          .options = {{.name = "vm",
                       .value = "ID",
                       .help = "Which machine, where several had the name"},
                      {.name = "in-use",
                       .value = "N",
                       .help = "How many addresses its pods used when it last spoke: another "
                               "number is refused",
                       .values = Values::kCountOrNone,
                       .fallback = "0"}},
          .run = Forget};
}

Command ModeCommand(std::string name, std::string summary, std::string description, Verb run) {
  Parameter nodes = kNode;
  nodes.repeated = true;
  nodes.help = "Names of nodes";
  const std::string example = fmt::format("spokectl node {} node1", name);
  return {.name = std::move(name),
          .summary = std::move(summary),
          .description = std::move(description),
          .examples = {example, example + " node2 node3"},
          .positionals = {nodes},
          .run = std::move(run)};
}

}  // namespace

Command NodeCommand() {
  return {
      .name = "node",
      .summary = "Nodes",
      .description = "The nodes that agents have spoken for, with the addresses they hold.",
      .commands =
          {{.name = "list",
            .summary = "Nodes with their agents and addresses",
            .description = "AGENT is blocked where the agent's checks find what keeps pods from "
                           "working (CHECKS with -o wide; spokectl node show has the remedies). "
                           "SHORTAGE says why the node has fewer addresses than it should: its "
                           "beginning, and all of it with -o wide and in spokectl node show. "
                           "SYNCED (-o wide) says whether the agent has what the server last sent "
                           "it.",
            .examples =
                {"spokectl node list", "spokectl node list -o wide --watch",
                 "spokectl node list -l accelerator=h100,zone=2 -o name",
                 "spokectl node list -l 'zone in (1,2),!spot'",
                 "spokectl node list -o json | jq '.[] | select(.connected | not) | .name'"},
            .options = {{.name = "selector",
                         .value = "SELECTOR",
                         .help = "Only nodes whose labels meet this, as kubectl writes it: "
                                 "KEY=VALUE, KEY!=VALUE, KEY, !KEY, KEY in (A,B), KEY notin (A,B), "
                                 "with commas between",
                         .letter = 'l',
                         .repeated = true}},
            .run = List,
            .watchable = true},
           {.name = "show",
            .summary = "All about one node, with its addresses",
            .examples = {"spokectl node show node1", "spokectl node show node1 -o yaml"},
            .positionals = {kNode},
            .run = Show,
            .watchable = true},
           ModeCommand(
               "drain", "Give the node no new addresses, and take back what is available",
               "What is assigned stays with its pods; it is taken back as they end. The node "
               "keeps its mode when the server or the agent restarts.",
               SetMode("draining", "is draining")),
           ModeCommand("undrain", "Let a drained node have addresses again",
                       "Sets the node active, as unfreeze does.", SetMode("active", "is active")),
           ModeCommand("freeze", "Neither give the node addresses nor take any back",
                       "For looking at a node while nothing changes. Pods start and end on it with "
                       "the addresses it has.",
                       SetMode("frozen", "is frozen")),
           ModeCommand("unfreeze", "Let a frozen node's addresses change again",
                       "Sets the node active, as undrain does. (spokectl unfreeze, without node, "
                       "lifts the freeze of all releases.)",
                       SetMode("active", "is active")),
           ModeCommand("retry", "Ask the cloud for the node's NIC now",
                       "For what the cloud has refused, once it is mended: a right, a lock, a "
                       "quota. It is tried again by itself too, after up to half an hour.",
                       ForEach(Retry, "is tried again")),
           NodeStateCommand(),
           WaitCommand(),
           ForgetCommand(),
           RevokeCommand(),
           UnrevokeCommand(),
           RevokedCommand()},
      .group = kGroupNouns};
}

}  // namespace spoke::ctl
