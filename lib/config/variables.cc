#include "lib/config/variables.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/config/yaml_tree.h"

namespace spoke::config {
namespace {

constexpr std::string_view kOpening = "${";
constexpr std::string_view kEscaped = "$${";

bool IsVariableName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// The value of the variable whose name `text` begins with; takes name and brace away.
absl::StatusOr<std::string> TakeVariable(std::string_view& text, const VariableLookup& lookup) {
  const size_t end = text.find('}');
  if (end == std::string_view::npos) {
    return absl::InvalidArgumentError(
        "\"${\" has no \"}\" behind it: write ${NAME} for a variable, or $${ for the text itself");
  }
  const std::string name(text.substr(0, end));
  if (!IsVariableName(name)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is no variable's name: use letters, digits and _, or write $${{ for the "
                    "text itself",
                    Quoted(name)));
  }
  text.remove_prefix(end + 1);
  std::optional<std::string> value = lookup(name);
  if (!value) {
    return absl::InvalidArgumentError(fmt::format(
        "the environment variable {} is not set: set it, or write the value out", Quoted(name)));
  }
  if (value->size() > kMaxVariableBytes) {
    return absl::InvalidArgumentError(
        fmt::format("the environment variable {} holds {} bytes, more than the {} allowed",
                    Quoted(name), value->size(), kMaxVariableBytes));
  }
  if (!IsPlainText(*value)) {
    return absl::InvalidArgumentError(fmt::format(
        "the environment variable {} holds control characters or bytes that are not UTF-8",
        Quoted(name)));
  }
  return *std::move(value);
}

}  // namespace

absl::StatusOr<std::string> ExpandVariables(std::string_view text, const VariableLookup& lookup) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with(kEscaped)) {
      out += kOpening;
      text.remove_prefix(kEscaped.size());
    } else if (text.starts_with(kOpening)) {
      text.remove_prefix(kOpening.size());
      ASSIGN_OR_RETURN(const std::string value, TakeVariable(text, lookup));
      out += value;
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace spoke::config
