#include "tests/azure-sim/target.h"

#include <algorithm>
#include <cctype>

#include "fmt/core.h"

namespace spoke::azure_sim {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Decode(std::string_view text, bool plus_is_blank) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      decoded.push_back(static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])));
      i += 2;
    } else {
      decoded.push_back(plus_is_blank && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return decoded;
}

bool ParseQueryInto(std::string_view query, std::map<std::string, std::string>* values) {
  bool duplicates = false;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    if (!values->emplace(Lower(PercentDecode(pair.substr(0, equals))), PercentDecode(value))
             .second) {
      duplicates = true;
    }
  }
  return duplicates;
}

}  // namespace

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string PercentDecode(std::string_view text) { return Decode(text, true); }

std::string PercentEncode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded.push_back(c);
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded;
}

std::map<std::string, std::string> ParseQuery(std::string_view query) {
  std::map<std::string, std::string> values;
  ParseQueryInto(query, &values);
  return values;
}

std::string Target::Query(const std::string& key) const {
  const auto found = query.find(key);
  return found == query.end() ? std::string() : found->second;
}

std::string_view Target::Key(size_t index) const {
  return index < keys.size() ? std::string_view(keys[index]) : std::string_view();
}

std::string_view Target::Segment(size_t index) const {
  return index < segments.size() ? std::string_view(segments[index]) : std::string_view();
}

Target ParseTarget(std::string_view url) {
  Target target;
  if (const size_t scheme = url.find("://"); scheme != std::string_view::npos) {
    const size_t end = std::min(url.find_first_of("/?", scheme + 3), url.size());
    target.host = std::string(url.substr(0, end));
    url.remove_prefix(end);
  }
  const size_t mark = url.find('?');
  std::string_view path = url.substr(0, mark);
  target.path = std::string(path);
  if (mark != std::string_view::npos) {
    target.has_duplicates = ParseQueryInto(url.substr(mark + 1), &target.query);
  }
  while (!path.empty()) {
    const size_t end = path.find('/');
    const std::string_view segment = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    if (segment.empty()) continue;
    target.segments.push_back(Decode(segment, false));
    target.keys.push_back(Lower(target.segments.back()));
  }
  return target;
}

}  // namespace spoke::azure_sim
