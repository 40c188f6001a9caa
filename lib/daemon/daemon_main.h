// What every daemon of ours does before its own work begins: command line, configuration file, log,
// exit codes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/telemetry/log.h"

namespace spoke::daemon {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;  // Wrong command line or configuration: nothing was touched.

// Something the program can say of itself, without a configuration.
struct Statement {
  std::string option;  // "--claims"
  std::string help;
  std::function<std::string()> table;  // For people.
  std::function<std::string()> json;   // With -o json.
};

// An option by which the program does something else than serve.
struct CommandOption {
  std::string option;  // "--probe"
  std::string help;
  std::vector<std::string> words = {};  // It takes one of these; none: it takes nothing.
};

// What was asked for by such an option.
struct Asked {
  std::string word = {};  // Of the option's words.
  bool json = false;      // -o json, which there is with statements only.
};

// What the program does with its configuration in place of serving; beside a program that serves,
// often. Returns the exit code, and prints what is to be said.
template <typename Config>
struct Command {
  CommandOption option;
  std::function<int(const Config&, const Asked&)> run;
};

struct CommandLine {
  std::string about;          // One sentence, for --help.
  std::string config_path;    // In: the default; out: what --config says.
  bool check_config = false;  // Out: check the file and do nothing else.
  std::vector<Statement> statements = {};
  std::vector<CommandOption> commands = {};  // In, by Main().
  std::optional<size_t> command = {};        // Out: which of them; the others wait.
  Asked asked = {};                          // Out: of that one.
};

// What is the program's own.
template <typename Config>
struct Program {
  // `text` is the file's, `file` its name. Config has a bool `debug`.
  std::function<absl::StatusOr<Config>(std::string_view text, const std::string& file)> parse;
  // Works until a signal, and returns why it could not.
  std::function<absl::Status(const Config&, telemetry::Log&)> serve;
  std::vector<Command<Config>> commands = {};
};

// Parses --config, --check-config, --help, --version and the options of statements and commands,
// and prints what help, version and statements ask for. True: go on; false: end with `exit_code`.
bool ParseCommandLine(int argc, char** argv, CommandLine& line, int& exit_code);

// Calls `body` and makes what it throws, which nothing is meant to, a failure with a message.
int Guarded(const std::function<int()>& body);

// Does what the command line says. Returns the exit code.
template <typename Config>
int Main(int argc, char** argv, CommandLine line, const Program<Config>& program) {
  return Guarded([&] {
    for (const Command<Config>& command : program.commands) {
      line.commands.push_back(command.option);
    }
    int exit_code = 0;
    if (!ParseCommandLine(argc, argv, line, exit_code)) return exit_code;
    const auto text = os::ReadFile(line.config_path);
    if (!text.ok()) {
      fmt::print(stderr, "{}\n", base::MessageOf(text.status()));
      return kExitUsage;
    }
    const auto config = program.parse(std::string_view(*text), line.config_path);
    if (!config.ok()) {
      fmt::print(stderr, "{}\n", base::MessageOf(config.status()));
      return kExitUsage;
    }
    if (line.check_config) {
      fmt::print("{}: OK\n", line.config_path);
      return 0;
    }
    if (line.command) return program.commands[*line.command].run(*config, line.asked);
    const auto log =
        telemetry::NewStderrLog(config->debug ? telemetry::Level::kDebug : telemetry::Level::kInfo);
    const absl::Status status = program.serve(*config, *log);
    if (status.ok()) return 0;
    log->Error("start_failed", {{"error", status}});
    return kExitFailure;
  });
}

}  // namespace spoke::daemon
