#include "lib/http/retry_after.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace spoke::http {

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
