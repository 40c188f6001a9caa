// Whether TLS may have failed for reasons of time: a certificate is good by the time of day, and
// TLS itself says no more than that it has failed. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace spoke::netagent {

// When the node's own certificate is good.
struct CertificateTimes {
  absl::Time not_before;
  absl::Time not_after;
};

// Returns `failure` of a dial with what `own` and the clock here, which shows `now`, say about it.
// One that has nothing to do with TLS stays as it is. OK stays OK.
absl::Status WithTimes(const absl::Status& failure, const CertificateTimes& own, absl::Time now);

}  // namespace spoke::netagent
