// Policy objects to store records and back (proto/spoke/v1/object.proto). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/object_set.h"

namespace spoke::ipam {

inline constexpr std::string_view kObjectKeyPrefix = "object/";
inline constexpr std::string_view kPolicyVersionKey = "policy/version";

// Returns "object/<kind>/<name>".
std::string StoreKeyOf(const ObjectKey& key);

std::string EncodeObject(const PolicyObject& object);

// Errors: kDataLoss (not a record of ours, of a kind this version does not know, or one that its
// rules refuse; the message names the object and says why).
absl::StatusOr<PolicyObject> DecodeObject(std::string_view bytes);

std::string EncodePolicyVersion(const SetVersion& version);

// Errors: kDataLoss.
absl::StatusOr<SetVersion> DecodePolicyVersion(std::string_view bytes);

// One write of a batch; no value: the key goes.
struct PolicyWrite {
  std::string key;
  std::optional<std::string> value;
};

// What has to be stored, in one batch, for `plan` to be in force; nothing when it changes nothing.
// The record of the version is always among it: whoever compares its revision cannot lose a change
// that was made at the same time.
std::vector<PolicyWrite> EncodePlan(const ApplyPlan& plan);

}  // namespace spoke::ipam
