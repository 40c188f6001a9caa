#include "admin-cli/completion.h"

#include <algorithm>

#include "admin-cli/help_text.h"
#include "fmt/core.h"

namespace spoke::ctl {
namespace {

// Joins what the line before the cursor says, word by word as the shell would except for quotes,
// and strips from each answer what bash takes for an earlier word: it breaks words at "=" and ":".
constexpr std::string_view kBash = R"(# bash completion for spokectl
# Into /usr/share/bash-completion/completions/spokectl, or: source <(spokectl completion bash)
_spokectl() {
  local line=${COMP_LINE:0:COMP_POINT} words current before answer directive
  read -ra words <<<"$line"
  if [[ -z $line || $line == *[[:space:]] ]]; then words+=(''); fi
  current=${words[${#words[@]} - 1]}
  before=${current%"${current##*[=:]}"}
  directive=
  COMPREPLY=()
  while IFS= read -r answer; do
    if [[ $answer == :* ]]; then
      directive=$answer
    else
      answer=${answer%%$'\t'*}
      COMPREPLY+=("${answer#"$before"}")
    fi
  done < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
  if [[ $directive == :files && ${#COMPREPLY[@]} -eq 0 ]]; then
    compopt -o default 2>/dev/null || true
  elif [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null || true
  fi
}
complete -F _spokectl spokectl
)";

constexpr std::string_view kZsh = R"(#compdef spokectl
# zsh completion for spokectl
# Into a folder of $fpath as _spokectl, or: source <(spokectl completion zsh)
_spokectl() {
  local -a answers candidates
  local answer directive word about
  answers=("${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for answer in "${answers[@]}"; do
    if [[ $answer == :* ]]; then
      directive=$answer
    elif [[ -n $answer ]]; then
      word=${answer%%$'\t'*}
      about=
      if [[ $answer == *$'\t'* ]]; then about=${answer#*$'\t'}; fi
      candidates+=("${word//:/\\:}${about:+:$about}")
    fi
  done
  if [[ $directive == :files && ${#candidates} -eq 0 ]]; then
    _files
  else
    _describe -V 'spokectl' candidates
  fi
}
if [[ ${funcstack[1]} == _spokectl ]]; then
  _spokectl "$@"
else
  compdef _spokectl spokectl
fi
)";

constexpr std::string_view kFish = R"(# fish completion for spokectl
# Into ~/.config/fish/completions/spokectl.fish, or: spokectl completion fish | source
function __spokectl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l answers ($program __complete -- $words "$current" 2>/dev/null)
    set -l candidates (string match -v -r '^:' -- $answers)
    if contains -- ':files' $answers; and test (count $candidates) -eq 0
        __fish_complete_path "$current"
    else
        printf '%s\n' $candidates
    end
end
complete -c spokectl -f -a '(__spokectl_complete)'
)";

bool BeginsWith(std::string_view word, std::string_view prefix) {
  return word.substr(0, prefix.size()) == prefix;
}

// The place to which the words before the last one lead.
struct Position {
  CommandPath path;
  const Parameter* pending = nullptr;  // An option that wants the next word.
  std::vector<std::string> positionals;
  bool only_positionals = false;  // Whether it is behind "--".
  bool lost = false;              // Whether a word means nothing here.
};

std::vector<Parameter> AllOptions(const CommandPath& path) {
  std::vector<Parameter> all;
  for (auto command = path.rbegin(); command != path.rend(); ++command) {
    for (const Parameter& option : OptionsOf(**command)) {
      bool known = false;
      for (const Parameter& other : all) known = known || other.name == option.name;
      if (!known) all.push_back(option);
    }
  }
  return all;
}

const Parameter* FindIn(const std::vector<Parameter>& options, std::string_view name) {
  for (const Parameter& option : options) {
    if (option.name == name || (name.size() == 1 && option.letter == name[0])) return &option;
  }
  return nullptr;
}

void Take(const std::string& word, const std::vector<Parameter>& options, Position& at) {
  if (at.pending != nullptr) {
    at.pending = nullptr;
    return;
  }
  if (!at.only_positionals && word == "--") {
    at.only_positionals = true;
    return;
  }
  if (!at.only_positionals && word.size() > 1 && word[0] == '-') {
    const bool is_long = word[1] == '-';
    if (word.find('=') != std::string::npos || (!is_long && word.size() > 2)) return;
    at.pending = FindIn(options, word.substr(is_long ? 2 : 1));
    if (at.pending != nullptr && at.pending->value.empty()) at.pending = nullptr;
    return;
  }
  if (const Command* command = at.path.back()->Find(word);
      command != nullptr && !at.only_positionals) {
    at.path.push_back(command);
  } else {
    at.positionals.push_back(word);
    at.lost = at.lost || !at.path.back()->commands.empty();
  }
}

void CompleteValue(const Parameter& parameter, std::string_view prefix, Completion& completion) {
  completion.prefix = prefix;
  for (const std::string& choice : parameter.choices) {
    if (BeginsWith(choice, prefix)) {
      completion.candidates.push_back({completion.before + choice, ""});
    }
  }
  completion.values = parameter.values;
}

}  // namespace

Completion Complete(const Command& root, const std::vector<std::string>& words) {
  Completion completion;
  Position at{.path = {&root}};
  const std::string last = words.empty() ? "" : words.back();
  std::vector<Parameter> options = AllOptions(at.path);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const size_t depth = at.path.size();
    Take(words[i], options, at);
    if (at.path.size() != depth) options = AllOptions(at.path);
  }
  if (at.lost) return completion;
  if (!at.positionals.empty()) completion.context = at.positionals.back();
  if (at.pending != nullptr) {
    CompleteValue(*at.pending, last, completion);
    return completion;
  }
  if (!at.only_positionals && BeginsWith(last, "-")) {
    const size_t equals = last.find('=');
    if (equals != std::string::npos && BeginsWith(last, "--")) {
      const Parameter* option = FindIn(options, last.substr(2, equals - 2));
      if (option == nullptr || option->value.empty()) return completion;
      completion.before = last.substr(0, equals + 1);
      CompleteValue(*option, std::string_view(last).substr(equals + 1), completion);
      return completion;
    }
    for (const Parameter& option : options) {
      const std::string word = "--" + option.name;
      if (BeginsWith(word, last)) completion.candidates.push_back({word, option.help});
    }
    return completion;
  }
  const Command& command = *at.path.back();
  for (const Command& one : command.commands) {
    if (!one.hidden && BeginsWith(one.name, last)) {
      completion.candidates.push_back({one.name, one.summary});
    }
  }
  const std::vector<Parameter>& positionals = command.positionals;
  if (positionals.empty()) return completion;
  if (at.positionals.size() >= positionals.size() && !positionals.back().repeated) {
    return completion;
  }
  CompleteValue(positionals[std::min(at.positionals.size(), positionals.size() - 1)], last,
                completion);
  return completion;
}

std::string FormatCompletion(const std::vector<Candidate>& candidates, bool files) {
  std::string out;
  for (const Candidate& candidate : candidates) {
    out += candidate.word;
    if (!candidate.about.empty()) out += "\t" + candidate.about;
    out += "\n";
  }
  return out + (files ? ":files\n" : ":\n");
}

absl::StatusOr<std::string> CompletionScript(std::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return absl::InvalidArgumentError(fmt::format(
      "there is no completion for the shell \"{}\"; there is for bash, zsh and fish", shell));
}

}  // namespace spoke::ctl
