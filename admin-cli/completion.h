// Shell completion, which is what may stand where the cursor is, and the scripts that ask. Pure.
//
// The scripts know nothing of the commands: they call the hidden verb `spokectl __complete`, so
// that they fit whatever spokectl is installed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "admin-cli/command.h"

namespace spoke::ctl {

struct Candidate {
  std::string word;
  std::string about;  // May be empty; zsh and fish show it.
};

struct Completion {
  // The candidates that begin with the last word, in the order of the help.
  std::vector<Candidate> candidates;
  // The kind of names to be asked of the server or of the file system as well; kText: nothing.
  Values values = Values::kText;
  std::string prefix;   // The part of the value that has been typed.
  std::string before;   // The text before the value in the same word ("--node=").
  std::string context;  // The positional before, for kObject (the kind) and kExplained.
};

// `words` are those behind "spokectl", the last one being completed and perhaps empty.
Completion Complete(const Command& root, const std::vector<std::string>& words);

// Returns what `__complete` prints: a candidate a line, with a tab and what it is about; the last
// line is ":files" when file names are to be completed besides, ":" when not.
std::string FormatCompletion(const std::vector<Candidate>& candidates, bool files);

// Returns the script for "bash", "zsh" or "fish". Errors: kInvalidArgument (another shell).
absl::StatusOr<std::string> CompletionScript(std::string_view shell);

}  // namespace spoke::ctl
