// The words, options and help of a verb of spokectl. Pure values; parsing, --help, man pages and
// shell completion are all made from them, so that none can differ from the others.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::ctl {

class Session;

// The kinds of values: how one is checked before the server sees it, and how a shell completes it.
enum class Values {
  kText,
  kNode,
  kPool,
  kAddress,
  kReservation,
  kBudget,
  kBudgetTeam,  // A team of the budget given before it.
  kKind,
  kTrafficClass,
  kObject,  // The name of a policy object of the kind given before it.
  kFile,
  kDirectory,
  kExplained,    // A pod, node or address, as the word before says.
  kCount,        // A number from 1 to 1,000,000.
  kCountOrNone,  // A number from 0 to 1,000,000.
  kVersion,      // A version of all policy objects: 1 or more.
  kDuration,
  kTime,
  kLabel  // A label, KEY=VALUE.
};

// An option or a positional argument.
struct Parameter {
  std::string name;   // The name: "node" is --node. A positional one is shown as `value`.
  std::string value;  // The word for its value in help ("NAME"); empty: a switch.
  std::string help;
  Values values = Values::kText;
  std::vector<std::string> choices;  // The values it may have; empty: anything.
  std::string fallback;              // The value when it is not given; empty: none.
  std::string variable;              // The environment variable that is its value when not given.
  char letter = 0;                   // The letter of the short form.
  bool repeated = false;
  bool required = false;
};

// The values of the command line, by the names of parameters.
class Arguments {
 public:
  void Set(const std::string& name, std::vector<std::string> values);
  // Remembers that the words of the command line have it.
  void SetGiven(const std::string& name) { given_.insert(name); }

  // Returns whether the words have it: neither a variable nor a fallback is its value.
  bool Given(const std::string& name) const { return given_.contains(name); }

  // Returns whether it was given or has a fallback.
  bool Has(const std::string& name) const;
  // Returns the value, the last of several; empty when there is none.
  const std::string& Text(const std::string& name) const;
  const std::vector<std::string>& All(const std::string& name) const;
  // Returns the number of a value that Check() took; 0 when there is none.
  uint32_t Count(const std::string& name) const;
  uint64_t Version(const std::string& name) const;
  absl::Duration Duration(const std::string& name) const;
  // Returns KEY=VALUE pairs as a map.
  std::map<std::string, std::string> Labels(const std::string& name) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::string> given_;
};

// The exit code, or what went wrong.
using Verb = std::function<absl::StatusOr<int>(Session&)>;

struct Command;

// Commands in their order. Copies share one list, which nobody can change: the tree is made of
// values that would otherwise copy all that is below them.
class CommandList {
 public:
  CommandList() = default;
  CommandList(std::initializer_list<Command> commands);
  explicit CommandList(std::vector<Command> commands);

  const Command* begin() const;
  const Command* end() const;
  bool empty() const { return size() == 0; }
  size_t size() const;

 private:
  std::shared_ptr<const std::vector<Command>> commands_;
};

// A verb (with `run`) or a noun (with `commands`).
struct Command {
  std::string name;
  std::string summary;                // The summary: one line, no full stop.
  std::string description;            // The description: paragraphs, an empty line between them.
  std::vector<std::string> examples;  // The examples: whole command lines.
  std::vector<Parameter> positionals;
  std::vector<Parameter> options;
  CommandList commands;
  Verb run;
  std::string group;       // The heading on the first screen; of the root's own commands only.
  std::string exit_codes;  // The exit codes where they differ from the general ones; a sentence.
  // The exit code of a failure where 1 is an answer; 0: the general codes.
  int failure_code = 0;
  bool failure_code_for_all = false;  // Whether every failure exits with it, wrong usage as well.
  bool watchable = false;             // Whether it has --watch and --interval.
  bool hidden = false;

  // Returns the command of that name, or nullptr.
  const Command* Find(std::string_view command) const;
  // Returns the option of that long or one-letter name (without dashes), or nullptr.
  const Parameter* FindOption(std::string_view option) const;
};

// A command with those above it: {root, noun, verb}.
using CommandPath = std::vector<const Command*>;

// Returns "node list"; empty for the root.
std::string WordsOf(const CommandPath& path);

// Checks whether each value of `arguments` is one that its parameter of the command takes. Errors:
// kInvalidArgument, with the parameter, the value, and what it may be.
absl::Status Check(const CommandPath& path, const Arguments& arguments);

// Reads "90", "90s", "5m", "1h30m", "2d", "500ms", "0.5s": seconds when there is no unit. Errors:
// kInvalidArgument (also for zero, negative, endless and more than ten years).
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text);

// The levels of events and of the lines of a log, those that weigh more later.
inline constexpr std::array<std::string_view, 3> kLevels = {"info", "warning", "error"};
// Returns the option --level, which names one of them.
Parameter LevelOption();
// Returns whether `level` is `least`, one of kLevels, or above. A level that is not known here is:
// it is shown rather than lost.
bool IsOfLevel(std::string_view level, std::string_view least);

// Reads RFC 3339 ("2024-05-01T12:00:00Z"), or how long before `now` ("2h"). Errors:
// kInvalidArgument.
absl::StatusOr<absl::Time> ParseTime(std::string_view text, absl::Time now);

// Returns what `word` may have been meant as: the candidate within two typing mistakes, or
// within one in a word of up to five letters; empty: none.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace spoke::ctl
