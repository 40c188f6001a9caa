#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/output/unified_diff.h"
#include "admin-cli/policy/objects.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

const Parameter kFiles = {.name = "file",
                          .value = "FILE",
                          .help =
                              "A file with objects, a folder of them (*.yaml, *.yml), or - for "
                              "standard input",
                          .values = Values::kFile,
                          .letter = 'f',
                          .repeated = true};
const Parameter kRecursive = {
    .name = "recursive", .help = "The folders in a folder as well", .letter = 'R'};

Parameter RequiredFiles() {
  Parameter files = kFiles;
  files.required = true;
  return files;
}

absl::StatusOr<v1::ApplyRequest> RequestOf(const Session& session) {
  ASSIGN_OR_RETURN(std::vector<v1::PolicyFile> files,
                   ReadPolicyFiles(session.arguments.All("file"),
                                   session.arguments.Has("recursive"), session.world.console));
  v1::ApplyRequest request;
  for (v1::PolicyFile& file : files) *request.add_files() = std::move(file);
  return request;
}

absl::StatusOr<int> Apply(Session& session) {
  ASSIGN_OR_RETURN(v1::ApplyRequest request, RequestOf(session));
  request.set_dry_run(session.arguments.Has("dry-run"));
  request.set_expected_version(session.arguments.Version("expect-version"));
  ASSIGN_OR_RETURN(const v1::ApplyResponse response, session.client.Ask(kApply, request));
  for (const std::string& warning : response.warnings()) session.Note("warning: " + warning);
  return Done(PrintChanges(session, response.changes(), request.dry_run()));
}

// Prints what the change would end. A server or agents that cannot tell do not make the diff fail.
void PrintCuts(const Session& session, const v1::ApplyRequest& request) {
  const auto cuts = session.client.Ask(kEstimateCuts, request);
  if (!cuts.ok()) {
    session.Note(fmt::format("diff: it is not known how many connections this would cut: {}",
                             base::MessageOf(cuts.status())));
    return;
  }
  session.Note(fmt::format("would cut {} of {} connections on {} asked, of {}",
                           cuts->connections_cut(), cuts->connections(),
                           Counted(cuts->nodes_answered(), "node that was", "nodes that were"),
                           cuts->nodes()));
  for (const v1::CutConnection& cut : cuts->examples()) {
    const std::string pod = cut.pod_name().empty()
                                ? ""
                                : fmt::format(" of pod {}/{}", cut.pod_namespace(), cut.pod_name());
    // A line each, whatever an agent says.
    session.Note(Printable(fmt::format("  such as {} to {}{} on node {} ({})", cut.address(),
                                       cut.far_address(), pod, cut.node(), cut.reason())));
  }
  if (cuts->nodes_answered() < cuts->nodes_asked()) {
    session.Note(
        fmt::format("diff: {} not say; the first: {}",
                    Counted(cuts->nodes_asked() - cuts->nodes_answered(), "node did", "nodes did"),
                    cuts->error()));
  }
}

absl::StatusOr<int> Diff(Session& session) {
  ASSIGN_OR_RETURN(v1::ApplyRequest request, RequestOf(session));
  request.set_dry_run(true);
  ASSIGN_OR_RETURN(const v1::ApplyResponse response, session.client.Ask(kApply, request));
  bool differs = false;
  for (const v1::ObjectChange& change : response.changes()) {
    if (change.action() == "unchanged") continue;
    differs = true;
    const std::string name = change.kind() + "/" + change.name();
    if (session.is_table()) {
      session.Out(
          UnifiedDiff(change.before_yaml(), change.after_yaml(),
                      {.before = change.before_yaml().empty() ? "/dev/null" : "server/" + name,
                       .after = change.after_yaml().empty() ? "/dev/null" : "file/" + name},
                      session.colours));
    }
  }
  if (!session.is_table()) RETURN_IF_ERROR(PrintChanges(session, response.changes(), true));
  if (differs) PrintCuts(session, request);
  return differs ? 1 : 0;
}

ListForm<v1::PolicyObjectInfo> ObjectForm(const Session& session) {
  using Object = v1::PolicyObjectInfo;
  return {
      .what = "such objects",
      .name = [](const Object& object) { return object.kind() + "/" + object.name(); },
      .json =
          [](const Object& object) {
            // What the server sends is JSON; if it is not, it is shown as text.
            Json value = Json::parse(object.json(), nullptr, false);
            return value.is_discarded() ? Json(object.json()) : value;
          },
      .columns = {{"KIND", [](const Object& object) { return Cell{object.kind()}; }},
                  {"NAME", [](const Object& object) { return Cell{object.name()}; }},
                  {"VERSION", [](const Object& object) { return NumberCell(object.version()); }},
                  {"CHANGED", [&](const Object& object) {
                     return Cell{session.AgeOf(object.changed_unix_ms())};
                   }}}};
}

// Returns the command that lists what `word` means, where that is no policy object; empty: none.
std::string_view ListedBy(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kNouns[] = {
      {"node", "spokectl node list"},          {"address", "spokectl ip list"},
      {"addresse", "spokectl ip list"},        {"ip", "spokectl ip list"},
      {"pod", "spokectl explain pod"},         {"reservation", "spokectl reserve list"},
      {"budget", "spokectl budget list"},      {"event", "spokectl events"},
      {"namespace", "spokectl top namespaces"}};
  const bool plural = word.ends_with('s');
  for (const auto& [noun, command] : kNouns) {
    if (word == noun || (plural && word.substr(0, word.size() - 1) == noun)) return command;
  }
  return "";
}

// Returns KIND and NAME of "KIND/NAME", which is how -o name prints an object; nullopt: it is not
// that.
std::optional<v1::ObjectName> ObjectNameIn(const std::string& word) {
  const size_t slash = word.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == word.size()) return std::nullopt;
  v1::ObjectName object;
  object.set_kind(KindOf(word.substr(0, slash)));
  object.set_name(word.substr(slash + 1));
  return object;
}

// Returns what `get` is to ask for: a kind, a kind and a name of it, several kinds between commas,
// or KIND/NAME of each. Errors: kInvalidArgument, kNotFound (what is no kind of policy objects).
absl::StatusOr<std::vector<v1::GetObjectsRequest>> ObjectsWanted(const Arguments& arguments) {
  const std::string& kind = arguments.Text("kind");
  const std::vector<std::string>& names = arguments.All("name");
  std::vector<v1::GetObjectsRequest> wanted;
  const auto add = [&](std::string of_kind, const std::string& name) {
    if (const std::string_view command = ListedBy(of_kind); !command.empty()) {
      return absl::NotFoundError(fmt::format(
          "there is no kind \"{}\" of policy objects; did you mean: {}", of_kind, command));
    }
    if (of_kind.empty()) return absl::NotFoundError("an empty word is no kind of policy objects");
    if (of_kind == "all" && !name.empty()) {
      return absl::InvalidArgumentError("get all NAME: a name belongs to a kind; name the kind");
    }
    v1::GetObjectsRequest& request = wanted.emplace_back();
    if (of_kind != "all") request.set_kind(KindOf(of_kind));
    request.set_name(name);
    return absl::OkStatus();
  };
  if (const auto first = ObjectNameIn(kind)) {
    RETURN_IF_ERROR(add(first->kind(), first->name()));
    for (const std::string& word : names) {
      const auto both = ObjectNameIn(word);
      if (!both) {
        return absl::InvalidArgumentError(
            fmt::format("get {}: write KIND/NAME of \"{}\" too", kind, word));
      }
      RETURN_IF_ERROR(add(both->kind(), both->name()));
    }
    return wanted;
  }
  for (const absl::string_view of_kind : absl::StrSplit(kind, ',')) {
    if (names.empty()) RETURN_IF_ERROR(add(std::string(of_kind), ""));
    for (const std::string& name : names) RETURN_IF_ERROR(add(std::string(of_kind), name));
  }
  return wanted;
}

absl::StatusOr<int> Get(Session& session) {
  ASSIGN_OR_RETURN(const auto requests, ObjectsWanted(session.arguments));
  v1::GetObjectsResponse all;
  for (const v1::GetObjectsRequest& request : requests) {
    ASSIGN_OR_RETURN(const v1::GetObjectsResponse response,
                     session.client.Ask(kGetObjects, request));
    all.MergeFrom(response);
  }
  if (session.format == Format::kYaml) {
    // This is the server's own text, so that it can be changed and applied.
    bool first = true;
    for (const v1::PolicyObjectInfo& object : all.objects()) {
      session.Out((first ? "" : "---\n") + PrintableLines(object.yaml()));
      first = false;
    }
    return 0;
  }
  const bool is_one = requests.size() == 1 && !requests.front().name().empty();
  if (session.format == Format::kJson && is_one && all.objects_size() == 1) {
    return Done(session.PrintValue(ObjectForm(session).json(all.objects(0))));
  }
  return Done(PrintList(session, ObjectForm(session), all.objects()));
}

// Returns the objects of "KIND NAME...", or of "KIND/NAME...". Errors: kInvalidArgument (some of
// both).
absl::StatusOr<std::vector<v1::ObjectName>> NamedObjects(const Arguments& arguments) {
  std::vector<v1::ObjectName> objects;
  const std::string& kind = arguments.Text("kind");
  const auto first = ObjectNameIn(kind);
  if (first) objects.push_back(*first);
  for (const std::string& name : arguments.All("name")) {
    const auto both = ObjectNameIn(name);
    if (both.has_value() != first.has_value()) {
      return absl::InvalidArgumentError(
          "delete: say KIND and NAME, or KIND/NAME of each; one of the two");
    }
    v1::ObjectName& object = objects.emplace_back();
    object.set_kind(both ? both->kind() : KindOf(kind));
    object.set_name(both ? both->name() : name);
  }
  return objects;
}

absl::StatusOr<int> Delete(Session& session) {
  const Arguments& arguments = session.arguments;
  const bool named = arguments.Has("kind");
  const bool whole = arguments.Has("name") || ObjectNameIn(arguments.Text("kind")).has_value();
  if (named == arguments.Has("file") || (named && !whole)) {
    return absl::InvalidArgumentError(
        "delete: say KIND and NAME, or -f FILE with the objects; one of the two");
  }
  v1::DeleteObjectsRequest request;
  request.set_dry_run(arguments.Has("dry-run"));
  if (named) {
    ASSIGN_OR_RETURN(const std::vector<v1::ObjectName> objects, NamedObjects(arguments));
    for (const v1::ObjectName& object : objects) *request.add_objects() = object;
  } else {
    ASSIGN_OR_RETURN(v1::ApplyRequest files, RequestOf(session));
    *request.mutable_files() = std::move(*files.mutable_files());
  }
  ASSIGN_OR_RETURN(const v1::DeleteObjectsResponse response,
                   session.client.Ask(kDeleteObjects, request));
  return Done(PrintChanges(session, response.changes(), request.dry_run()));
}

Command ApplyCommand() {
  return {
      .name = "apply",
      .summary = "Make the server's objects be as in files",
      .description =
          "Creates and changes objects, all or nothing. Each mistake is printed with "
          "its file and line, and then nothing is changed (code 2). Nodes get what "
          "concerns them at once; spokectl rollout status says which have it. With "
          "--expect-version, nothing is changed when somebody else has changed objects since "
          "(code 5).",
      .examples = {"spokectl apply -f policies/ --dry-run",
                   "spokectl apply -f policies/ --expect-version 1789034112345",
                   "spokectl apply -f pool.yaml -f team.yaml",
                   "spokectl get Pool default -o yaml | sed s/16/15/ | spokectl apply -f -"},
      .options = {RequiredFiles(),
                  kRecursive,
                  {.name = "dry-run", .help = "Check all, say what would change, change nothing"},
                  {.name = "expect-version",
                   .value = "N",
                   .help = "Only if the objects are of this version, as spokectl status shows it",
                   .values = Values::kVersion}},
      .run = Apply,
      .group = kGroupPolicy};
}

Command DiffCommand() {
  return {
      .name = "diff",
      .summary = "What apply would change, as a unified diff",
      .description =
          "Compares whole objects as the server writes them, so that order and "
          "spelling in the files make no difference. Where something differs, up to 20 agents are "
          "asked how many of the connections that their nodes track it would cut; that goes to "
          "standard error.",
      .examples = {"spokectl diff -f policies/", "spokectl diff -f policies/ && echo up to date"},
      .options = {RequiredFiles(), kRecursive},
      .run = Diff,
      .group = kGroupPolicy,
      .exit_codes =
          "0 no difference, 1 differences, 2 could not compare or wrong usage; else as "
          "everywhere.",
      .failure_code = 2};
}

}  // namespace

std::vector<Command> ObjectCommands() {
  const Parameter kind = {.name = "kind",
                          .value = "KIND",
                          .help =
                              "Such as Pool, ClusterNetwork or Team; pool and pools will do, "
                              "and KIND/NAME for both",
                          .values = Values::kKind};
  Parameter get_kind = kind;
  get_kind.required = true;
  get_kind.help += "; several with commas between; all is each of them";
  const Parameter name = {
      .name = "name", .value = "NAME", .help = "Name of the object", .values = Values::kObject};
  Parameter names = name;
  names.repeated = true;
  return {ApplyCommand(),
          DiffCommand(),
          {.name = "get",
           .summary = "Objects as the server has them",
           .description = "With -o yaml, in the form that apply takes.",
           .examples = {"spokectl get all", "spokectl get team research -o yaml",
                        "spokectl get Team/research -o json", "spokectl get team,pool",
                        "spokectl get Team/research Pool/default"},
           .positionals = {get_kind, names},
           .run = Get,
           .group = kGroupPolicy,
           .watchable = true},
          {.name = "delete",
           .summary = "Delete objects",
           .description = "Those named, or those that stand in files; all or nothing.",
           .examples = {"spokectl delete Team research", "spokectl delete -f policies/old.yaml"},
           .positionals = {kind, names},
           .options = {kFiles,
                       kRecursive,
                       {.name = "dry-run", .help = "Say what would be deleted, delete nothing"}},
           .run = Delete,
           .group = kGroupPolicy}};
}

}  // namespace spoke::ctl
