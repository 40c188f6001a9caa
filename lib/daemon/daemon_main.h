// What every daemon of ours does before its own work begins: command line, configuration file, log,
// exit codes.
#pragma once

#include <functional>
#include <memory>
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

struct CommandLine {
  std::string about;          // One sentence, for --help.
  std::string config_path;    // In: the default; out: what --config says.
  bool check_config = false;  // Out: check the file and do nothing else.
  std::vector<Statement> statements = {};
};

// Parses --config, --check-config, --help, --version and the statements' options, and prints what
// the last three ask for. True: go on; false: end with `exit_code`.
bool ParseCommandLine(int argc, char** argv, CommandLine& line, int& exit_code);

// Calls `body` and makes what it throws, which nothing is meant to, a failure with a message.
int Guarded(const std::function<int()>& body);

// `parse` is text and file name to absl::StatusOr<Config>, and Config has a bool `debug`; `serve`
// works until a signal, and returns why it could not. Returns the exit code.
template <typename Parse, typename Serve>
int Main(int argc, char** argv, CommandLine line, const Parse& parse, const Serve& serve) {
  return Guarded([&] {
    int exit_code = 0;
    if (!ParseCommandLine(argc, argv, line, exit_code)) return exit_code;
    const auto text = os::ReadFile(line.config_path);
    if (!text.ok()) {
      fmt::print(stderr, "{}\n", base::MessageOf(text.status()));
      return kExitUsage;
    }
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
