#include "lib/daemon/daemon_main.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "lib/base/version.h"

namespace spoke::daemon {
namespace {

// At most one of them may be given, and neither a statement nor --check-config beside it.
void AddCommands(CLI::App& app, const std::vector<const CLI::Option*>& statements,
                 CommandLine& line) {
  std::vector<CLI::Option*> commands;
  for (const Command& command : line.commands) {
    const auto choose = [&line, &command](const std::string& word) {
      line.asked = &command;
      line.request.word = word;
    };
    CLI::Option* const option =
        command.words.empty()
            ? app.add_flag_callback(
                  command.option, [choose] { choose(""); }, command.help)
            : app.add_option_function<std::string>(command.option, choose, command.help)
                  ->check(CLI::IsMember(command.words));
    option->excludes(app.get_option("--check-config"));
    for (const CLI::Option* other : statements) option->excludes(app.get_option(other->get_name()));
    for (CLI::Option* other : commands) option->excludes(other);
    for (const Command::Flag& flag : command.flags) {
      app.add_flag_callback(
             flag.option, [&line, &flag] { line.request.flags.insert(flag.option); }, flag.help)
          ->needs(option);
    }
    commands.push_back(option);
  }
}

}  // namespace

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
  AddCommands(app, asked, line);
  if (!asked.empty() || !line.commands.empty()) {
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
  return true;
}

absl::Status NoteMissingDirectory(const std::string& path) {
  if (const absl::Status found = os::CheckDirectory(path); !found.ok()) {
    fmt::print(stderr, "note: {}; it has to be there where the program runs\n",
               base::MessageOf(found));
  }
  return absl::OkStatus();
}

int CheckConfig(const CommandLine& line, std::string_view text) {
  const absl::Status judged = line.check(text, line.config_path);
  if (!judged.ok()) {
    fmt::print(stderr, "{}\n", base::MessageOf(judged));
    return kExitUsage;
  }
  fmt::print("{}: OK\n", line.config_path);
  return 0;
}

void ProtectProcess() {
  // The limit is for what is executed later: that is dumpable again.
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  [[maybe_unused]] int refused = ::setrlimit(RLIMIT_CORE, &none);
  refused = ::prctl(PR_SET_DUMPABLE, 0);
  refused = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int Guarded(const std::function<int()>& body) {
  // yaml-cpp lets the end of the file close a quote if a line break comes before it, and so makes
  // one long value of all the keys that were meant to follow.
#ifndef SPOKE_FIND_LOCK_CYCLES
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
