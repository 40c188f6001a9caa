#include "lib/telemetry/scrape_request.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace spoke::telemetry {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kField = "authorization:";
constexpr std::string_view kScheme = "bearer ";

absl::string_view Abseil(std::string_view text) { return {text.data(), text.size()}; }

std::string_view WithoutBlanks(std::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(Abseil(text));
  return {stripped.data(), stripped.size()};
}

// Takes what is before the next `end`, and `end` itself, from `rest`.
std::string_view TakeLine(std::string_view& rest, std::string_view end) {
  const size_t at = std::min(rest.find(end), rest.size());
  const std::string_view line = rest.substr(0, at);
  rest.remove_prefix(std::min(rest.size(), at + end.size()));
  return line;
}

// Compares the texts. It looks at every byte whatever it has seen; only the length decides early.
bool IsEqual(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  volatile uint8_t different = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    different = different | (static_cast<uint8_t>(left[i]) ^ static_cast<uint8_t>(right[i]));
  }
  return different == 0;
}

}  // namespace

ScrapeRequest ParseScrapeRequest(std::string_view head) {
  const std::string_view line = TakeLine(head, kLineEnd);
  ScrapeRequest request;
  if (line.starts_with("GET ")) {
    const std::string_view target = line.substr(4);
    request.path = target.substr(0, target.find_first_of(" ?"));
  }
  while (!head.empty()) {
    const std::string_view field = TakeLine(head, kLineEnd);
    if (!absl::StartsWithIgnoreCase(Abseil(field), Abseil(kField))) continue;
    const std::string_view value = WithoutBlanks(field.substr(kField.size()));
    if (!absl::StartsWithIgnoreCase(Abseil(value), Abseil(kScheme))) continue;
    request.token = WithoutBlanks(value.substr(kScheme.size()));
  }
  return request;
}

bool IsTokenOf(std::string_view file, std::string_view token) {
  bool found = false;
  while (!file.empty()) {
    const std::string_view line = WithoutBlanks(TakeLine(file, "\n"));
    if (line.size() >= kMinTokenBytes && IsEqual(line, token)) found = true;
  }
  return found;
}

}  // namespace spoke::telemetry
