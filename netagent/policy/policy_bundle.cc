#include "netagent/policy/policy_bundle.h"

#include <set>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

absl::Status CheckSize(const Policy& policy) {
  size_t bytes = 0;
  for (const auto& [key, entry] : policy.entries) bytes += key.size() + entry.bytes.size();
  if (policy.entries.size() > kMaxPolicyEntries || bytes > kMaxPolicyBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("a policy of {} objects and {} bytes; at most {} and {} are taken",
                    policy.entries.size(), bytes, kMaxPolicyEntries, kMaxPolicyBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Policy> ApplyPolicy(const Policy& current, const policy::Update& update) {
  if (update.version == 0) return absl::InvalidArgumentError("a policy has a version above 0");
  // The update has been applied, and comes once more.
  if (!update.full && update.version == current.version) return current;
  if (!update.full && update.base_version != current.version) {
    return absl::AbortedError(fmt::format("policy {} is relative to {}, but this node has {}",
                                          update.version, update.base_version, current.version));
  }
  RETURN_IF_ERROR(update.mistake);
  Policy next{.version = update.version};
  if (!update.full) next.entries = current.entries;
  for (const std::string& key : update.removed) next.entries.erase(key);
  std::set<std::string> seen;
  for (const policy::Entry& entry : update.changed) {
    if (!seen.insert(entry.key).second) {
      return absl::InvalidArgumentError(fmt::format("{} comes twice", entry.key));
    }
    next.entries.insert_or_assign(entry.key, entry);
  }
  RETURN_IF_ERROR(CheckSize(next));
  return next;
}

}  // namespace spoke::netagent
