#include <string>
#include <utility>
#include <vector>

#include "admin-cli/output/views.h"
#include "admin-cli/pod/wanted_pods.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

const Parameter kAddress = {.name = "address",
                            .value = "ADDRESS",
                            .help = "IPv4 or IPv6 address",
                            .values = Values::kAddress,
                            .required = true};

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const WantedPods wanted, WantedPodsOf(session));
  v1::ListAddressesRequest request;
  request.set_node(session.arguments.Text("node"));
  request.set_pool(session.arguments.Text("pool"));
  request.set_state(session.arguments.Text("state"));
  ListForm<v1::AddressInfo> form = AddressForm(session);
  if (!wanted.all()) form.what = "addresses of such pods";
  ListPrinter<v1::AddressInfo> printer(session, std::move(form));
  bool found = false;
  RETURN_IF_ERROR(
      session.client.Read(kListAddresses, request, [&](const v1::ListAddressesResponse& batch) {
        for (const v1::AddressInfo& address : batch.addresses()) {
          if (!wanted.all() && !wanted.Has(address.pod_namespace(), address.pod_name())) continue;
          printer.Add(address);
          found = true;
        }
        return absl::OkStatus();
      }));
  if (!found) RETURN_IF_ERROR(CheckThereAreSuch(session, wanted));
  return Done(printer.Print());
}

// Prints one address in each form, after a verb that shows or changes it.
absl::Status PrintAddress(const Session& session, const v1::AddressInfo& address) {
  return session.PrintOne(
      address.address(), ToJson(address),
      session.Fields(
          {{"Address", {address.address(), Tone::kBold}},
           {"State", {address.state()}},
           {"Since", {address.since_unix_ms() == 0 ? "" : session.AgoOf(address.since_unix_ms())}},
           {"Note", {address.note(), Tone::kWarning}},
           {"Pool", {address.pool()}},
           {"Block", {address.block()}},
           {"Node", {address.node()}},
           {"VM", {address.vm_id()}},
           {"NIC", {address.nic_mac()}},
           {"IP configuration", {address.ip_configuration()}},
           {"Pod", {PodOf(address.pod_namespace(), address.pod_name())}},
           {"Container", {address.container_id()}},
           {"Interface", {address.ifname()}}}));
}

absl::StatusOr<int> Show(Session& session) {
  v1::GetAddressRequest request;
  request.set_address(session.arguments.Text("address"));
  ASSIGN_OR_RETURN(const v1::AddressInfo address, session.client.Ask(kGetAddress, request));
  return Done(PrintAddress(session, address));
}

// Times stand in this table as they are: people who ask who held an address compare with a clock.
ListForm<v1::HistoryEntry> HistoryForm() {
  using Entry = v1::HistoryEntry;
  return {
      .what = "entries",
      .name = [](const Entry& entry) { return PodOf(entry.pod_namespace(), entry.pod_name()); },
      .json =
          [](const Entry& entry) {
            return Json{{"time", TimeOf(entry.unix_ms())},
                        {"event", entry.event()},
                        {"until", TimeOf(entry.until_unix_ms())},
                        {"node", entry.node()},
                        {"vm_id", entry.vm_id()},
                        {"pod_namespace", entry.pod_namespace()},
                        {"pod_name", entry.pod_name()},
                        {"pod_uid", entry.pod_uid()},
                        {"container_id", entry.container_id()},
                        {"ifname", entry.ifname()}};
          },
      .columns = {{"TIME", [](const Entry& entry) { return Cell{TimeOf(entry.unix_ms())}; }},
                  {"EVENT", [](const Entry& entry) { return Cell{entry.event()}; }},
                  {"UNTIL", [](const Entry& entry) { return Cell{TimeOf(entry.until_unix_ms())}; }},
                  {"NODE", [](const Entry& entry) { return Cell{entry.node()}; }},
                  {"POD",
                   [](const Entry& entry) {
                     return Cell{PodOf(entry.pod_namespace(), entry.pod_name())};
                   }},
                  {"CONTAINER",
                   [](const Entry& entry) { return Cell{entry.container_id().substr(0, 12)}; }},
                  {"VM", [](const Entry& entry) { return Cell{entry.vm_id()}; }, true},
                  {"IFNAME", [](const Entry& entry) { return Cell{entry.ifname()}; }, true},
                  {"UID", [](const Entry& entry) { return Cell{entry.pod_uid()}; }, true}}};
}

absl::StatusOr<int> History(Session& session) {
  v1::GetAddressHistoryRequest request;
  request.set_address(session.arguments.Text("address"));
  request.set_limit(session.arguments.Count("limit"));
  if (session.arguments.Has("at")) {
    ASSIGN_OR_RETURN(const absl::Time at, ParseTime(session.arguments.Text("at"), session.now()));
    request.set_at_unix_ms(absl::ToUnixMillis(at));
  }
  ASSIGN_OR_RETURN(const v1::GetAddressHistoryResponse history,
                   session.client.Ask(kGetAddressHistory, request));
  if (request.at_unix_ms() != 0 && request.at_unix_ms() < history.kept_since_unix_ms()) {
    session.Note(fmt::format("nothing older than {} is kept, so nobody can say who held {} at {}",
                             TimeOf(history.kept_since_unix_ms()), request.address(),
                             TimeOf(request.at_unix_ms())));
  }
  if (session.format == Format::kJson || session.format == Format::kYaml) {
    return Done(session.PrintValue({{"kept_since", TimeOf(history.kept_since_unix_ms())},
                                    {"entries", JsonList(history.entries(), HistoryForm().json)}}));
  }
  return Done(PrintList(session, HistoryForm(), history.entries()));
}

absl::StatusOr<int> Release(Session& session) {
  v1::ReleaseAddressRequest request;
  request.set_address(session.arguments.Text("address"));
  request.set_node(session.arguments.Text("node"));
  request.set_force(session.arguments.Has("force"));
  request.set_reason(session.arguments.Text("reason"));
  if (request.force() && request.reason().empty()) {
    return absl::InvalidArgumentError(
        "ip release: say why with --reason TEXT, since a pod that still runs loses its network");
  }
  ASSIGN_OR_RETURN(const v1::AddressInfo address, session.client.Ask(kReleaseAddress, request));
  if (!session.is_table()) {
    RETURN_IF_ERROR(PrintAddress(session, address));
  } else if (request.force()) {
    session.Out(fmt::format("{} is {}: the agent on {} has been told to end the use by pod {}\n",
                            Printable(address.address()), Printable(address.state()),
                            Printable(address.node()),
                            Printable(PodOf(address.pod_namespace(), address.pod_name()))));
  } else {
    session.Out(fmt::format("{} is {}: the agent on {} has been asked for it\n",
                            Printable(address.address()), Printable(address.state()),
                            Printable(address.node())));
  }
  return 0;
}

absl::StatusOr<int> Quarantine(Session& session) {
  v1::QuarantineAddressRequest request;
  request.set_address(session.arguments.Text("address"));
  request.set_reason(session.arguments.Text("reason"));
  request.set_lift(session.arguments.Has("lift"));
  if (!request.lift() && request.reason().empty()) {
    return absl::InvalidArgumentError(
        "ip quarantine: say why with --reason TEXT, for whoever finds it later (or lift it with "
        "--lift)");
  }
  ASSIGN_OR_RETURN(const v1::AddressInfo address, session.client.Ask(kQuarantineAddress, request));
  if (!session.is_table()) {
    RETURN_IF_ERROR(PrintAddress(session, address));
  } else {
    const std::string pod = Printable(PodOf(address.pod_namespace(), address.pod_name()));
    std::string what = ", out of quarantine";
    if (!request.lift()) {
      what = pod.empty()
                 ? ", and will not be used"
                 : fmt::format(": pod {} keeps it until it ends, and no other gets it", pod);
    }
    session.Out(fmt::format("{} is {}{}\n", Printable(address.address()),
                            Printable(address.state()), what));
  }
  return 0;
}

Command ListCommand() {
  std::vector<Parameter> options = {
      {.name = "node", .value = "NODE", .help = "Only those of this node", .values = Values::kNode},
      {.name = "pool", .value = "POOL", .help = "Only those of this pool", .values = Values::kPool},
      {.name = "state",
       .value = "STATE",
       .help = "Only those in this state",
       .choices = {"attaching", "available", "in_use", "cooldown", "detaching", "released",
                   "quarantined", "unusable"}}};
  for (Parameter& option : PodOptions("those of")) options.push_back(std::move(option));
  return {
      .name = "list",
      .summary = "Addresses that are not free",
      .description = "In address order. The filters narrow it together.",
      .examples = {"spokectl ip list --node node1 --state in_use",
                   "spokectl ip list --pool default -o wide",
                   "spokectl ip list --namespace web -o name", "spokectl ip list --team vision"},
      .options = std::move(options),
      .run = List,
      .watchable = true};
}

Command HistoryCommand() {
  return {
      .name = "history",
      .summary = "Who had the address, and when",
      .description = "Newest first. The server keeps 30 days unless it is configured otherwise.",
      .examples = {"spokectl ip history 10.1.0.5",
                   "spokectl ip history 10.1.0.5 --at 2024-05-01T12:00:00Z",
                   "spokectl ip history 10.1.0.5 --at 2h"},
      .positionals = {kAddress},
      .options = {{.name = "at",
                   .value = "TIME",
                   .help = "Only who held it then: a time in RFC 3339, or how long ago",
                   .values = Values::kTime},
                  {.name = "limit",
                   .value = "N",
                   .help = "How many entries at most",
                   .values = Values::kCount,
                   .fallback = "100"}},
      .run = History};
}

}  // namespace

Command IpCommand() {
  return {.name = "ip",
          .summary = "Addresses",
          .description = "Single addresses: where they are, who has them, and who had.",
          .commands =
              {ListCommand(),
               {.name = "show",
                .summary = "All about one address",
                .description = "An address that a pool holds but no node has is shown as free.",
                .examples = {"spokectl ip show 10.1.0.5", "spokectl ip show 10.1.0.5 -o json"},
                .positionals = {kAddress},
                .run = Show,
                .watchable = true},
               HistoryCommand(),
               {.name = "release",
                .summary = "Ask the node's agent to give an available address up",
                .description =
                    "The agent may refuse; spokectl ip show then says why. An address that a "
                    "pod has is refused at once, with code 5. With --force the agent first ends "
                    "the pod's use of it, as the runtime's DEL would have: for an address whose "
                    "pod is gone and whose DEL was lost. A pod that still runs loses its network.",
                .examples = {"spokectl ip release 10.1.0.5",
                             "spokectl ip release 10.1.0.5 --node node1",
                             "spokectl ip release 10.1.0.5 --force --reason 'containerd lost it'"},
                .positionals = {kAddress},
                .options = {{.name = "node",
                             .value = "NODE",
                             .help = "Only if this node holds it",
                             .values = Values::kNode},
                            {.name = "force", .help = "End a pod's use of it first"},
                            {.name = "reason",
                             .value = "TEXT",
                             .help = "Why, for the logs; needed with --force"}},
                .run = Release},
               {.name = "quarantine",
                .summary = "Keep an address from being used, or lift that",
                .description =
                    "For an address that something else in the network seems to use. The pod "
                    "that has it, if any, keeps it until it ends.",
                .examples =
                    {"spokectl ip quarantine 10.1.0.5 --reason 'answers ARP with a foreign MAC'",
                     "spokectl ip quarantine 10.1.0.5 --lift"},
                .positionals = {kAddress},
                .options = {{.name = "reason",
                             .value = "TEXT",
                             .help = "Why, for whoever finds it later; needed unless it is lifted"},
                            {.name = "lift", .help = "Use the address again"}},
                .run = Quarantine}},
          .group = kGroupNouns};
}

}  // namespace spoke::ctl
