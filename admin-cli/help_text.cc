#include "admin-cli/help_text.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_join.h"
#include "fmt/core.h"

namespace spoke::ctl {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 2;

using Entries = std::vector<std::pair<std::string, std::string>>;

// Formats two columns, the first `left` wide at least. What is too long for it has a line of its
// own.
std::string FormatEntries(const Entries& entries, size_t left = 0) {
  constexpr size_t kMaxLeft = 30;
  for (const auto& [name, text] : entries) {
    if (name.size() <= kMaxLeft) left = std::max(left, name.size());
  }
  const size_t margin = kIndent + left + 2;
  std::string out;
  for (const auto& [name, text] : entries) {
    const std::string wrapped = Wrap(text, kWidth - margin, margin);
    if (name.size() > left) {
      out += fmt::format("{:{}}{}\n{:{}}{}\n", "", kIndent, name, "", margin, wrapped);
    } else {
      out += fmt::format("{:{}}{:<{}}  {}\n", "", kIndent, name, left, wrapped);
    }
  }
  return out;
}

std::string VerbsOf(const Command& noun) {
  std::vector<std::string> names;
  for (const Command& verb : noun.commands) {
    if (!verb.hidden) names.push_back(verb.name);
  }
  return absl::StrJoin(names, ", ");
}

std::string FormatCommands(const Command& command) {
  std::string out;
  std::vector<std::string> groups;
  size_t left = 0;  // The width is the same in all groups.
  for (const Command& one : command.commands) {
    if (!one.hidden) left = std::max(left, one.name.size());
    if (!one.hidden && std::find(groups.begin(), groups.end(), one.group) == groups.end()) {
      groups.push_back(one.group);
    }
  }
  for (const std::string& group : groups) {
    Entries entries;
    for (const Command& one : command.commands) {
      if (one.hidden || one.group != group) continue;
      entries.emplace_back(one.name, one.commands.empty()
                                         ? one.summary
                                         : fmt::format("{}: {}", one.summary, VerbsOf(one)));
    }
    out += fmt::format("\n{}:\n", group.empty() ? "Verbs" : group) + FormatEntries(entries, left);
  }
  return out;
}

std::string FormatOptions(const std::string& title, const std::vector<Parameter>& options) {
  Entries entries;
  for (const Parameter& option : options) {
    // Those without a short form stand under the long forms of the others.
    const std::string margin = option.letter == 0 && !title.starts_with("Arg") ? "    " : "";
    entries.emplace_back(margin + OptionWords(option), OptionHelp(option));
  }
  return entries.empty() ? "" : fmt::format("\n{}:\n", title) + FormatEntries(entries);
}

// Returns text as roff shows it as it is: "-" stays an ASCII minus, so that options can be copied
// out of the page, and no line begins with a control character.
std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += fmt::format("\\&{}", c);
    } else {
      out += c;
    }
  }
  return out;
}

// Returns the paragraphs apart, and lines that begin with a blank as they are.
std::string Paragraphs(std::string_view text) {
  std::string out;
  bool as_is = false;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    const bool indented = !line.empty() && line[0] == ' ';
    if (indented != as_is) {
      out += indented ? ".PP\n.nf\n" : ".fi\n";
      as_is = indented;
    }
    out += line.empty() ? ".PP\n" : Escape(line) + "\n";
    start = end + 1;
  }
  if (as_is) out += ".fi\n";
  return out;
}

std::string Entry(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}", Escape(term), Paragraphs(text));
}

std::string Parameters(const Command& command) {
  std::string out;
  for (const Parameter& positional : command.positionals) {
    out += Entry(positional.value, OptionHelp(positional));
  }
  for (const Parameter& option : OptionsOf(command)) {
    if (option.name != "help") out += Entry(OptionWords(option), OptionHelp(option));
  }
  return out;
}

std::string Examples(const Command& command) {
  std::string out = ".PP\n.nf\n.RS 4\n";
  for (const std::string& example : command.examples) out += Escape(example) + "\n";
  return out + ".RE\n.fi\n";
}

// Returns a verb as a part of its noun's page.
std::string VerbPart(const CommandPath& path) {
  const Command& command = *path.back();
  std::string out = fmt::format(".SS {}\n", Escape(UsageLine(path)));
  out += Paragraphs(AboutText(path)) + Parameters(command);
  if (!command.examples.empty()) out += ".PP\nExamples:\n" + Examples(command);
  if (!command.exit_codes.empty()) out += ".PP\n" + Paragraphs("Exit codes: " + command.exit_codes);
  return out;
}

std::string CommandEntries(const CommandPath& path) {
  std::string out;
  for (const Command& command : path.back()->commands) {
    if (!command.hidden) out += Entry(command.name, command.summary + ".");
  }
  return out;
}

std::string SeeAlso(const CommandPath& path) {
  std::vector<std::string> pages;
  if (path.size() > 1) pages.push_back(fmt::format("\\fB{}\\fR(1)", Escape(path.front()->name)));
  for (const Command& command : path.front()->commands) {
    if (command.hidden || (path.size() > 1 && &command == path[1])) continue;
    pages.push_back(fmt::format("\\fB{}\\fR(1)", Escape(path.front()->name + "-" + command.name)));
  }
  return ".SH SEE ALSO\n" + absl::StrJoin(pages, ",\n") + "\n";
}

std::string Title(const CommandPath& path) {
  return path.size() == 1 ? path.front()->name
                          : fmt::format("{}-{}", path.front()->name, path[1]->name);
}

}  // namespace

std::string Wrap(std::string_view text, size_t width, size_t margin) {
  std::string out;
  size_t column = 0;
  while (!text.empty()) {
    if (text[0] == '\n') {
      out += '\n';
      text.remove_prefix(1);
      // An empty line stays empty.
      if (!text.empty() && text[0] != '\n') out.append(margin, ' ');
      column = 0;
      continue;
    }
    if (text[0] == ' ' && column > 0) {
      text.remove_prefix(1);
      continue;
    }
    const size_t start = text.find_first_not_of(' ');  // Indented lines stay indented.
    const size_t end = text.find_first_of(" \n", start == std::string_view::npos ? 0 : start);
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(word.size());
    if (column > 0 && column + 1 + word.size() > width) {
      out += '\n';
      out.append(margin, ' ');
      column = 0;
    }
    if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

const std::vector<Parameter>& WatchOptions() {
  static const std::vector<Parameter> options = {
      {.name = "watch", .help = "Again and again, until interrupted", .letter = 'w'},
      {.name = "interval",
       .value = "TIME",
       .help = "How long between two looks of --watch",
       .values = Values::kDuration,
       .fallback = "2s"}};
  return options;
}

std::vector<Parameter> OptionsOf(const Command& command) {
  std::vector<Parameter> options = command.options;
  if (command.watchable) {
    options.insert(options.end(), WatchOptions().begin(), WatchOptions().end());
  }
  options.push_back({.name = "help", .help = "This text", .letter = 'h'});
  return options;
}

std::string OptionWords(const Parameter& option) {
  std::string words = option.letter == 0 ? "" : fmt::format("-{}, ", option.letter);
  words += "--" + option.name;
  if (!option.value.empty()) words += " " + option.value;
  return words;
}

std::string OptionHelp(const Parameter& parameter) {
  std::string help = parameter.help;
  if (!parameter.choices.empty()) help += ": " + absl::StrJoin(parameter.choices, ", ");
  std::vector<std::string> notes;
  if (!parameter.fallback.empty()) notes.push_back("default " + parameter.fallback);
  if (!parameter.variable.empty()) notes.push_back("or the variable " + parameter.variable);
  if (parameter.required) notes.emplace_back("required");
  if (parameter.repeated) notes.emplace_back("may be given several times");
  if (!notes.empty()) help += " (" + absl::StrJoin(notes, "; ") + ")";
  return help;
}

std::string AboutText(const CommandPath& path) {
  const Command& command = *path.back();
  if (path.size() == 1) return command.description;  // The root's summary is for manual pages.
  if (command.description.empty()) return command.summary + ".";
  return command.summary + ".\n\n" + command.description;
}

std::string UsageLine(const CommandPath& path) {
  const Command& command = *path.back();
  std::string line = path.front()->name;
  if (path.size() > 1) line += " " + WordsOf(path);
  if (!command.commands.empty()) return line + " COMMAND";
  if (!OptionsOf(command).empty()) line += " [OPTION]...";
  for (const Parameter& positional : command.positionals) {
    const std::string more = positional.repeated ? "..." : "";
    line += positional.required ? fmt::format(" {}{}", positional.value, more)
                                : fmt::format(" [{}]{}", positional.value, more);
  }
  return line;
}

std::string HelpText(const CommandPath& path) {
  const Command& command = *path.back();
  const bool is_root = path.size() == 1;
  std::string out = fmt::format("Usage: {}\n\n", UsageLine(path));
  out += Wrap(AboutText(path), kWidth, 0) + "\n";
  out += FormatCommands(command);
  std::vector<Parameter> positionals;
  Entries entries;
  for (const Parameter& positional : command.positionals) {
    Parameter shown = positional;
    shown.required = false;  // The usage line says so.
    entries.emplace_back(positional.value, OptionHelp(shown));
  }
  if (!entries.empty()) out += "\nArguments:\n" + FormatEntries(entries);
  if (is_root) {
    out += FormatOptions("Options of every command", OptionsOf(command));
  } else if (command.commands.empty()) {
    out += FormatOptions("Options", OptionsOf(command));
  }
  if (!command.examples.empty()) {
    out += "\nExamples:\n";
    for (const std::string& example : command.examples) out += "  " + example + "\n";
  }
  if (!command.exit_codes.empty()) {
    out += "\n" + Wrap("Exit codes: " + command.exit_codes, kWidth, 0) + "\n";
  }
  if (!is_root && command.commands.empty()) {
    out += fmt::format("\nOptions of every command (-o, --server, ...): {} --help\n",
                       path.front()->name);
  } else if (!command.commands.empty()) {
    out += fmt::format("\nMore about one: {} COMMAND --help\n",
                       is_root ? path.front()->name : path.front()->name + " " + WordsOf(path));
  }
  return out;
}

std::string ManualPageName(const CommandPath& path) { return Title(path) + ".1"; }

std::string ManualPage(const CommandPath& path, const std::string& version) {
  const Command& command = *path.back();
  std::string upper = Title(path);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string out = fmt::format(".TH \"{}\" \"1\" \"\" \"Spoke {}\" \"Spoke\"\n.nh\n.ad l\n", upper,
                                Escape(version));
  out += fmt::format(".SH NAME\n{} \\- {}\n", Escape(Title(path)), Escape(command.summary));
  out += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR\n", Escape(UsageLine(path)));
  out += ".SH DESCRIPTION\n" + Paragraphs(AboutText(path));
  if (path.size() == 1) {
    out += ".SH COMMANDS\n" + CommandEntries(path) + ".SH OPTIONS\n" + Parameters(command);
    out += ".SH EXIT STATUS\n" + Paragraphs(command.exit_codes);
    out += ".SH EXAMPLES\n" + Examples(command);
    return out + SeeAlso(path);
  }
  if (!command.commands.empty()) {
    out += ".SH COMMANDS\n";
    for (const Command& verb : command.commands) {
      if (!verb.hidden) out += VerbPart({path[0], path[1], &verb});
    }
  } else {
    const std::string parameters = Parameters(command);
    if (!parameters.empty()) out += ".SH OPTIONS\n" + parameters;
    if (!command.examples.empty()) out += ".SH EXAMPLES\n" + Examples(command);
  }
  out += ".SH EXIT STATUS\n" + Paragraphs(command.exit_codes.empty() || !command.commands.empty()
                                              ? path.front()->exit_codes
                                              : command.exit_codes);
  return out + SeeAlso(path);
}

}  // namespace spoke::ctl
