// The policy of this node as the file has it that keeps it across the agent's restarts. Pure.
//
// The file: eight bytes "SPOKEPOL"; the format's version, the payload's length and its CRC-32, each
// 32 bits little endian; the payload, one full PolicyBundle. Nothing follows.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "netagent/policy/policy_bundle.h"

namespace spoke::netagent {

std::string EncodePolicyFile(const Policy& policy);

// Reads the file's bytes. Errors: kDataLoss (torn or damaged, or not a policy that could be in
// force); kFailedPrecondition (a format of another version of the agent).
absl::StatusOr<Policy> DecodePolicyFile(std::string_view bytes);

}  // namespace spoke::netagent
