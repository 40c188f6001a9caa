#include "admin-cli/manual_page.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_join.h"
#include "admin-cli/help_text.h"
#include "fmt/core.h"

namespace spoke::ctl {
namespace {

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
