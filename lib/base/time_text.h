// Times as people and programs are told of them. Pure.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace spoke::base {

// Returns RFC 3339 in UTC, to the second: "2023-11-14T22:13:20Z".
std::string ClockText(absl::Time time);

// Returns "12s", "5m", "3h", "2d": how long something takes or has taken, in one unit. A negative
// time is "0s".
std::string AgeText(absl::Duration age);

}  // namespace spoke::base
