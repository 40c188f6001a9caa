#include "admin-cli/node/label_selector.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

using Kind = LabelRequirement::Kind;

constexpr std::string_view kBlanks = " \t";
constexpr size_t kMaxValueBytes = 63;
constexpr size_t kMaxKeyBytes = 253 + 1 + 63;  // A prefix, which is a DNS name, and a name.

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool IsLabelLetter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

bool IsValue(std::string_view text) {
  return text.size() <= kMaxValueBytes && std::all_of(text.begin(), text.end(), IsLabelLetter);
}

bool IsKey(std::string_view text) {
  return !text.empty() && text.size() <= kMaxKeyBytes && text.front() != '/' &&
         text.back() != '/' && std::count(text.begin(), text.end(), '/') <= 1 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c == '/' || IsLabelLetter(c); });
}

absl::Status Refused(std::string_view part) {
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is none of KEY=VALUE, KEY!=VALUE, KEY, !KEY, KEY in (A,B) and KEY notin "
                  "(A,B)",
                  part));
}

// Returns the parts of `text` between the commas that stand in no parentheses.
std::vector<std::string_view> PartsOf(std::string_view text) {
  std::vector<std::string_view> parts;
  bool inside = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == ')') inside = text[i] == '(';
    if (text[i] != ',' || inside) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

absl::StatusOr<LabelRequirement> Checked(LabelRequirement requirement, std::string_view part) {
  const auto& values = requirement.values;
  if (!IsKey(requirement.key) || !std::all_of(values.begin(), values.end(), IsValue)) {
    return Refused(part);
  }
  return requirement;
}

// Reads "KEY in (A,B)", whose words end with `open`, the place of the parenthesis.
absl::StatusOr<LabelRequirement> ParseSet(std::string_view part, size_t open) {
  const std::string_view words = Trimmed(part.substr(0, open));
  const size_t blank = words.find_first_of(kBlanks);
  if (part.back() != ')' || blank == std::string_view::npos) return Refused(part);
  const std::string_view way = Trimmed(words.substr(blank));
  if (way != "in" && way != "notin") return Refused(part);
  LabelRequirement requirement{.key = std::string(words.substr(0, blank)),
                               .kind = way == "in" ? Kind::kIn : Kind::kNotIn};
  const std::string inside(part.substr(open + 1, part.size() - open - 2));
  for (const absl::string_view value : absl::StrSplit(inside, ',')) {
    requirement.values.emplace_back(Trimmed({value.data(), value.size()}));
  }
  return Checked(std::move(requirement), part);
}

absl::StatusOr<LabelRequirement> ParsePart(std::string_view part) {
  part = Trimmed(part);
  if (const size_t open = part.find('('); open != std::string_view::npos) {
    return ParseSet(part, open);
  }
  const size_t equals = part.find('=');
  if (equals == std::string_view::npos) {
    const bool absent = part.starts_with('!');
    return Checked({.key = std::string(Trimmed(part.substr(absent ? 1 : 0))),
                    .kind = absent ? Kind::kAbsent : Kind::kExists},
                   part);
  }
  const bool differs = equals > 0 && part[equals - 1] == '!';
  std::string_view value = part.substr(equals + 1);
  if (!differs && value.starts_with('=')) value.remove_prefix(1);
  return Checked({.key = std::string(Trimmed(part.substr(0, equals - (differs ? 1 : 0)))),
                  .kind = differs ? Kind::kNotIn : Kind::kIn,
                  .values = {std::string(Trimmed(value))}},
                 part);
}

bool Meets(const LabelRequirement& requirement, const std::string* value) {
  const auto& values = requirement.values;
  const bool named =
      value != nullptr && std::find(values.begin(), values.end(), *value) != values.end();
  switch (requirement.kind) {
    case Kind::kIn:
      return named;
    case Kind::kNotIn:
      return !named;
    case Kind::kExists:
      return value != nullptr;
    case Kind::kAbsent:
      return value == nullptr;
  }
  return false;
}

}  // namespace

absl::StatusOr<LabelSelector> ParseLabelSelector(std::string_view text) {
  LabelSelector selector;
  for (const std::string_view part : PartsOf(text)) {
    ASSIGN_OR_RETURN(LabelRequirement requirement, ParsePart(part));
    selector.push_back(std::move(requirement));
  }
  return selector;
}

bool Matches(const LabelSelector& selector,
             const std::function<const std::string*(const std::string& key)>& value) {
  return std::all_of(selector.begin(), selector.end(),
                     [&](const LabelRequirement& one) { return Meets(one, value(one.key)); });
}

std::string PrintLabelSelector(const LabelSelector& selector) {
  std::vector<std::string> parts;
  for (const LabelRequirement& one : selector) {
    switch (one.kind) {
      case Kind::kIn:
      case Kind::kNotIn:
        parts.push_back(fmt::format("{} {} ({})", one.key, one.kind == Kind::kIn ? "in" : "notin",
                                    absl::StrJoin(one.values, ",")));
        break;
      case Kind::kExists:
      case Kind::kAbsent:
        parts.push_back((one.kind == Kind::kAbsent ? "!" : "") + one.key);
        break;
    }
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace spoke::ctl
