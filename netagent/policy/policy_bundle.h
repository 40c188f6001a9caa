// The policy of this node: what the server has compiled from the objects that operators apply.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "lib/policy/values.h"

namespace spoke::netagent {

// The policy in force.
struct Policy {
  uint64_t version = 0;  // 0: there is none.
  std::map<std::string, policy::Entry> entries;

  bool operator==(const Policy&) const = default;
};

// The limits beyond which a server has gone wrong, and a node shall not suffer for it.
inline constexpr size_t kMaxPolicyEntries = 10'000;
inline constexpr size_t kMaxPolicyBytes = 8 << 20;  // The limit of all keys and entries together.

// Returns `current` with `update` applied, whole or not at all. The same update again gives the
// same. Errors: kAborted (relative to a version that is not `current`'s: ask for all of it);
// kInvalidArgument (version 0, the mistake of `update`, or one key twice); kResourceExhausted (too
// many or too large).
absl::StatusOr<Policy> ApplyPolicy(const Policy& current, const policy::Update& update);

}  // namespace spoke::netagent
