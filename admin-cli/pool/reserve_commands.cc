#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

const Parameter kName = {.name = "name",
                         .value = "NAME",
                         .help = "Name of the reservation, such as the job's",
                         .values = Values::kReservation,
                         .required = true};

uint32_t NodesOf(const v1::ReservationInfo& reservation) {
  return reservation.nodes().empty() ? reservation.count()
                                     : static_cast<uint32_t>(reservation.nodes_size());
}

Json ToJson(const v1::ReservationInfo& reservation) {
  return {{"name", reservation.name()},
          {"nodes", JsonList(reservation.nodes())},
          {"count", reservation.count()},
          {"addresses_per_node", reservation.addresses_per_node()},
          {"nodes_ready", reservation.nodes_ready()},
          {"created", TimeOf(reservation.created_unix_ms())},
          {"expires", TimeOf(reservation.expires_unix_ms())}};
}

ListForm<v1::ReservationInfo> ReservationForm(const Session& session) {
  using Reservation = v1::ReservationInfo;
  return {
      .what = "reservations",
      .name = [](const Reservation& reservation) { return reservation.name(); },
      .json = [](const Reservation& reservation) { return ToJson(reservation); },
      .columns =
          {{"NAME", [](const Reservation& one) { return Cell{one.name()}; }},
           {"NODES", [](const Reservation& one) { return NumberCell(NodesOf(one)); }},
           {"EACH", [](const Reservation& one) { return NumberCell(one.addresses_per_node()); }},
           {"READY",
            [](const Reservation& one) {
              return Cell{std::to_string(one.nodes_ready()),
                          one.nodes_ready() == NodesOf(one) ? Tone::kGood : Tone::kWarning};
            }},
           {"AGE",
            [&](const Reservation& one) { return Cell{session.AgeOf(one.created_unix_ms())}; }},
           {"LEFT",
            [&](const Reservation& one) {
              return Cell{
                  FormatAge(one.expires_unix_ms() / 1000 - absl::ToUnixSeconds(session.now()))};
            }},
           {"FOR",
            [](const Reservation& one) {
              return Cell{one.nodes().empty() ? "nodes still to join"
                                              : absl::StrJoin(one.nodes(), ",")};
            },
            true}}};
}

absl::Status PrintChange(const Session& session, const v1::ReservationInfo& reservation,
                         std::string_view what) {
  return session.PrintOne(reservation.name(), ToJson(reservation),
                          fmt::format("reservation {} {}\n", Printable(reservation.name()), what));
}

absl::StatusOr<int> Create(Session& session) {
  const Arguments& arguments = session.arguments;
  if (arguments.Has("node") == arguments.Has("count")) {
    return absl::InvalidArgumentError(
        "reserve create: name the nodes with --node, or say with --count how many are still to "
        "join; one of the two");
  }
  v1::CreateReservationRequest request;
  request.set_name(arguments.Text("name"));
  for (const std::string& node : arguments.All("node")) request.add_nodes(node);
  request.set_count(arguments.Count("count"));
  request.set_addresses_per_node(arguments.Count("addresses-per-node"));
  request.set_ttl_ms(absl::ToInt64Milliseconds(arguments.Duration("ttl")));
  request.set_dry_run(arguments.Has("dry-run"));
  ASSIGN_OR_RETURN(const v1::ReservationInfo reservation,
                   session.client.Ask(kCreateReservation, request));
  return Done(PrintChange(
      session, reservation,
      fmt::format("{} {} on each of {}{}", request.dry_run() ? "would hold" : "holds",
                  Counted(request.addresses_per_node(), "address", "addresses"),
                  Counted(NodesOf(reservation), "node", "nodes"),
                  request.dry_run() ? " (dry run)"
                                    : " for " + session.UntilOf(reservation.expires_unix_ms()))));
}

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const v1::ListReservationsResponse response,
                   session.client.Ask(kListReservations));
  const std::string& node = session.arguments.Text("node");
  ListForm<v1::ReservationInfo> form = ReservationForm(session);
  if (!node.empty()) form.what = fmt::format("reservations for node {}", node);
  ListPrinter<v1::ReservationInfo> printer(session, std::move(form));
  for (const v1::ReservationInfo& one : response.reservations()) {
    const auto& nodes = one.nodes();
    if (node.empty() || std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
      printer.Add(one);
    }
  }
  return Done(printer.Print());
}

absl::StatusOr<int> Release(Session& session) {
  v1::DeleteReservationRequest request;
  request.set_name(session.arguments.Text("name"));
  ASSIGN_OR_RETURN(const v1::ReservationInfo reservation,
                   session.client.Ask(kDeleteReservation, request));
  return Done(PrintChange(session, reservation, "released"));
}

Command CreateCommand() {
  Parameter name = kName;
  name.values = Values::kText;  // It is a new one: there is nothing to complete.
  return {
      .name = "create",
      .summary = "Hold addresses for a job, all or nothing",
      .description =
          "Holds so many addresses on each node, above what the node would have by "
          "itself, until the job's pods have them, the time is over or the "
          "reservation is released. When not all fit, nothing is held and the code "
          "is 5.",
      .examples = {"spokectl reserve create train-7 --node node1 --node node2 "
                   "--addresses-per-node 8",
                   "spokectl reserve create train-8 --count 512 --addresses-per-node 8 --ttl 2h",
                   "spokectl reserve create train-9 --count 4096 --addresses-per-node 27 "
                   "--dry-run"},
      .positionals = {name},
      .options = {{.name = "node",
                   .value = "NODE",
                   .help = "A node to hold addresses on",
                   .values = Values::kNode,
                   .repeated = true},
                  {.name = "count",
                   .value = "N",
                   .help = "So many nodes that are still to join",
                   .values = Values::kCount},
                  {.name = "addresses-per-node",
                   .value = "N",
                   .help = "Addresses on each",
                   .values = Values::kCount,
                   .required = true},
                  {.name = "ttl",
                   .value = "TIME",
                   .help = "Released by itself after that",
                   .values = Values::kDuration,
                   .fallback = "1h"},
                  {.name = "dry-run", .help = "Only say whether it would fit"}},
      .run = Create};
}

}  // namespace

Command ReserveCommand() {
  return {.name = "reserve",
          .summary = "Addresses held for jobs",
          .description =
              "A reservation lets a job whose pods start together start whole or not at "
              "all.",
          .commands = {CreateCommand(),
                       HostsCommand(kName),
                       {.name = "list",
                        .summary = "Reservations",
                        .description = "READY counts the nodes that hold all that was reserved for "
                                       "them; LEFT is the time until it ends by itself.",
                        .examples = {"spokectl reserve list", "spokectl reserve list --watch"},
                        .options = {{.name = "node",
                                     .value = "NODE",
                                     .help = "Only those that name this node",
                                     .values = Values::kNode}},
                        .run = List,
                        .watchable = true},
                       {.name = "release",
                        .summary = "End a reservation",
                        .description = "What pods have of it by now, they keep.",
                        .examples = {"spokectl reserve release train-7"},
                        .positionals = {kName},
                        .run = Release}},
          .group = kGroupNouns};
}

}  // namespace spoke::ctl
