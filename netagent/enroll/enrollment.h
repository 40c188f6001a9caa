// Decides when an agent asks for its certificate, and what may be wrong when it gets none. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace spoke::netagent {

// Returns when a certificate is to be renewed: after half of its life and up to a thirtieth more,
// by `jitter` in [0, 1), so that nodes which enrolled in one moment do not come back in one.
absl::Time RenewAt(absl::Time not_before, absl::Time not_after, double jitter);

// Returns what an operator can do about a refusal, in a line; `status` is not OK.
std::string EnrollRemedy(const absl::Status& status);

}  // namespace spoke::netagent
