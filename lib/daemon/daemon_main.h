// What every daemon of ours does before its own work begins: command line, configuration file, log,
// exit codes.
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
inline constexpr int kExitUsage = 2;  // Wrong command line or configuration: nothing was touched.

// Something the program can say of itself, without a configuration.
struct Statement {
  std::string option;  // "--claims"
  std::string help;
  std::function<std::string()> table;  // For people.
  std::function<std::string()> json;   // With -o json.
};

// What a command was asked with.
struct CommandRequest {
  std::string word;             // Of its own words.
  std::set<std::string> flags;  // Those of its own that were given.
  bool json = false;            // -o json.
};

// Something the program does instead of its work, with its configuration.
struct Command {
  struct Flag {
    std::string option;  // "--with-pods"; an error without the command.
    std::string help;
  };
  std::string option;  // "--cleanup"
  std::string help;
  std::vector<std::string> words = {};  // The option takes one of these; none: it takes nothing.
  std::vector<Flag> flags = {};
  // Given the text and name of the configuration file; returns the exit code. See WithConfig().
  std::function<int(std::string_view text, const std::string& file, const CommandRequest& request)>
      run;
};

struct CommandLine {
  std::string about;          // One sentence, for --help.
  std::string config_path;    // In: the default; out: what --config says.
  bool check_config = false;  // Out: check the file and do nothing else.
  std::vector<Statement> statements = {};
  std::vector<Command> commands = {};
  const Command* asked = nullptr;  // Out: the one of `commands` that is asked for.
  CommandRequest request = {};     // Out: how.
};

// Parses --config, --check-config, --help, --version, and the options of statements and commands,
// and prints what help, version and statements ask for. True: go on; false: end with `exit_code`.
bool ParseCommandLine(int argc, char** argv, CommandLine& line, int& exit_code);

// What systemd's LimitCORE=0 and NoNewPrivileges=yes do, for where there is no unit. Nothing of
// this process's memory, in which there are private keys, becomes a file or is another process's to
// read, unless that has CAP_SYS_PTRACE: no core dump, also none that is piped to a program. What it
// executes gains no privileges and has no core dumps either. Where the kernel refuses, it stays as
// it was. A second call changes nothing.
void ProtectProcess();

// Calls `body` and makes what it throws, which nothing is meant to, a failure with a message.
int Guarded(const std::function<int()>& body);

// A command's `run` that parses the configuration with `parse` and goes on with `run(config,
// request)`; a configuration that is wrong is usage that is wrong.
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

// `parse` is text and file name to absl::StatusOr<Config>, and Config has a bool `debug`; `serve`
// works until a signal, and returns why it could not. Returns the exit code.
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
