#include "lib/base/time_text.h"

#include <algorithm>

#include "fmt/core.h"

namespace spoke::base {

std::string ClockText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string AgeText(absl::Duration age) {
  const absl::Duration from_zero = std::max(age, absl::ZeroDuration());
  if (from_zero < absl::Minutes(2)) return fmt::format("{}s", absl::ToInt64Seconds(from_zero));
  if (from_zero < absl::Hours(2)) return fmt::format("{}m", absl::ToInt64Minutes(from_zero));
  if (from_zero < absl::Hours(48)) return fmt::format("{}h", absl::ToInt64Hours(from_zero));
  return fmt::format("{}d", absl::ToInt64Hours(from_zero) / 24);
}

}  // namespace spoke::base
