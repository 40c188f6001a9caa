#include <sys/stat.h>

#include "admin-cli/completion.h"
#include "admin-cli/context/target.h"
#include "admin-cli/help_text.h"
#include "admin-cli/known_names.h"
#include "admin-cli/shell.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/os/file.h"

namespace spoke::ctl {
namespace {

constexpr size_t kMaxNames = 1000;  // The most names; more is no help to anybody, and slow.

absl::StatusOr<int> PrintScript(Session& session) {
  ASSIGN_OR_RETURN(const std::string script, CompletionScript(session.arguments.Text("shell")));
  session.Out(script);
  return 0;
}

std::vector<CommandPath> ManualPaths(const Command& root) {
  std::vector<CommandPath> paths = {{&root}};
  for (const Command& command : root.commands) {
    if (!command.hidden) paths.push_back({&root, &command});
  }
  return paths;
}

absl::StatusOr<int> Manual(Session& session) {
  const std::vector<CommandPath> paths = ManualPaths(session.root);
  if (session.arguments.Has("dir")) {
    const std::string& dir = session.arguments.Text("dir");
    RETURN_IF_ERROR(os::CheckDirectory(dir));
    for (const CommandPath& path : paths) {
      RETURN_IF_ERROR(os::WriteFileAtomic(dir + "/" + ManualPageName(path),
                                          ManualPage(path, base::kVersion),
                                          os::Durability::kVisible));
    }
    return 0;
  }
  const std::string wanted = session.arguments.Text("command");
  for (const CommandPath& path : paths) {
    if (WordsOf(path) != wanted) continue;
    session.Out(ManualPage(path, base::kVersion));
    return 0;
  }
  return absl::NotFoundError(fmt::format("man: there is no command \"{}\"", wanted));
}

// Returns the server that the words being typed mean.
absl::StatusOr<Target> TypedTarget(const Command& root, const std::vector<std::string>& words,
                                   const World& world) {
  Arguments arguments;
  for (const std::string& name : {std::string("server"), std::string("context")}) {
    std::string value = world.variable(root.FindOption(name)->variable);
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i].starts_with("--" + name + "=")) value = words[i].substr(words[i].find('=') + 1);
      if (words[i] == "--" + name && i + 2 < words.size()) value = words[i + 1];
    }
    if (!value.empty()) arguments.Set(name, {value});
  }
  return TargetOf(arguments, world.variable, world.clock.Now());
}

}  // namespace

int RunComplete(const Command& root, const std::vector<std::string>& words, const World& world) {
  constexpr absl::Duration kPatience = absl::Seconds(2);
  const bool marked = !words.empty() && words[0] == "--";
  const std::vector<std::string> typed(words.begin() + (marked ? 1 : 0), words.end());
  Completion completion = Complete(root, typed);
  const bool files = completion.values == Values::kFile || completion.values == Values::kDirectory;
  const Client client(TypedTarget(root, typed, world), kPatience);
  const NameQuery query{.values = completion.values,
                        .context = completion.context,
                        .prefix = completion.prefix,
                        .most = kMaxNames};
  for (const std::string& name : NamesOf(client, query)) {
    completion.candidates.push_back({Printable(completion.before + name), ""});
  }
  world.console.Out(FormatCompletion(completion.candidates, files));
  return 0;
}

std::vector<Command> ShellCommands() {
  return {
      {.name = "completion",
       .summary = "Print the script that completes spokectl's words in a shell",
       .description = "It completes commands, options, values, and names that the server "
                      "knows. To have it always, put it where the shell looks:\n"
                      "  bash  /usr/share/bash-completion/completions/spokectl\n"
                      "  zsh   _spokectl in a folder of $fpath\n"
                      "  fish  ~/.config/fish/completions/spokectl.fish",
       .examples = {"source <(spokectl completion bash)",
                    "spokectl completion zsh > ~/.zsh/completions/_spokectl",
                    "spokectl completion fish | source"},
       .positionals = {{.name = "shell",
                        .value = "SHELL",
                        .help = "Which shell",
                        .choices = {"bash", "zsh", "fish"},
                        .required = true}},
       .run = PrintScript,
       .group = kGroupSelf},
      {.name = "man",
       .summary = "Print or write spokectl's manual pages",
       .description = "Prints one page in the language of man(7): that of spokectl, or of one "
                      "command. With --dir, writes all of them.",
       .examples = {"spokectl man node | man -l -", "spokectl man --dir /usr/local/share/man/man1"},
       .positionals = {{.name = "command", .value = "COMMAND", .help = "Whose page"}},
       .options = {{.name = "dir",
                    .value = "DIR",
                    .help = "Write all pages into this folder",
                    .values = Values::kDirectory}},
       .run = Manual,
       .group = kGroupSelf}};
}

}  // namespace spoke::ctl
