#include "lib/json_text/json_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "lib/base/utf8.h"

namespace spoke::json_text {
namespace {

using nlohmann::json;

// Returns the depth of brackets outside strings. It is right for JSON; else the parser decides.
size_t DepthOf(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

absl::StatusOr<json> ParseJson(std::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes of JSON are more than {}", text.size(), kMaxJsonBytes));
  }
  if (DepthOf(text) > kMaxJsonDepth) {
    return absl::InvalidArgumentError(fmt::format("JSON deeper than {} levels", kMaxJsonDepth));
  }
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    return absl::InvalidArgumentError(fmt::format("not JSON: \"{}\"", Excerpt(text)));
  }
  return value;
}

absl::StatusOr<json> ParseJsonObject(std::string_view text) {
  absl::StatusOr<json> value = ParseJson(text);
  if (value.ok() && !value->is_object()) {
    return absl::InvalidArgumentError(fmt::format("not a JSON object: \"{}\"", Excerpt(text)));
  }
  return value;
}

std::string PrintJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const json* FindMember(const json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string StringMember(const json& object, std::string_view name) {
  const json* member = FindMember(object, name);
  const std::string* text = member == nullptr ? nullptr : member->get_ptr<const std::string*>();
  return text == nullptr ? std::string() : *text;
}

std::optional<bool> BoolMember(const json& object, std::string_view name) {
  const json* member = FindMember(object, name);
  if (member == nullptr || !member->is_boolean()) return std::nullopt;
  return *member->get_ptr<const bool*>();
}

std::optional<int> IntMember(const json& object, std::string_view name) {
  const json* member = FindMember(object, name);
  if (member == nullptr || !member->is_number_integer()) return std::nullopt;
  constexpr int kMax = std::numeric_limits<int>::max();
  if (const auto* positive = member->get_ptr<const json::number_unsigned_t*>()) {
    return *positive <= static_cast<unsigned>(kMax) ? std::optional(static_cast<int>(*positive))
                                                    : std::nullopt;
  }
  const int64_t value = *member->get_ptr<const json::number_integer_t*>();
  if (value < std::numeric_limits<int>::min() || value > kMax) return std::nullopt;
  return static_cast<int>(value);
}

std::string Excerpt(std::string_view text, size_t most) {
  std::string excerpt = base::CutText(text, most);
  std::replace_if(
      excerpt.begin(), excerpt.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; }, ' ');
  if (text.size() > most) excerpt += "...";
  return excerpt;
}

}  // namespace spoke::json_text
