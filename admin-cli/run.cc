#include "admin-cli/run.h"

#include <utility>

#include "admin-cli/command_line.h"
#include "admin-cli/help_text.h"
#include "admin-cli/shell.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version.h"

namespace spoke::ctl {
namespace {

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

int CodeFor(const Command& command, const absl::Status& status) {
  const int code = ExitCodeOf(status);
  if (command.failure_code_for_all) return command.failure_code;
  return code == kExitFailed && command.failure_code != 0 ? command.failure_code : code;
}

// Runs the verb once. Its output is held back, so that it appears whole.
int RunOnce(const Command& command, Session& session, const World& world, std::string_view before) {
  HeldConsole held(world.console);
  const World inner{held, world.clock, world.wait, world.variable};
  Session once(session.root, session.arguments, inner, session.client);
  once.format = session.format;
  once.header = session.header;
  once.colours = session.colours;
  const auto code = command.run(once);
  if (!held.held().empty() || !before.empty()) {
    world.console.Out(std::string(before) + held.held());
  }
  if (code.ok()) return *code;
  PrintError(code.status(), world.console);
  return CodeFor(command, code.status());
}

// Runs the verb again and again. A server that is away for a while does not end it: whoever watches
// wants to see when it is back.
int Watch(const Command& command, Session& session, const World& world) {
  constexpr std::string_view kClear = "\x1b[H\x1b[2J\x1b[3J";
  const absl::Duration interval = session.arguments.Duration("interval");
  const bool redraw = world.console.out_is_terminal() && session.is_table();
  std::string_view before;
  while (true) {
    if (redraw) before = kClear;
    const int code = RunOnce(command, session, world, before);
    if (code != kExitDone && code != kExitNoServer) return code;
    if (!world.console.written().ok()) return kExitFailed;
    if (!world.wait(interval)) return code;
    if (session.format == Format::kYaml) {
      before = "---\n";
    } else if (session.is_table()) {
      before = "\n";
    }
  }
}

int RunVerb(const Command& command, Session& session, const World& world) {
  // The output is held back except for what waits or watches on its own.
  if (command.watchable && session.arguments.Has("watch")) return Watch(command, session, world);
  const auto code = command.run(session);
  if (!code.ok()) {
    PrintError(code.status(), world.console);
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
  const Client client(line.arguments.Text("server"), line.timeout);
  Session session(root, line.arguments, world, client);
  session.format = FormatOf(line.arguments.Text("output"));
  session.header = !line.arguments.Has("no-headers");
  session.colours = WantsColours(line.arguments, world);
  return RunVerb(command, session, world);
}

}  // namespace

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
      return kExitRefused;
    default:
      return kExitFailed;
  }
}

int Run(const std::vector<std::string>& words, const World& world) {
  const Command root = CommandTree();
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
