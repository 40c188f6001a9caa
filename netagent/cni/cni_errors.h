// A failure in CNI's terms: a code, what happened to which object, and what to do about it.
// Pure.
#pragma once

#include "absl/status/status.h"
#include "lib/cni_api/wire.h"

namespace spoke::netagent {

// Returns the error for `status`, which is not OK. STATUS has 51 for kDataLoss and 50 for all
// else. The other verbs have 11 for kResourceExhausted, kPermissionDenied, kUnavailable,
// kDeadlineExceeded and kAborted; 7 for kInvalidArgument; 8 for kFailedPrecondition (the namespace
// is none, or the node's own); 101 for kAlreadyExists; 102 for kDataLoss; 100 for the rest.
cni::Error ErrorOf(const absl::Status& status, cni::Verb verb);

}  // namespace spoke::netagent
