// The noun `context`: which Spokes this user knows.
#include <filesystem>
#include <utility>

#include "absl/strings/str_join.h"
#include "admin-cli/context/context_file.h"
#include "admin-cli/context/target.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/session.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

struct Named {
  std::string name;
  Context context;
  bool current = false;
};

std::string PathOf(const Session& session) { return ContextPath(session.world.variable); }

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const ContextFile file, ReadContexts(PathOf(session)));
  std::vector<Named> all;
  for (const auto& [name, context] : file.contexts) {
    all.push_back({name, context, name == file.current});
  }
  return Done(PrintList(
      session,
      ListForm<Named>{
          .what = "contexts",
          .name = [](const Named& one) { return one.name; },
          .json =
              [](const Named& one) {
                return Json{{"name", one.name},
                            {"current", one.current},
                            {"servers", one.context.servers},
                            {"ca", one.context.ca},
                            {"certificate", one.context.certificate},
                            {"key", one.context.key},
                            {"server_name", one.context.server_name}};
              },
          .columns = {{"CURRENT", [](const Named& one) { return Cell{one.current ? "*" : ""}; }},
                      {"NAME", [](const Named& one) { return Cell{one.name}; }},
                      {"SERVERS",
                       [](const Named& one) {
                         return Cell{absl::StrJoin(one.context.servers, ",")};
                       }},
                      {"CERTIFICATE",
                       [](const Named& one) { return Cell{one.context.certificate}; }, true}}},
      all));
}

absl::StatusOr<int> Use(Session& session) {
  const std::string& name = session.arguments.Text("name");
  ASSIGN_OR_RETURN(ContextFile file, ReadContexts(PathOf(session)));
  if (!file.contexts.contains(name)) return NoSuchContext(file, name);
  file.current = name;
  RETURN_IF_ERROR(WriteContexts(PathOf(session), file));
  session.Out(fmt::format("{} is the context now\n", name));
  return 0;
}

absl::StatusOr<int> Set(Session& session) {
  const Arguments& arguments = session.arguments;
  const std::string& name = arguments.Text("name");
  RETURN_IF_ERROR(CheckContextName(name));
  ASSIGN_OR_RETURN(ContextFile file, ReadContexts(PathOf(session)));
  Context& context = file.contexts[name];
  if (arguments.Has("at")) context.servers = arguments.All("at");
  const std::pair<const char*, std::string*> files[] = {
      {"ca", &context.ca}, {"certificate", &context.certificate}, {"key", &context.key}};
  for (const auto& [option, file_of] : files) {
    // What is given is meant from where the command is run, and found from everywhere.
    if (arguments.Has(option)) *file_of = std::filesystem::absolute(arguments.Text(option));
  }
  if (arguments.Has("server-name")) context.server_name = arguments.Text("server-name");
  if (file.current.empty()) file.current = name;
  // What could not be read again is not written.
  RETURN_IF_ERROR(ParseContexts(PrintContexts(file), fmt::format("context {}", name)).status());
  RETURN_IF_ERROR(WriteContexts(PathOf(session), file));
  session.Out(fmt::format("{} is in {}\n", name, PathOf(session)));
  return 0;
}

absl::StatusOr<int> Delete(Session& session) {
  const std::string& name = session.arguments.Text("name");
  ASSIGN_OR_RETURN(ContextFile file, ReadContexts(PathOf(session)));
  if (file.contexts.erase(name) == 0) return NoSuchContext(file, name);
  if (file.current == name) file.current.clear();
  RETURN_IF_ERROR(WriteContexts(PathOf(session), file));
  session.Out(
      fmt::format("{} is gone; its files of keys and certificates are still there\n", name));
  return 0;
}

Command SetCommand(const Parameter& name) {
  return {.name = "set",
          .summary = "Make or change a context",
          .description =
              "Options that are not given stay as they are. spokectl login makes all of it by "
              "itself.",
          .examples = {"spokectl context set prod --at spoke-a:7447 --at spoke-b:7447 --ca "
                       "/etc/spoke/ca.pem --certificate ~/alice.pem --key ~/alice.key",
                       "spokectl context set here --at unix:/run/spoke/ipam-admin.sock"},
          .positionals = {name},
          .options = {{.name = "at",
                       .value = "SERVER",
                       .help = "A server's HOST:PORT for operators, or unix:/path",
                       .repeated = true},
                      {.name = "ca",
                       .value = "FILE",
                       .help = "The authority of the server's certificate, and of yours",
                       .values = Values::kFile},
                      {.name = "certificate",
                       .value = "FILE",
                       .help = "Your certificate",
                       .values = Values::kFile},
                      {.name = "key",
                       .value = "FILE",
                       .help = "The key of your certificate",
                       .values = Values::kFile},
                      {.name = "server-name",
                       .value = "NAME",
                       .help = "What the server's certificate bears, if not the host, as through "
                               "kubectl port-forward"}},
          .run = Set};
}

}  // namespace

Command ContextCommand() {
  const Parameter name = {
      .name = "name", .value = "CONTEXT", .help = "Name of the context", .required = true};
  return {.name = "context",
          .summary = "Which Spokes this user knows",
          .description =
              "A context names the servers of one Spoke, and the certificate that they are shown. "
              "Contexts are in ~/.config/spoke/config.yaml, or where SPOKE_CONFIG says.",
          .commands = {{.name = "list",
                        .summary = "All contexts",
                        .examples = {"spokectl context list", "spokectl context list -o wide"},
                        .run = List},
                       {.name = "use",
                        .summary = "Take one where none is named",
                        .examples = {"spokectl context use prod"},
                        .positionals = {name},
                        .run = Use},
                       SetCommand(name),
                       {.name = "delete",
                        .summary = "Forget one",
                        .examples = {"spokectl context delete prod"},
                        .positionals = {name},
                        .run = Delete}},
          .group = kGroupSelf};
}

}  // namespace spoke::ctl
