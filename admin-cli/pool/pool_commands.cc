#include "absl/strings/str_join.h"
#include "admin-cli/output/views.h"
#include "admin-cli/policy/objects.h"
#include "admin-cli/pool/pool_object.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

const Parameter kPool = {.name = "pool",
                         .value = "POOL",
                         .help = "Name of a pool",
                         .values = Values::kPool,
                         .required = true};
const Parameter kCidr = {.name = "cidr",
                         .value = "CIDR",
                         .help = "The subnet's block, such as 10.1.0.0/16",
                         .required = true};
const Parameter kDryRun = {.name = "dry-run", .help = "Check it, and change nothing"};

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const v1::ListPoolsResponse response, session.client.Ask(kListPools));
  return Done(PrintList(session, PoolForm(), response.pools()));
}

absl::StatusOr<int> Show(Session& session) {
  v1::ListPoolsRequest request;
  request.set_name(session.arguments.Text("pool"));
  ASSIGN_OR_RETURN(const v1::ListPoolsResponse response, session.client.Ask(kListPools, request));
  if (response.pools().empty()) {
    return absl::NotFoundError(
        fmt::format("there is no pool {}; see: spokectl pool list", request.name()));
  }
  const v1::PoolInfo& pool = response.pools(0);
  return Done(session.PrintOne(
      pool.name(), ToJson(pool),
      session.Fields(
          {{"Name", {pool.name(), Tone::kBold}},
           {"CIDR", {pool.cidr()}},
           {"VNet", {pool.vnet()}},
           {"Comes from", {pool.source() == "file" ? "the server's configuration" : pool.source()}},
           {"Blocks",
            {pool.block_prefix_length() == 0 ? "none: single addresses"
                                             : fmt::format("/{}", pool.block_prefix_length())}},
           {"For nodes", {LabelsOf(pool.node_labels())}},
           {"For namespaces", {absl::StrJoin(pool.namespaces(), ", ")}},
           {"Usable", {std::to_string(pool.usable())}},
           {"Free",
            {fmt::format("{} ({} of them reserved)", pool.free(), pool.reserved()),
             pool.free() == 0 ? Tone::kBad : Tone::kPlain}},
           {"Attached",
            {fmt::format("{} in use, {} available, {} in cooldown", pool.in_use(), pool.available(),
                         pool.cooldown())}},
           {"On the way",
            {fmt::format("{} attaching, {} detaching, {} released", pool.attaching(),
                         pool.detaching(), pool.released())}},
           {"Quarantined",
            {std::to_string(pool.quarantined()),
             pool.quarantined() == 0 ? Tone::kPlain : Tone::kWarning}}})));
}

v1::ApplyRequest OneFile(std::string yaml, bool dry_run) {
  v1::ApplyRequest request;
  v1::PolicyFile& file = *request.add_files();
  file.set_name("pool");
  file.set_text(std::move(yaml));
  request.set_dry_run(dry_run);
  return request;
}

absl::StatusOr<int> Apply(Session& session, const std::string& yaml, bool dry_run) {
  ASSIGN_OR_RETURN(const v1::ApplyResponse response,
                   session.client.Ask(kApply, OneFile(yaml, dry_run)));
  return Done(PrintChanges(session, response.changes(), dry_run));
}

absl::StatusOr<int> Create(Session& session) {
  const Arguments& arguments = session.arguments;
  const std::string yaml = PoolYaml({.name = arguments.Text("pool"),
                                     .cidr = arguments.Text("cidr"),
                                     .vnet = arguments.Text("vnet"),
                                     .block_prefix_length = arguments.Count("block-prefix-length"),
                                     .node_labels = arguments.Labels("node-label"),
                                     .namespaces = arguments.All("namespace")});
  // An apply would change a pool that is there; "create" means a new one.
  ASSIGN_OR_RETURN(const v1::ApplyResponse trial, session.client.Ask(kApply, OneFile(yaml, true)));
  for (const v1::ObjectChange& change : trial.changes()) {
    if (change.action() != "created") {
      return absl::AlreadyExistsError(
          fmt::format("there is a pool {} already; change it with spokectl pool resize or spokectl "
                      "apply",
                      arguments.Text("pool")));
    }
  }
  return Apply(session, yaml, arguments.Has("dry-run"));
}

absl::StatusOr<int> Resize(Session& session) {
  v1::GetObjectsRequest request;
  request.set_kind("Pool");
  request.set_name(session.arguments.Text("pool"));
  const auto response = session.client.Ask(kGetObjects, request);
  if (absl::IsNotFound(response.status()) || (response.ok() && response->objects().empty())) {
    return absl::NotFoundError(
        fmt::format("there is no applied pool {}; one that comes from the server's configuration "
                    "(spokectl pool "
                    "list -o wide shows the source) is changed there",
                    request.name()));
  }
  RETURN_IF_ERROR(response.status());
  ASSIGN_OR_RETURN(const std::string yaml,
                   WithCidr(response->objects(0).yaml(), session.arguments.Text("cidr")));
  return Apply(session, yaml, session.arguments.Has("dry-run"));
}

absl::StatusOr<int> Delete(Session& session) {
  v1::DeleteObjectsRequest request;
  request.set_dry_run(session.arguments.Has("dry-run"));
  v1::ObjectName& name = *request.add_objects();
  name.set_kind("Pool");
  name.set_name(session.arguments.Text("pool"));
  ASSIGN_OR_RETURN(const v1::DeleteObjectsResponse response,
                   session.client.Ask(kDeleteObjects, request));
  return Done(PrintChanges(session, response.changes(), request.dry_run()));
}

Command CreateCommand() {
  Parameter name = kPool;
  name.values = Values::kText;
  return {.name = "create",
          .summary = "Make a pool of a subnet's addresses",
          .description =
              "The same as applying a Pool object, except that a pool of that name must "
              "not be there yet (code 5).",
          .examples = {"spokectl pool create pods-2 --cidr 10.2.0.0/16",
                       "spokectl pool create gpu --cidr 10.3.0.0/16 --vnet vnet-2 "
                       "--block-prefix-length 28 --node-label accelerator=h100"},
          .positionals = {name},
          .options = {kCidr,
                      {.name = "vnet", .value = "VNET", .help = "The VNet its subnet is in"},
                      {.name = "block-prefix-length",
                       .value = "N",
                       .help = "Give nodes whole blocks of that size, such as 28, not single "
                               "addresses",
                       .values = Values::kCount},
                      {.name = "node-label",
                       .value = "KEY=VALUE",
                       .help = "Only for nodes with this label",
                       .values = Values::kLabel,
                       .repeated = true},
                      {.name = "namespace",
                       .value = "NAMESPACE",
                       .help = "Only for pods of this namespace",
                       .letter = 'n',
                       .repeated = true},
                      kDryRun},
          .run = Create};
}

}  // namespace

Command PoolCommand() {
  return {.name = "pool",
          .summary = "Pools of addresses",
          .description =
              "A pool is the addresses of one subnet. Pools come from the server's "
              "configuration or are applied as objects of kind Pool; create, resize and "
              "delete do the latter for you.",
          .commands = {{.name = "list",
                        .summary = "Pools with their counts",
                        .examples = {"spokectl pool list", "spokectl pool list -o wide"},
                        .run = List,
                        .watchable = true},
                       {.name = "show",
                        .summary = "All about one pool",
                        .examples = {"spokectl pool show default"},
                        .positionals = {kPool},
                        .run = Show,
                        .watchable = true},
                       CreateCommand(),
                       {.name = "resize",
                        .summary = "Give a pool a larger or smaller block",
                        .description = "Changes the CIDR block of an applied pool. All addresses "
                                       "that are in use must lie in the new block (else code 5, "
                                       "and nothing changes).",
                        .examples = {"spokectl pool resize pods-2 --cidr 10.2.0.0/15",
                                     "spokectl pool resize pods-2 --cidr 10.2.0.0/17 --dry-run"},
                        .positionals = {kPool},
                        .options = {kCidr, kDryRun},
                        .run = Resize},
                       {.name = "delete",
                        .summary = "Delete a pool that nothing uses",
                        .description = "Refused with code 5 while a node holds one of its "
                                       "addresses: drain the nodes first.",
                        .examples = {"spokectl pool delete pods-2"},
                        .positionals = {kPool},
                        .options = {kDryRun},
                        .run = Delete}},
          .group = kGroupNouns};
}

}  // namespace spoke::ctl
