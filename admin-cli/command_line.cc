#include "admin-cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "admin-cli/help_text.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

struct Bound {
  const Command* command = nullptr;
  std::vector<std::pair<Parameter, CLI::Option*>> options;
};
using Bindings = std::map<const CLI::App*, Bound>;

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
  for (const Command& one : command.commands) Bind(one, *app.add_subcommand(one.name), bindings);
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
  return absl::InvalidArgumentError(
      fmt::format("{}there is no command \"{}\"{}", InWords(path), word, Suggest(word, names)));
}

// Fills in what the words gave, then the environment, then the fallback.
void Fill(const Bound& bound, const std::function<std::string(const std::string&)>& variable,
          Arguments& arguments) {
  for (const auto& [parameter, option] : bound.options) {
    if (option->count() > 0) {
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
  return base::Annotate(Check(path, arguments), path.size() > 1 ? WordsOf(path) : "options");
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
    // The words are as CLI11 wants them.
    std::vector<std::string> reversed(words.rbegin(), words.rend());
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
    line.status = absl::InvalidArgumentError(InWords(line.path) + error.what());
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

}  // namespace spoke::ctl
