// The texts of --help: the first screen, and a page for each noun and verb. Pure.
#pragma once

#include <string>
#include <string_view>

#include "admin-cli/command.h"

namespace spoke::ctl {

// Returns the help of the last command of `path`, at most 100 columns wide.
std::string HelpText(const CommandPath& path);

// Returns "spokectl node drain [OPTION]... NODE...".
std::string UsageLine(const CommandPath& path);

// Says what it does: the summary as a sentence, and the description.
std::string AboutText(const CommandPath& path);

// Returns "-f, --file FILE"; "FILE" for a positional one.
std::string OptionWords(const Parameter& option);

// Returns the help of a parameter with its choices, its default, its variable and whether it
// repeats.
std::string OptionHelp(const Parameter& parameter);

// Returns --watch and --interval, which watchable commands have besides their own.
const std::vector<Parameter>& WatchOptions();

// Returns the options of the command itself, --watch and --interval among them, and --help.
std::vector<Parameter> OptionsOf(const Command& command);

// Returns `text` in lines of at most `width` columns, each except the first behind `margin` blanks.
// Line breaks in it stay; a word that is longer than a line has a line of its own.
std::string Wrap(std::string_view text, size_t width, size_t margin);

// Manual pages in man(7)'s language.

// Returns "spokectl.1" for the root, "spokectl-node.1" for a command of its.
std::string ManualPageName(const CommandPath& path);

// Returns the page of the root ({root}), or of one of its commands ({root, command}) with all its
// verbs. `version` stands at the foot; there is no date, so that equal programs have equal pages.
std::string ManualPage(const CommandPath& path, const std::string& version);

}  // namespace spoke::ctl
