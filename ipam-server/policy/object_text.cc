#include "ipam-server/policy/object_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/ascii.h"
#include "lib/base/check.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using Json = nlohmann::json;

// Words that some reader of YAML takes for something else than text.
constexpr std::array<std::string_view, 10> kWords = {"y",   "n",    "yes",   "no",   "on",
                                                     "off", "true", "false", "null", "nan"};

// Whether `text` means itself to every reader of YAML without quotes.
bool IsPlain(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.back() == ':') return false;
  if (!std::all_of(text.begin(), text.end(), [&](char c) {
        return letter(c) || digit(c) || std::string_view("_.-/:").find(c) != std::string_view::npos;
      })) {
    return false;
  }
  // "1.5", "0x1f" and "2001-01-01" begin with a digit; a CIDR block does too, and has its slash.
  const bool block = digit(text.front()) && text.find('/') != std::string_view::npos;
  if (!block && !letter(text.front()) && text.front() != '/') return false;
  const std::string lower = absl::AsciiStrToLower(std::string(text));
  return std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>())) return value;
  return value.dump();
}

// Writes `value` in lines that begin with `indent`. Recursion ends with the depth of a spec.
// NOLINTNEXTLINE(misc-no-recursion)
void Emit(const Json& value, const std::string& indent, std::string& out) {
  if (value.is_array()) {
    for (const Json& item : value) {
      if (item.is_primitive()) {
        out += indent + "- " + Scalar(item) + "\n";
        continue;
      }
      CHECK(item.is_object() && !item.empty(), "the lists of a spec hold single values or maps");
      const size_t start = out.size();
      Emit(item, indent + "  ", out);
      out[start + indent.size()] = '-';
    }
    return;
  }
  for (const auto& [key, item] : value.items()) {
    out += indent + (IsPlain(key) ? key : Json(key).dump()) + ":";
    if (item.is_primitive()) {
      out += " " + Scalar(item) + "\n";
    } else if (item.empty()) {
      out += item.is_array() ? " []\n" : " {}\n";
    } else {
      out += "\n";
      Emit(item, indent + "  ", out);
    }
  }
}

Json ToJson(const PolicyObject& object) {
  Json spec = Json::parse(object.spec->ToJson(), nullptr, /*allow_exceptions=*/false);
  CHECK(spec.is_object(), "the canonical form of a spec is a JSON object");
  return {{"apiVersion", kObjectApiVersion},
          {"kind", object.key.kind},
          {"metadata", {{"name", object.key.name}}},
          {"spec", std::move(spec)}};
}

}  // namespace

std::string ObjectJson(const PolicyObject& object) { return ToJson(object).dump(); }

std::string ObjectYaml(const PolicyObject& object) {
  std::string out;
  Emit(ToJson(object), "", out);
  return out;
}

}  // namespace spoke::ipam
