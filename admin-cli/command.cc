#include "admin-cli/command.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "admin-cli/help_text.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

constexpr uint32_t kMaxCount = 1'000'000;
constexpr absl::Duration kLongest = absl::Hours(24 * 3653);

absl::StatusOr<uint32_t> ParseCount(std::string_view text, uint32_t least) {
  uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < least ||
      count > kMaxCount) {
    return absl::InvalidArgumentError(
        fmt::format("is not a number from {} to {}", least, kMaxCount));
  }
  return count;
}

absl::StatusOr<uint64_t> ParseVersion(std::string_view text) {
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version == 0) {
    return absl::InvalidArgumentError(
        "is not a version of the policy, as spokectl status shows it");
  }
  return version;
}

absl::Status CheckValue(const Parameter& parameter, const std::string& value) {
  if (!parameter.choices.empty() && std::find(parameter.choices.begin(), parameter.choices.end(),
                                              value) == parameter.choices.end()) {
    return absl::InvalidArgumentError(
        fmt::format("is none of {}", absl::StrJoin(parameter.choices, ", ")));
  }
  switch (parameter.values) {
    case Values::kCount:
      return ParseCount(value, 1).status();
    case Values::kCountOrNone:
      return ParseCount(value, 0).status();
    case Values::kVersion:
      return ParseVersion(value).status();
    case Values::kDuration:
      return ParseDuration(value).status();
    case Values::kTime:
      return ParseTime(value, absl::UnixEpoch()).status();
    case Values::kLabel:
      if (value.find('=') == std::string::npos || value.front() == '=') {
        return absl::InvalidArgumentError("is not KEY=VALUE");
      }
      break;
    case Values::kText:
    case Values::kNode:
    case Values::kPool:
    case Values::kAddress:
    case Values::kReservation:
    case Values::kBudget:
    case Values::kBudgetTeam:
    case Values::kKind:
    case Values::kTrafficClass:
    case Values::kObject:
    case Values::kFile:
    case Values::kDirectory:
    case Values::kExplained:
      break;
  }
  if (value.empty()) return absl::InvalidArgumentError("is empty");
  return absl::OkStatus();
}

}  // namespace

void Arguments::Set(const std::string& name, std::vector<std::string> values) {
  values_[name] = std::move(values);
}

bool Arguments::Has(const std::string& name) const { return !All(name).empty(); }

const std::string& Arguments::Text(const std::string& name) const {
  static const std::string none;
  const std::vector<std::string>& values = All(name);
  return values.empty() ? none : values.back();
}

const std::vector<std::string>& Arguments::All(const std::string& name) const {
  static const std::vector<std::string> none;
  const auto it = values_.find(name);
  return it == values_.end() ? none : it->second;
}

uint32_t Arguments::Count(const std::string& name) const {
  return Has(name) ? ParseCount(Text(name), 0).value_or(0) : 0;
}

uint64_t Arguments::Version(const std::string& name) const {
  return Has(name) ? ParseVersion(Text(name)).value_or(0) : 0;
}

absl::Duration Arguments::Duration(const std::string& name) const {
  return Has(name) ? ParseDuration(Text(name)).value_or(absl::ZeroDuration())
                   : absl::ZeroDuration();
}

std::map<std::string, std::string> Arguments::Labels(const std::string& name) const {
  std::map<std::string, std::string> labels;
  for (const std::string& pair : All(name)) {
    const size_t equals = pair.find('=');
    labels[pair.substr(0, equals)] = equals == std::string::npos ? "" : pair.substr(equals + 1);
  }
  return labels;
}

CommandList::CommandList(std::initializer_list<Command> commands)
    : commands_(std::make_shared<const std::vector<Command>>(commands)) {}

CommandList::CommandList(std::vector<Command> commands)
    : commands_(std::make_shared<const std::vector<Command>>(std::move(commands))) {}

const Command* CommandList::begin() const { return commands_ ? commands_->data() : nullptr; }

const Command* CommandList::end() const { return commands_ ? begin() + size() : nullptr; }

size_t CommandList::size() const { return commands_ ? commands_->size() : 0; }

const Command* Command::Find(std::string_view command) const {
  const Command* it = std::find_if(commands.begin(), commands.end(),
                                   [&](const Command& one) { return one.name == command; });
  return it == commands.end() ? nullptr : it;
}

const Parameter* Command::FindOption(std::string_view option) const {
  const auto it = std::find_if(options.begin(), options.end(), [&](const Parameter& one) {
    return one.name == option || (one.letter != 0 && option.size() == 1 && option[0] == one.letter);
  });
  return it == options.end() ? nullptr : &*it;
}

std::string WordsOf(const CommandPath& path) {
  std::vector<std::string> words;
  for (size_t i = 1; i < path.size(); ++i) words.push_back(path[i]->name);
  return absl::StrJoin(words, " ");
}

absl::Status Check(const CommandPath& path, const Arguments& arguments) {
  const auto check = [&](const Parameter& parameter, const std::string& shown) {
    if (parameter.value.empty()) return absl::OkStatus();  // A switch has no value to check.
    for (const std::string& value : arguments.All(parameter.name)) {
      const absl::Status status = CheckValue(parameter, value);
      if (status.ok()) continue;
      return absl::InvalidArgumentError(
          fmt::format("{}: \"{}\" {}", shown, value, base::MessageOf(status)));
    }
    return absl::OkStatus();
  };
  for (const Parameter& parameter : path.back()->positionals) {
    RETURN_IF_ERROR(check(parameter, parameter.value));
  }
  for (const Command* command : path) {
    for (const Parameter& option : OptionsOf(*command)) {
      RETURN_IF_ERROR(check(option, "--" + option.name));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text) {
  const auto refuse = [&] {
    return absl::InvalidArgumentError("is not a time such as 90s, 500ms, 5m, 1h30m or 2d");
  };
  // Fractions and milliseconds are as Go writes them.
  if (text.find('.') != std::string_view::npos || text.ends_with("ms")) {
    absl::Duration duration;
    const bool is_one = absl::ascii_isdigit(static_cast<unsigned char>(text.front())) &&
                        absl::ParseDuration({text.data(), text.size()}, &duration);
    if (!is_one || duration < absl::Milliseconds(1) || duration > kLongest) return refuse();
    return duration;
  }
  absl::Duration total;
  bool units_given = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || number < 0 || number > absl::ToInt64Seconds(kLongest)) {
      return refuse();
    }
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    const char unit = rest.empty() ? 's' : rest[0];
    // A number without unit stands alone.
    if (rest.empty() && units_given) return refuse();
    if (unit == 's') {
      total += absl::Seconds(number);
    } else if (unit == 'm') {
      total += absl::Minutes(number);
    } else if (unit == 'h') {
      total += absl::Hours(number);
    } else if (unit == 'd') {
      total += absl::Hours(24) * number;
    } else {
      return refuse();
    }
    units_given = true;
    if (!rest.empty()) rest.remove_prefix(1);
  }
  if (total <= absl::ZeroDuration() || total > kLongest) return refuse();
  return total;
}

Parameter LevelOption() {
  return {.name = "level",
          .value = "LEVEL",
          .help = "Only those of this level and above",
          .choices = {kLevels.begin(), kLevels.end()},
          .fallback = std::string(kLevels.front())};
}

bool IsOfLevel(std::string_view level, std::string_view least) {
  const auto* const from = std::find(kLevels.begin(), kLevels.end(), least);
  return std::find(kLevels.begin(), from, level) == from;
}

absl::StatusOr<absl::Time> ParseTime(std::string_view text, absl::Time now) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, {text.data(), text.size()}, &time, &error)) {
    if (time == absl::InfiniteFuture() || time == absl::InfinitePast()) {
      return absl::InvalidArgumentError("is no time that has been");
    }
    return time;
  }
  const auto ago = ParseDuration(text);
  if (ago.ok()) return now - *ago;
  return absl::InvalidArgumentError(
      "is neither a time such as 2024-05-01T12:00:00Z nor how long ago, such as 2h");
}

std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  // Two mistakes in a word of five letters make another word: pods is not logs.
  constexpr size_t kShort = 5;
  std::string best;
  size_t best_distance = word.size() <= kShort ? 2 : 3;  // One more than is allowed.
  for (const std::string& candidate : candidates) {
    // Returns Levenshtein's distance, a row at a time.
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t change = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
      }
    }
    if (row.back() < best_distance && row.back() < std::max(word.size(), size_t{1})) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace spoke::ctl
