#include "admin-cli/run.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "admin-cli/context/target.h"
#include "admin-cli/help_text.h"
#include "admin-cli/known_names.h"
#include "admin-cli/shell.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version.h"

namespace spoke::ctl {
namespace {

struct Bound {
  const Command* command = nullptr;
  std::vector<std::pair<Parameter, CLI::Option*>> options;
};
using Bindings = std::map<const CLI::App*, Bound>;

// Returns whether hands that know kubectl may write its plural: nodes, pools.
bool HasPlural(const Command& command) {
  static const std::set<std::string_view> nouns = {"node", "pool", "ip", "budget", "context"};
  return !command.commands.empty() && nouns.contains(command.name);
}

// CLI11 finds which word belongs to what; all judgement about values is ours, so that its words
// are.
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which has three levels.
void Bind(const Command& command, CLI::App& app, Bindings& bindings) {
  app.set_help_flag("");
  app.fallthrough();
  // There is at most one, or a node named "pool" would be taken for the noun.
  app.require_subcommand(0, 1);
  Bound& bound = bindings[&app];
  bound.command = &command;
  for (const Parameter& positional : command.positionals) {
    CLI::Option* option = app.add_option(positional.name);
    if (positional.repeated) option->expected(-1)->take_all();
    bound.options.emplace_back(positional, option);
  }
  for (const Parameter& parameter : OptionsOf(command)) {
    std::string names = "--" + parameter.name;
    if (parameter.letter != 0) names = fmt::format("-{},{}", parameter.letter, names);
    CLI::Option* option = parameter.value.empty() ? app.add_flag(names) : app.add_option(names);
    if (parameter.repeated) option->take_all();
    bound.options.emplace_back(parameter, option);
  }
  for (const Command& one : command.commands) {
    CLI::App* const verb = app.add_subcommand(one.name);
    if (one.name == "list") verb->alias("ls");  // Hands know it from shells.
    if (HasPlural(one)) verb->alias(one.name + "s");
    Bind(one, *verb, bindings);
  }
}

// Returns the apps from the root to the last command that was named.
std::vector<const CLI::App*> NamedApps(const CLI::App& root) {
  std::vector<const CLI::App*> apps = {&root};
  while (!apps.back()->get_subcommands().empty()) {
    apps.push_back(apps.back()->get_subcommands().front());
  }
  return apps;
}

std::string InWords(const CommandPath& path) { return path.size() > 1 ? WordsOf(path) + ": " : ""; }

std::string Suggest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : fmt::format("; is it {}?", nearest);
}

absl::Status DescribeExtra(const CommandPath& path, const std::string& word) {
  const Command& command = *path.back();
  if (word.size() > 1 && word[0] == '-') {
    std::vector<std::string> options;
    for (const Command* one : path) {
      for (const Parameter& option : OptionsOf(*one)) options.push_back("--" + option.name);
    }
    return absl::InvalidArgumentError(
        fmt::format("{}there is no option {}{}", InWords(path), word,
                    Suggest(word.substr(0, word.find('=')), options)));
  }
  if (command.commands.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}\"{}\" is one word too many", InWords(path), word));
  }
  std::vector<std::string> names;
  for (const Command& one : command.commands) {
    if (!one.hidden) names.push_back(one.name);
  }
  std::string hint = Suggest(word, names);
  // All commands of the root would fill a screen; a noun's fit the line.
  if (hint.empty() && path.size() > 1) {
    hint = fmt::format("; there are {}", absl::StrJoin(names, ", "));
  }
  return absl::InvalidArgumentError(
      fmt::format("{}there is no command \"{}\"{}", InWords(path), word, hint));
}

// Returns what is wrong in our words where the library's are not plain.
std::string DescribeError(const CLI::Error& error) {
  const std::string text = error.what();
  const std::string option = text.substr(0, text.find(':'));
  if (text.find(": At Most 1 required but received") != std::string::npos) {
    return option + " is given more than once";
  }
  if (text.find(": 1 required") != std::string::npos) return option + " needs a value behind it";
  return text;
}

// Fills in what the words gave, then the environment, then the fallback.
void Fill(const Bound& bound, const std::function<std::string(const std::string&)>& variable,
          Arguments& arguments) {
  for (const auto& [parameter, option] : bound.options) {
    if (option->count() > 0) {
      arguments.SetGiven(parameter.name);
      arguments.Set(parameter.name,
                    parameter.value.empty() ? std::vector<std::string>{"true"} : option->results());
      continue;
    }
    std::string value = parameter.variable.empty() ? "" : variable(parameter.variable);
    if (value.empty()) value = parameter.fallback;
    // --help behind the verb must not be lost to the root's.
    if (!value.empty()) arguments.Set(parameter.name, {value});
  }
}

absl::Status CheckPresent(const CommandPath& path, const Arguments& arguments) {
  const Command& command = *path.back();
  if (!command.run && path.size() > 1) {
    std::vector<std::string> names;
    for (const Command& one : command.commands) names.push_back(one.name);
    return absl::InvalidArgumentError(
        fmt::format("{}which of {}?", InWords(path), absl::StrJoin(names, ", ")));
  }
  // What is there may have gone to the wrong place, for what is missing before it.
  RETURN_IF_ERROR(
      base::Annotate(Check(path, arguments), path.size() > 1 ? WordsOf(path) : "options"));
  for (const Parameter& positional : command.positionals) {
    if (positional.required && !arguments.Has(positional.name)) {
      return absl::InvalidArgumentError(
          fmt::format("{}{} is missing: {}", InWords(path), positional.value, positional.help));
    }
  }
  for (const Parameter& option : command.options) {
    if (option.required && !arguments.Has(option.name)) {
      return absl::InvalidArgumentError(
          fmt::format("{}{} is missing: {}", InWords(path), OptionWords(option), option.help));
    }
  }
  return absl::OkStatus();
}

// Returns the words with -o=json as -ojson, which the library reads as that option and its value:
// hands that know long options write the equals sign here too.
std::vector<std::string> WithoutEqualsOfLetters(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (word == "--") break;
    if (word.size() > 3 && word[0] == '-' && word[1] != '-' && word[2] == '=') word.erase(2, 1);
  }
  return words;
}

Format FormatOf(const std::string& name) {
  if (name == "wide") return Format::kWide;
  if (name == "json") return Format::kJson;
  if (name == "yaml") return Format::kYaml;
  return name == "name" ? Format::kName : Format::kTable;
}

bool WantsColours(const Arguments& arguments, const World& world) {
  const std::string& when = arguments.Text("color");
  if (when != "auto") return when == "always";
  return world.console.out_is_terminal() && world.variable("NO_COLOR").empty() &&
         world.variable("TERM") != "dumb";
}

// Returns whether `message` is a list of mistakes in files, "FILE:LINE: ...", which says all by
// itself.
bool IsListOfMistakes(std::string_view message) {
  const std::string_view line = message.substr(0, message.find('\n'));
  for (size_t colon = line.find(':'); colon != std::string_view::npos;
       colon = line.find(':', colon + 1)) {
    const size_t end = line.find_first_not_of("0123456789", colon + 1);
    if (end != std::string_view::npos && end > colon + 1 && line.substr(end, 2) == ": ")
      return true;
  }
  return false;
}

void PrintError(const absl::Status& status, Console& console) {
  const std::string message = PrintableLines(base::MessageOf(status));
  if (absl::IsInvalidArgument(status) && IsListOfMistakes(message)) {
    const bool ended = message.back() == '\n';
    console.Err(message + (ended ? "" : "\n") +
                "spokectl: nothing was changed; correct the above\n");
  } else {
    console.Err(fmt::format("spokectl: {}\n", message));
  }
}

// Adds the name that was probably meant to the error of a verb that found nothing of that name.
absl::Status WithMeantName(const absl::Status& status, const Command& command,
                           const Session& session) {
  if (!absl::IsNotFound(status)) return status;
  const std::string meant = MeantName(session.client, command, session.arguments);
  if (meant.empty()) return status;
  const std::string_view said = base::MessageOf(status);
  const bool asks = said.ends_with('?');
  return absl::NotFoundError(
      fmt::format("{}{} you mean {}?", said, asks ? " Did" : "; did", meant));
}

int CodeFor(const Command& command, const absl::Status& status) {
  const int code = ExitCodeOf(status);
  if (command.failure_code_for_all) return command.failure_code;
  return code == kExitFailed && command.failure_code != 0 ? command.failure_code : code;
}

// Runs the verb once, and returns its answer: its exit code, or what it failed with. Its output is
// held back, so that it appears whole, and not at all where the words turn out to be wrong.
absl::StatusOr<int> RunOnce(const Command& command, Session& session, const World& world,
                            std::string_view before) {
  HeldConsole held(world.console);
  const World inner{held, world.clock, world.wait, world.variable};
  Session once(session.root, session.arguments, inner, session.client);
  once.format = session.format;
  once.header = session.header;
  once.colours = session.colours;
  once.marks = session.marks;
  const auto code = command.run(once);
  if (absl::IsInvalidArgument(code.status())) {
    PrintError(code.status(), world.console);
    return code;
  }
  if (!held.held().empty() || !before.empty()) {
    world.console.Out(std::string(before) + held.held());
  }
  if (!code.ok()) PrintError(WithMeantName(code.status(), command, session), world.console);
  return code;
}

// Runs the verb again and again. A server that is away for a while does not end it: whoever watches
// wants to see when it is back. Nor does an answer that has an exit code of its own.
int Watch(const Command& command, Session& session, const World& world) {
  constexpr std::string_view kClear = "\x1b[H\x1b[2J\x1b[3J";
  const std::string every = "every " + session.arguments.Text("interval");
  const absl::Duration interval = session.arguments.Duration("interval");
  const bool redraw = world.console.out_is_terminal() && session.is_table();
  ChangeMarks marks;
  if (redraw) session.marks = &marks;
  std::string between;
  while (true) {
    std::string before = between;
    if (redraw || (session.is_table() && session.header)) {
      const std::string line =
          fmt::format("{}, {}", TimeOf(absl::ToUnixMillis(session.now())), every);
      before = fmt::format("{}{}\n\n", redraw ? kClear : between,
                           Coloured(line, Tone::kFaint, session.colours));
    }
    marks.Begin();
    const absl::StatusOr<int> answer = RunOnce(command, session, world, before);
    const int code = answer.ok() ? *answer : CodeFor(command, answer.status());
    if (!answer.ok() && code != kExitNoServer) return code;
    if (!world.console.written().ok()) return kExitFailed;
    if (!world.wait(interval)) return code;
    if (session.format == Format::kYaml) between = "---\n";
    if (session.is_table()) between = "\n";
  }
}

int RunVerb(const Command& command, Session& session, const World& world) {
  if (command.watchable && session.arguments.Has("watch")) return Watch(command, session, world);
  // Only what shows once is held back: other output may be long, or have no end.
  const bool held = command.watchable && session.arguments.Has("sort-by");
  const auto code = held ? RunOnce(command, session, world, "") : command.run(session);
  if (!code.ok()) {
    if (!held) PrintError(WithMeantName(code.status(), command, session), world.console);
    return CodeFor(command, code.status());
  }
  if (const absl::Status written = world.console.written(); !written.ok()) {
    PrintError(written, world.console);
    return command.failure_code != 0 ? command.failure_code : kExitFailed;
  }
  return *code;
}

int RunLine(const Command& root, const std::vector<std::string>& words, const World& world) {
  const ParsedLine line = ParseLine(root, words, world.variable);
  const std::string try_help = fmt::format("Try: {}{}{} --help\n", root.name,
                                           line.path.size() > 1 ? " " : "", WordsOf(line.path));
  if (!line.status.ok()) {
    PrintError(line.status, world.console);
    world.console.Err(try_help);
    return kExitUsage;
  }
  if (line.arguments.Has("help")) {
    world.console.Out(HelpText(line.path));
    return kExitDone;
  }
  if (line.path.size() == 1 && line.arguments.Has("version")) {
    world.console.Out(fmt::format("{} {}\n", root.name, base::kVersion));
    return kExitDone;
  }
  const Command& command = *line.path.back();
  if (!command.run) {
    world.console.Err(HelpText(line.path));
    return kExitUsage;
  }
  const Client client(TargetOf(line.arguments, world.variable, world.clock.Now()), line.timeout);
  Session session(root, line.arguments, world, client);
  session.format = FormatOf(line.arguments.Text("output"));
  session.header = !line.arguments.Has("no-headers");
  session.colours = WantsColours(line.arguments, world);
  return RunVerb(command, session, world);
}

}  // namespace

ParsedLine ParseLine(const Command& root, const std::vector<std::string>& words,
                     const std::function<std::string(const std::string&)>& variable) {
  CLI::App app;
  Bindings bindings;
  Bind(root, app, bindings);
  ParsedLine line;
  line.path = {&root};
  const auto see_path = [&] {
    line.path.clear();
    for (const CLI::App* one : NamedApps(app)) line.path.push_back(bindings.at(one).command);
  };
  try {
    const std::vector<std::string> plain = WithoutEqualsOfLetters(words);
    // The words are as CLI11 wants them.
    std::vector<std::string> reversed(plain.rbegin(), plain.rend());
    app.parse(std::move(reversed));
    see_path();
  } catch (const CLI::ExtrasError& error) {
    see_path();
    const std::vector<std::string> extras = app.remaining(true);
    line.status = extras.empty() ? absl::InvalidArgumentError(error.what())
                                 : DescribeExtra(line.path, extras.front());
    return line;
  } catch (const CLI::Error& error) {
    see_path();
    line.status = absl::InvalidArgumentError(InWords(line.path) + DescribeError(error));
    return line;
  }
  const std::vector<const CLI::App*> apps = NamedApps(app);
  for (const CLI::App* one : apps) Fill(bindings.at(one), variable, line.arguments);
  if (line.arguments.Has("help") || line.arguments.Has("version")) return line;
  line.status = CheckPresent(line.path, line.arguments);
  // The root's own are taken, even where the verb has another of that name.
  Arguments of_root;
  Fill(bindings.at(&app), variable, of_root);
  line.timeout = of_root.Duration("timeout");
  if (line.status.ok()) line.status = base::Annotate(Check({&root}, of_root), "options");
  return line;
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return kExitUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitNoServer;
    case absl::StatusCode::kNotFound:
      return kExitNoSuchThing;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kExitRefused;
    default:
      return kExitFailed;
  }
}

std::string ProgramOf(std::string_view started_as) {
  const size_t slash = started_as.rfind('/');
  const std::string_view name =
      slash == std::string_view::npos ? started_as : started_as.substr(slash + 1);
  return name == "kubectl-spoke" ? "kubectl spoke" : "spokectl";
}

int Run(const std::vector<std::string>& words, const World& world) {
  Command root = CommandTree();
  root.name = world.program;
  if (!words.empty() && words[0] == "__complete") {
    return RunComplete(root, {words.begin() + 1, words.end()}, world);
  }
  if (!words.empty() && words[0] == "help") {
    std::vector<std::string> rest(words.begin() + 1, words.end());
    rest.emplace_back("--help");
    return RunLine(root, rest, world);
  }
  return RunLine(root, words, world);
}

}  // namespace spoke::ctl
