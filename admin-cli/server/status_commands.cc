#include <memory>

#include "admin-cli/budget/budget_top.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/traffic/traffic_top.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/base/version_skew.h"

namespace spoke::ctl {
namespace {

// What is attached to a NIC is in use, in cooldown, or neither.
uint64_t AttachedOf(const v1::PoolInfo& counts) {
  return counts.available() + counts.in_use() + counts.cooldown();
}

Json CountsJson(const v1::PoolInfo& counts) {
  return {{"usable", counts.usable()},       {"free", counts.free()},
          {"attaching", counts.attaching()}, {"attached", AttachedOf(counts)},
          {"in_use", counts.in_use()},       {"cooldown", counts.cooldown()},
          {"detaching", counts.detaching()}};
}

Json ToJson(const v1::GetStatusResponse& status) {
  Json value = {{"version", status.version()},
                {"started", TimeOf(status.started_unix_ms())},
                {"store", status.store()},
                {"cloud", status.cloud()},
                {"nodes", status.nodes()},
                {"nodes_connected", status.nodes_connected()},
                {"addresses_quarantined", status.addresses_quarantined()},
                {"pods_waiting", status.pods_waiting()},
                {"nodes_waiting", status.nodes_waiting()},
                {"reservations", status.reservations()},
                {"policy_version", status.policy_version()},
                {"releases_frozen", status.releases_frozen()},
                {"last_audit", TimeOf(status.last_audit_unix_ms())},
                {"audit_differences", status.audit_differences()},
                {"audit_cloud_error", status.audit_cloud_error()},
                {"problems", JsonList(status.problems())},
                {"ipv4", CountsJson(status.ipv4())},
                {"ipv6", CountsJson(status.ipv6())}};
  // Of two families, sums would say nothing: pods have one address of each.
  if (status.has_ipv4() && status.has_ipv6()) return value;
  value.update(Json{{"addresses_usable", status.addresses_usable()},
                    {"addresses_free", status.addresses_free()},
                    {"addresses_attaching", status.addresses_attaching()},
                    {"addresses_attached", status.addresses_attached()},
                    {"addresses_in_use", status.addresses_in_use()},
                    {"addresses_cooldown", status.addresses_cooldown()},
                    {"addresses_detaching", status.addresses_detaching()}});
  return value;
}

// Returns a number that people can read: a subnet of IPv6 has 20 digits of addresses.
std::string Number(uint64_t number) {
  constexpr uint64_t kDigitsSay = 1'000'000'000'000;
  return number < kDigitsSay ? std::to_string(number)
                             : fmt::format("{:.2g}", static_cast<double>(number));
}

std::string CountsText(const v1::PoolInfo& counts) {
  return fmt::format("{} usable, {} free, {} attached, {} in use, {} in cooldown",
                     Number(counts.usable()), Number(counts.free()), AttachedOf(counts),
                     counts.in_use(), counts.cooldown());
}

std::string OnTheWayText(const v1::PoolInfo& counts) {
  return fmt::format("{} attaching, {} detaching", counts.attaching(), counts.detaching());
}

// Returns the counts of both families as one, as servers before 0.2 tell them.
v1::PoolInfo Together(const v1::GetStatusResponse& status) {
  v1::PoolInfo counts;
  counts.set_usable(status.addresses_usable());
  counts.set_free(status.addresses_free());
  counts.set_attaching(status.addresses_attaching());
  counts.set_available(status.addresses_attached() - status.addresses_in_use() -
                       status.addresses_cooldown());
  counts.set_in_use(status.addresses_in_use());
  counts.set_cooldown(status.addresses_cooldown());
  counts.set_detaching(status.addresses_detaching());
  return counts;
}

// The families' addresses are never added up: pods of two families have one of each.
void AddAddresses(const v1::GetStatusResponse& status,
                  std::vector<std::pair<std::string, Cell>>& fields) {
  if (status.has_ipv4() && status.has_ipv6()) {
    fields.push_back({"IPv4", {CountsText(status.ipv4())}});
    fields.push_back({"IPv6", {CountsText(status.ipv6())}});
    fields.push_back({"On the way",
                      {fmt::format("IPv4 {}; IPv6 {}", OnTheWayText(status.ipv4()),
                                   OnTheWayText(status.ipv6()))}});
    return;
  }
  const v1::PoolInfo counts = status.has_ipv4()   ? status.ipv4()
                              : status.has_ipv6() ? status.ipv6()
                                                  : Together(status);
  fields.push_back({"Addresses", {CountsText(counts)}});
  fields.push_back({"On the way", {OnTheWayText(counts)}});
}

Cell WaitingCell(const v1::GetStatusResponse& status) {
  if (status.pods_waiting() == 0) return {"no pods"};
  return {fmt::format("{} on {}; see: spokectl node list",
                      Counted(status.pods_waiting(), "pod", "pods"),
                      Counted(status.nodes_waiting(), "node", "nodes")),
          Tone::kWarning};
}

Cell AuditCell(const Session& session, const v1::GetStatusResponse& status) {
  if (status.last_audit_unix_ms() == 0) return {"none has run yet"};
  const std::string ago = session.AgeOf(status.last_audit_unix_ms());
  if (status.audit_differences() == 0 && !status.audit_cloud_error().empty()) {
    return {fmt::format("clean but for the cloud, which could not be asked, {} ago: {}", ago,
                        Printable(status.audit_cloud_error())),
            Tone::kWarning};
  }
  if (status.audit_differences() == 0) return {fmt::format("clean, {} ago", ago), Tone::kGood};
  return {fmt::format("{}, {} ago; see: spokectl audit",
                      Counted(status.audit_differences(), "difference", "differences"), ago),
          Tone::kBad};
}

std::string StatusText(const Session& session, const v1::GetStatusResponse& status) {
  const bool all_connected = status.nodes() == status.nodes_connected();
  std::vector<std::pair<std::string, Cell>> fields = {
      {"Server",
       {fmt::format("{}, up {}, store {}, cloud {}", status.version(),
                    session.AgeOf(status.started_unix_ms()), status.store(), status.cloud())}},
      {"Nodes",
       {fmt::format("{} known, {} connected", status.nodes(), status.nodes_connected()),
        all_connected ? Tone::kPlain : Tone::kWarning}}};
  AddAddresses(status, fields);
  if (status.addresses_quarantined() > 0) {
    fields.push_back({"Quarantine",
                      {fmt::format("{}; see: spokectl ip list --state quarantined",
                                   Counted(status.addresses_quarantined(), "address", "addresses")),
                       Tone::kWarning}});
  }
  fields.push_back({"Waiting", WaitingCell(status)});
  if (status.reservations() > 0) {
    fields.push_back({"Reservations", {std::to_string(status.reservations())}});
  }
  fields.push_back({"Policy", {fmt::format("version {}", status.policy_version())}});
  fields.push_back({"Audit", AuditCell(session, status)});
  if (!status.releases_frozen().empty()) {
    fields.push_back({"Releases",
                      {fmt::format("frozen: {}; once it is understood: spokectl unfreeze",
                                   status.releases_frozen()),
                       Tone::kBad}});
  }
  if (status.problems().empty()) fields.push_back({"Problems", {"none", Tone::kGood}});
  std::string text = session.Fields(std::move(fields));
  if (!status.problems().empty()) text += "Problems:\n";
  for (const std::string& problem : status.problems()) {
    text += "  " + Coloured(Printable(problem), Tone::kBad, session.colours) + "\n";
  }
  return text;
}

absl::StatusOr<int> Status(Session& session) {
  ASSIGN_OR_RETURN(const v1::GetStatusResponse status, session.client.Ask(kGetStatus));
  if (session.is_table()) {
    session.Out(StatusText(session, status));
  } else {
    RETURN_IF_ERROR(session.PrintValue(ToJson(status)));
  }
  return status.problems().empty() && status.releases_frozen().empty() ? 0 : 1;
}

ListForm<v1::TopEntry> TopForm(std::string what, bool has_held) {
  using Entry = v1::TopEntry;
  ListForm<Entry> form = {
      .what = std::move(what),
      .name = [](const Entry& entry) { return entry.name(); },
      .json =
          [has_held](const Entry& entry) {
            Json value = {{"name", entry.name()}, {"in_use", entry.in_use()}};
            if (has_held) value["held"] = entry.held();
            return value;
          },
      .columns = {{has_held ? "NODE" : "NAMESPACE",
                   [](const Entry& entry) { return Cell{entry.name()}; }},
                  {"IN-USE", [](const Entry& entry) { return NumberCell(entry.in_use()); }}}};
  if (has_held) {
    form.columns.push_back({"HELD", [](const Entry& entry) { return NumberCell(entry.held()); }});
  }
  return form;
}

// The memory that repetitions of --watch share.
struct TopMemory {
  TrafficRates rates;
  RateHistory budgets;
};

// An option of traffic would be without effect without WHAT, and one of pods where rows are not of
// some.
absl::Status CheckTopOptions(const Arguments& arguments) {
  const std::string& what = arguments.Text("what");
  if (arguments.Has("pod") && !what.empty() && what != "pods") {
    return absl::InvalidArgumentError(
        fmt::format("--pod is for pods: spokectl top pods --pod {}", arguments.Text("pod")));
  }
  for (const char* option : {"team", "namespace"}) {
    if (!arguments.Has(option) || what.empty() || what == "namespaces" || what == "pods") continue;
    return absl::InvalidArgumentError(
        fmt::format("--{0} is for pods and namespaces: spokectl top namespaces --{0} {1}", option,
                    arguments.Text(option)));
  }
  if (!what.empty()) return absl::OkStatus();
  for (const char* option : {"class", "namespace", "pod", "team", "sort", "bytes", "over"}) {
    if (!arguments.Given(option)) continue;
    const bool of_pods = std::string_view(option) == "pod";
    const std::string value = arguments.Text(option) == "true" ? "" : " " + arguments.Text(option);
    return absl::InvalidArgumentError(
        fmt::format("top: --{0} is about traffic; say whose, such as: spokectl top {1} --{0}{2}",
                    option, of_pods ? "pods" : "namespaces", value));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Top(Session& session, TopMemory& memory) {
  RETURN_IF_ERROR(CheckTopOptions(session.arguments));
  const std::string& what = session.arguments.Text("what");
  if (what == "budgets") return BudgetTop(session, memory.budgets);
  if (session.arguments.Has("what")) return TrafficTop(session, memory.rates);
  v1::GetTopRequest request;
  request.set_limit(session.arguments.Count("limit"));
  ASSIGN_OR_RETURN(const v1::GetTopResponse top, session.client.Ask(kGetTop, request));
  if (!session.is_table()) {
    return Done(
        session.PrintValue({{"assignments_per_second", top.assignments_per_second()},
                            {"releases_per_second", top.releases_per_second()},
                            {"commits_per_second", top.commits_per_second()},
                            {"nodes", JsonList(top.nodes(), TopForm("", true).json)},
                            {"namespaces", JsonList(top.namespaces(), TopForm("", false).json)}}));
  }
  session.Out(fmt::format(
      "In the last minute: {:.1f} assigned, {:.1f} released and {:.1f} commits each "
      "second\n\n",
      top.assignments_per_second(), top.releases_per_second(), top.commits_per_second()));
  RETURN_IF_ERROR(PrintList(session, TopForm("nodes with addresses", true), top.nodes()));
  session.Out("\n");
  return Done(PrintList(session, TopForm("namespaces with pods", false), top.namespaces()));
}

absl::StatusOr<int> Unfreeze(Session& session) {
  ASSIGN_OR_RETURN(const v1::UnfreezeResponse response, session.client.Ask(kUnfreeze));
  if (!session.is_table()) {
    RETURN_IF_ERROR(session.PrintValue({{"was_frozen_for", response.was_frozen_for()}}));
  } else if (response.was_frozen_for().empty()) {
    session.Out("releases were not frozen\n");
  } else {
    session.Out(fmt::format("releases go on; they were frozen: {}\n",
                            Printable(response.was_frozen_for())));
  }
  return 0;
}

absl::StatusOr<int> Version(Session& session) {
  const bool only_client = session.arguments.Has("client");
  if (session.is_table()) session.Out(fmt::format("Client: {}\n", base::kVersion));
  Json value = {{"client", base::kVersion}};
  absl::Status status;
  if (!only_client) {
    const auto answer = session.client.Ask(kGetStatus);
    status = answer.status();
    if (answer.ok()) {
      value["server"] = answer->version();
      const absl::Status skew =
          base::CheckSkew({"spokectl", base::kVersion}, {"spoke-ipam-server", answer->version()});
      if (!skew.ok()) value["skew"] = base::MessageOf(skew);
      if (session.is_table()) {
        session.Out(fmt::format("Server: {}\n", Printable(answer->version())));
        if (!skew.ok()) session.Out(fmt::format("Skew: {}\n", base::MessageOf(skew)));
      }
    }
  }
  if (!session.is_table()) RETURN_IF_ERROR(session.PrintValue(value));
  return Done(status);
}

Command StatusCommand() {
  return {
      .name = "status",
      .summary = "Is the server well, and how much of what is there",
      .description =
          "Shows the server's version and age, how many nodes and addresses there are "
          "and in which state, whether releases are frozen, and what keeps the server "
          "from its work.",
      .examples = {"spokectl status", "spokectl status --watch",
                   "spokectl status -o json | jq .ipv4.free"},
      .run = Status,
      .group = kGroupLook,
      .exit_codes =
          "0 no problems, 1 problems, or frozen releases; 2 could not ask or wrong usage; else as "
          "everywhere.",
      .failure_code = 2,
      .watchable = true};
}

Command TopCommand() {
  return {
      .name = "top",
      .summary = "Who uses most addresses, who sends and receives most, how busy the server is",
      .description =
          "Without a word: the nodes and the namespaces with most assigned addresses, and what "
          "happened each second of the last minute.\n\n"
          "With one, the traffic of namespaces, teams, nodes, or of the pods that agents name as "
          "those with most of it outside the cluster: bytes since the server began, and each "
          "second between two readings. Agents report every ten seconds. IN and RECEIVED are "
          "what pods receive. IN and OUT are bits a second, with --bytes bytes.\n\n"
          "With budgets: what teams use, want and have of bandwidth that all nodes share, the "
          "fullest budget first; FAIR of a whole budget is its capacity. With --watch, TREND is "
          "usage over the capacity.",
      .examples = {"spokectl top", "spokectl top --limit 5 --watch",
                   "spokectl top namespaces --class external",
                   "spokectl top pods --namespace vision --sort out --watch",
                   "spokectl top namespaces --team vision",
                   "spokectl top budgets --watch --interval 5s"},
      .positionals = {{.name = "what",
                       .value = "WHAT",
                       .help = "Whose traffic; or budgets",
                       .choices = {"namespaces", "teams", "pods", "nodes", "budgets"}}},
      .options = {{.name = "limit",
                   .value = "N",
                   .help = "How many rows; of budgets, teams of each",
                   .values = Values::kCount,
                   .fallback = "20"},
                  {.name = "class",
                   .value = "CLASS",
                   .help = "Traffic of one class: internet, cluster, hub, group:NAME; external "
                           "is all that leaves the cluster's networks",
                   .values = Values::kTrafficClass},
                  {.name = "namespace",
                   .value = "NAMESPACE",
                   .help = "Pods of one namespace",
                   .letter = 'n'},
                  {.name = "pod",
                   .value = "POD",
                   .help = "Of pods, those of this name; NAMESPACE/NAME is one pod"},
                  {.name = "team", .value = "TEAM", .help = "Namespaces, or pods, of one team"},
                  {.name = "sort",
                   .value = "BY",
                   .help = "What comes first",
                   .choices = {"rate", "in", "out", "received", "sent", "name"},
                   .fallback = "rate"},
                  {.name = "bytes", .help = "Rates in bytes a second instead of bits"},
                  {.name = "over",
                   .value = "TIME",
                   .help = "How far apart the two readings are",
                   .values = Values::kDuration,
                   .fallback = "10s"}},
      // --watch repeats the verb, which it knows only as a function: so the memory is shared.
      .run = [memory = std::make_shared<TopMemory>()](
                 Session& session) { return Top(session, *memory); },
      .group = kGroupLook,
      .watchable = true};
}

}  // namespace

std::vector<Command> StatusCommands() {
  return {
      StatusCommand(),
      TopCommand(),
      {.name = "unfreeze",
       .summary = "Lift the freeze of releases",
       .description = "When one pass would have given up too many addresses, or a source of truth "
                      "has suddenly shrunk, the server freezes all releases until somebody has "
                      "looked. spokectl status says why; this lets releases go on.",
       .examples = {"spokectl unfreeze"},
       .run = Unfreeze,
       .group = kGroupCare},
      {.name = "version",
       .summary = "Versions of spokectl and of the server",
       .examples = {"spokectl version", "spokectl version --client"},
       .options = {{.name = "client", .help = "Only that of spokectl; asks no server"}},
       .run = Version,
       .group = kGroupSelf}};
}

}  // namespace spoke::ctl
