#include "lib/http/message.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "fmt/core.h"

namespace spoke::http {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase({a.data(), a.size()}, {b.data(), b.size()});
}

bool IsTokenText(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

// What is no printable ASCII would have to be escaped, or ends the URL.
bool IsUrlText(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && static_cast<unsigned char>(c) < 0x7F;
  });
}

// A line break in a value would begin a header of somebody else's choice.
bool IsHeaderValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c != '\r' && c != '\n' && c != '\0'; });
}

}  // namespace

absl::Status CheckRequest(const Request& request) {
  if (!IsTokenText(request.method)) {
    return absl::InvalidArgumentError(
        fmt::format("no HTTP method: \"{}\"", absl::CHexEscape(request.method)));
  }
  if (!IsUrlText(request.url)) {
    return absl::InvalidArgumentError(fmt::format("no URL: \"{}\"", absl::CHexEscape(request.url)));
  }
  for (const Header& header : request.headers) {
    if (!IsTokenText(header.name) || !IsHeaderValue(header.value)) {
      return absl::InvalidArgumentError(
          fmt::format("header \"{}\" cannot be sent", absl::CHexEscape(header.name)));
    }
  }
  return absl::OkStatus();
}

std::string TargetOf(const Request& request) {
  const std::string_view url = request.url;
  return fmt::format("{} {}", request.method, url.substr(0, url.find('?')));
}

bool MayHaveBody(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

void Headers::Add(std::string name, std::string value) {
  headers_.push_back({std::move(name), std::move(value)});
}

std::optional<std::string_view> Headers::Find(std::string_view name) const {
  for (const Header& header : headers_) {
    if (SameName(header.name, name)) return header.value;
  }
  return std::nullopt;
}

std::vector<std::string_view> Headers::FindAll(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Header& header : headers_) {
    if (SameName(header.name, name)) values.push_back(header.value);
  }
  return values;
}

std::optional<absl::Duration> ParseRetryAfter(std::string_view value, absl::Time now) {
  const absl::string_view text = absl::StripAsciiWhitespace({value.data(), value.size()});
  int64_t seconds = 0;
  if (absl::SimpleAtoi(text, &seconds)) {
    if (seconds < 0) return std::nullopt;
    return std::min(absl::Seconds(seconds), kMaxRetryAfter);
  }
  absl::Time date;
  std::string error;
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", std::string(text), &date, &error)) {
    return std::nullopt;
  }
  return std::clamp(date - now, absl::ZeroDuration(), kMaxRetryAfter);
}

std::optional<absl::Duration> RetryAfter(const Headers& headers, absl::Time now) {
  const auto value = headers.Find("Retry-After");
  if (!value) return std::nullopt;
  return ParseRetryAfter(*value, now);
}

}  // namespace spoke::http
