// The time that a server asks us to wait (RFC 9110, section 10.2.3). Pure.
#pragma once

#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "lib/http/message.h"

namespace spoke::http {

// The longest wait that is believed. No server that means well asks for more, and a date may be
// wrong by years.
inline constexpr absl::Duration kMaxRetryAfter = absl::Hours(1);

// Reads seconds, or a date as in "Fri, 31 Dec 1999 23:59:59 GMT", which counts from `now`. What
// lies in the past is zero. nullopt: it is neither.
std::optional<absl::Duration> ParseRetryAfter(std::string_view value, absl::Time now);

// Reads the header Retry-After; nullopt: there is none, or none that can be read.
std::optional<absl::Duration> RetryAfter(const Headers& headers, absl::Time now);

}  // namespace spoke::http
