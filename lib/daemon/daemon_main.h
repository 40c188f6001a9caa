// Does what every daemon of ours does before its own work begins: command line, configuration file,
// log, exit codes.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/telemetry/log.h"

namespace spoke::daemon {

inline constexpr int kExitFailure = 1;
// The code for a wrong command line or configuration: nothing was touched.
inline constexpr int kExitUsage = 2;

// Something the program can say of itself, without a configuration.
struct Statement {
  std::string option;  // The option, such as "--claims".
  std::string help;
  std::function<std::string()> table;  // Returns the text for people.
  std::function<std::string()> json;   // Returns the text for -o json.
};

// The words that were given with a command.
struct CommandRequest {
  std::string word;             // The one of the command's own words that was given.
  std::set<std::string> flags;  // The command's own flags that were given.
  bool json = false;            // Whether -o json was given.
};

// Something the program does instead of its work, with its configuration.
struct Command {
  struct Flag {
    std::string option;  // A flag such as "--with-pods"; it is an error without the command.
    std::string help;
  };
  std::string option;  // The option that asks for the command, such as "--cleanup".
  std::string help;
  // The words of which the option takes one; none: it takes nothing.
  std::vector<std::string> words = {};
  std::vector<Flag> flags = {};
  // Does the work, given the text and name of the configuration file; returns the exit code. See
  // WithConfig().
  std::function<int(std::string_view text, const std::string& file, const CommandRequest& request)>
      run;
};

struct CommandLine {
  std::string about;          // The sentence for --help.
  std::string config_path;    // In: the default path; out: what --config says.
  bool check_config = false;  // Out: check the file and do nothing else.
  // Judges a configuration for --check-config, on whatever machine that is; empty: `parse` of
  // Main() does.
  std::function<absl::Status(std::string_view text, const std::string& file)> check = {};
  std::vector<Statement> statements = {};
  std::vector<Command> commands = {};
  const Command* asked = nullptr;  // Out: the one of `commands` that is asked for.
  CommandRequest request = {};     // Out: what was given with the command.
};

// Parses --config, --check-config, --help, --version, and the options of statements and commands,
// and prints what help, version and statements ask for. Returns true to go on, and false to end
// with `exit_code`.
bool ParseCommandLine(int argc, char** argv, CommandLine& line, int& exit_code);

// Stands in for os::CheckDirectory() where a configuration is checked and not used: the directories
// that it names may be those of another machine. Takes every path, and says on standard error of
// one that is no directory here that it has to be one there.
absl::Status NoteMissingDirectory(const std::string& path);

// Does what systemd's LimitCORE=0 and NoNewPrivileges=yes do, where there is no unit. Nothing of
// this process's memory, in which there are private keys, becomes a file or is another process's to
// read, unless that has CAP_SYS_PTRACE: no core dump, also none that is piped to a program. What it
// executes gains no privileges and has no core dumps either. Where the kernel refuses, it stays as
// it was. A second call changes nothing.
void ProtectProcess();

// Calls `body` and makes what it throws, which nothing is meant to, a failure with a message.
int Guarded(const std::function<int()>& body);

// Returns a command's `run` that parses the configuration with `parse` and goes on with
// `run(config, request)`; a configuration that is wrong is usage that is wrong.
template <typename Parse, typename Run>
auto WithConfig(Parse parse, Run run) {
  return [parse = std::move(parse), run = std::move(run)](
             std::string_view text, const std::string& file, const CommandRequest& request) -> int {
    const auto config = parse(text, file);
    if (config.ok()) return run(*config, request);
    fmt::print(stderr, "{}\n", base::MessageOf(config.status()));
    return kExitUsage;
  };
}

// Does what --check-config asks for by `line.check`, and returns the exit code.
int CheckConfig(const CommandLine& line, std::string_view text);

// Runs the program. `parse` makes an absl::StatusOr<Config> of text and file name, and Config has a
// bool `debug`; `serve` works until a signal, and returns why it could not. Returns the exit code.
template <typename Parse, typename Serve>
int Main(int argc, char** argv, CommandLine line, const Parse& parse, const Serve& serve) {
  return Guarded([&] {
    int exit_code = 0;
    if (!ParseCommandLine(argc, argv, line, exit_code)) return exit_code;
    ProtectProcess();
    const auto text = os::ReadFile(line.config_path);
    if (!text.ok()) {
      fmt::print(stderr, "{}\n", base::MessageOf(text.status()));
      return kExitUsage;
    }
    if (line.asked != nullptr) return line.asked->run(*text, line.config_path, line.request);
    if (line.check_config && line.check) return CheckConfig(line, *text);
    const auto config = parse(std::string_view(*text), line.config_path);
    if (!config.ok()) {
      fmt::print(stderr, "{}\n", base::MessageOf(config.status()));
      return kExitUsage;
    }
    if (line.check_config) {
      fmt::print("{}: OK\n", line.config_path);
      return 0;
    }
    const auto log =
        telemetry::NewStderrLog(config->debug ? telemetry::Level::kDebug : telemetry::Level::kInfo);
    const absl::Status status = serve(*config, *log);
    if (status.ok()) return 0;
    log->Error("start_failed", {{"error", status}});
    return kExitFailure;
  });
}

}  // namespace spoke::daemon
