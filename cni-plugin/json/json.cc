#include "cni-plugin/json/json.h"

#include <rapidjson/writer.h>

#include <cstdint>

#include "lib/base/utf8.h"

namespace spoke::cni::json {
namespace {

// The place where RapidJSON's writer puts what it prints.
class Appender {
 public:
  using Ch = char;
  explicit Appender(std::string& out) : out_(out) {}
  // NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
  void Put(char c) { out_.push_back(c); }
  void Flush() {}

 private:
  std::string& out_;
};

// Looks at the depth before parsing, since the parser would take any.
bool IsShallow(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsExactly(std::string_view a, std::string_view b) { return a == b; }

bool EqualsAnyCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

const Value* FindLast(const Value& object, std::string_view key,
                      bool (*equals)(std::string_view, std::string_view)) {
  if (!object.IsObject()) return nullptr;
  const Value* found = nullptr;
  for (auto it = object.MemberBegin(); it != object.MemberEnd(); ++it) {
    if (equals({it->name.GetString(), it->name.GetStringLength()}, key)) found = &it->value;
  }
  return found;
}

const Value* UnlessNull(const Value* value) {
  return value != nullptr && value->IsNull() ? nullptr : value;
}

}  // namespace

bool Parse(std::string_view text, Document& document) {
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  if (!IsShallow(text)) return false;
  // RapidJSON stops at a NUL and would take what precedes it for the whole.
  if (text.find('\0') != std::string_view::npos) return false;
  document.Parse<kFlags>(text.data(), text.size());
  return !document.HasParseError();
}

const Value* Find(const Value& object, std::string_view key) {
  return UnlessNull(FindLast(object, key, &EqualsExactly));
}

const Value* FindAnyCase(const Value& object, std::string_view key) {
  return UnlessNull(FindLast(object, key, &EqualsAnyCase));
}

bool Has(const Value& object, std::string_view key) {
  return FindLast(object, key, &EqualsExactly) != nullptr;
}

std::string_view TextOf(const Value* value) {
  if (value == nullptr || !value->IsString()) return {};
  return {value->GetString(), value->GetStringLength()};
}

void AppendText(std::string_view text, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  uint32_t character = 0;
  out.push_back('"');
  while (!text.empty()) {
    const size_t length = base::DecodeUtf8(text, character);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (character < 0x20) {
      out += "\\u00";
      out.push_back(kHex[character >> 4U]);
      out.push_back(kHex[character & 0xFU]);
    } else {
      if (character == '"' || character == '\\') out.push_back('\\');
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out.push_back('"');
}

void AppendValue(const Value& value, std::string& out) {
  Appender appender(out);
  rapidjson::Writer<Appender> writer(appender);
  value.Accept(writer);
}

}  // namespace spoke::cni::json

namespace spoke::cni {

std::string ToUtf8(std::string_view text) {
  std::string out;
  uint32_t character = 0;
  while (!text.empty()) {
    const size_t length = base::DecodeUtf8(text, character);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

bool IsWhiteSpace(uint32_t character) {
  return (character >= 0x09 && character <= 0x0D) || character == 0x20 || character == 0x85 ||
         character == 0xA0 || character == 0x1680 || (character >= 0x2000 && character <= 0x200A) ||
         character == 0x2028 || character == 0x2029 || character == 0x202F || character == 0x205F ||
         character == 0x3000;
}

}  // namespace spoke::cni
