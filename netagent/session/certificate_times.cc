#include "netagent/session/certificate_times.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

std::string TextOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

// Whether it may have been a handshake: the far end closes the connection when it does not take our
// certificate.
bool MayBeTls(absl::string_view message) {
  for (const char* part : {"andshake", "closed", "reset", "Broken pipe"}) {
    if (absl::StrContains(message, part)) return true;
  }
  return false;
}

std::string WhatTimesSay(const CertificateTimes& own, absl::Time now) {
  if (now > own.not_after) {
    return fmt::format(
        "this node's certificate has ended, at {}; the clock here shows {}: if that is right, the "
        "node needs another certificate, else set the clock",
        TextOf(own.not_after), TextOf(now));
  }
  if (now < own.not_before) {
    return fmt::format(
        "this node's certificate is good from {} on only; the clock here shows {}: set the clock, "
        "or that of the machine which has signed it",
        TextOf(own.not_before), TextOf(now));
  }
  return fmt::format(
      "if it is TLS: this node's certificate is good until {}, by the clock here, which shows {}; "
      "compare that with the server's clock, its certificate and the authority that each trusts",
      TextOf(own.not_after), TextOf(now));
}

}  // namespace

absl::Status WithTimes(const absl::Status& failure, const CertificateTimes& own, absl::Time now) {
  if (failure.ok() || !MayBeTls(failure.message())) return failure;
  return {failure.code(), fmt::format("{} ({})", base::MessageOf(failure), WhatTimesSay(own, now))};
}

}  // namespace spoke::netagent
