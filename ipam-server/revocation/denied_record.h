// The records of the deny list to bytes and back (proto/spoke/v1/authority.proto). Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ipam-server/revocation/deny_list.h"

namespace spoke::ipam {

inline constexpr std::string_view kDeniedKeyPrefix = "denied/";

// Returns "denied/<kind>/<value>".
std::string DeniedKeyOf(const DeniedName& name);
std::string EncodeDenial(const Denial& denial);

// Errors of both: kDataLoss (no key or record of ours).
absl::StatusOr<DeniedName> ParseDeniedKey(std::string_view key);
absl::StatusOr<Denial> DecodeDenial(std::string_view bytes);

}  // namespace spoke::ipam
