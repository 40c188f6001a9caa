#include "lib/daemon/daemon_main.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "absl/synchronization/mutex.h"
#include "lib/base/version.h"

namespace spoke::daemon {

bool ParseCommandLine(int argc, char** argv, CommandLine& line, int& exit_code) {
  CLI::App app(
      fmt::format("{}\n\nExample:\n  {} --config {}\n\n"
                  "Exit status: 0 stopped by a signal, 1 failed, 2 wrong usage or configuration",
                  line.about, argv[0], line.config_path));
  app.add_option("--config", line.config_path, "Configuration file")->capture_default_str();
  app.add_flag("--check-config", line.check_config,
               "Check the configuration file and do nothing else");
  app.set_version_flag("--version", base::kVersion);
  std::string format = "table";
  std::vector<const CLI::Option*> asked;
  for (const Statement& statement : line.statements) {
    asked.push_back(app.add_flag(statement.option, statement.help));
  }
  std::vector<std::vector<const CLI::Option*>> flags(line.commands.size());
  std::vector<CLI::Option*> commands;
  for (size_t i = 0; i < line.commands.size(); ++i) {
    const Command& command = line.commands[i];
    commands.push_back(app.add_flag(command.option, command.help));
    for (const CLI::Option* other : asked)
      commands.back()->excludes(app.get_option(other->get_name()));
    for (size_t j = 0; j < i; ++j) commands.back()->excludes(commands[j]);
    for (const Command::Flag& flag : command.flags) {
      flags[i].push_back(app.add_flag(flag.option, flag.help)->needs(commands.back()));
    }
  }
  if (!asked.empty() || !commands.empty()) {
    app.add_option("-o,--output", format, "How their answers are printed")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kExitUsage;
    return false;
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    if (asked[i]->count() == 0) continue;
    const Statement& statement = line.statements[i];
    const std::string text = format == "json" ? statement.json() : statement.table();
    exit_code = std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? kExitFailure : 0;
    return false;
  }
  line.request.json = format == "json";
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i]->count() == 0) continue;
    line.asked = &line.commands[i];
    for (const CLI::Option* flag : flags[i]) {
      if (flag->count() > 0) line.request.flags.insert(flag->get_name());
    }
  }
  return true;
}

int Guarded(const std::function<int()>& body) {
  // Debian builds abseil with its search for lock cycles on, which costs a server of thousands of
  // streams a fifth of its CPU. Debug builds, and so the tests, keep it.
#ifdef NDEBUG
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  try {
    return body();
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return kExitFailure;
  }
}

}  // namespace spoke::daemon
