#include "ipam-server/policy/staged_policy.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/operators/operator_keys.h"
#include "ipam-server/policy/object_codec.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// Of one transaction, which has other records as well.
constexpr size_t kFewWrites = kAtomicWrites / 2;
constexpr size_t kFewBytes = kAtomicBytes / 2;

std::string PendingPrefix(uint64_t version) {
  return fmt::format("{}{:020}/", kPendingPolicyPrefix, version);
}

// Stages the version and what is recorded of its change: what was before has to be there once the
// version is, and the operators' log has it if, and only if, it is.
void StageRecords(std::span<CompareAndPut> puts) {
  const auto rank = [](const CompareAndPut& put) {
    if (put.key == kPolicyVersionKey) return 1;
    return put.key.starts_with(kOperatorLogPrefix) ? 2 : 0;
  };
  std::stable_sort(puts.begin(), puts.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  for (CompareAndPut& put : puts) {
    if (rank(put) > 0) put.stage = Stage::kRelease;
    put.joined = rank(put) == 2;
    if (put.key.starts_with(kPolicyHistoryPrefix)) put.stage = Stage::kHold;
  }
}

}  // namespace

void StagePolicy(std::vector<CompareAndPut>& puts, size_t first, const Revisions& revisions) {
  const auto flip = std::find_if(
      puts.begin() + static_cast<std::ptrdiff_t>(first), puts.end(),
      [](const CompareAndPut& put) { return put.key == kPolicyVersionKey && put.value; });
  if (flip == puts.end()) return;
  const auto version = DecodePolicyVersion(*flip->value);
  if (!version.ok()) return;
  const std::string prefix = PendingPrefix(version->version);
  size_t bytes = 0;
  for (size_t i = first; i < puts.size(); ++i) bytes += puts[i].value ? puts[i].value->size() : 0;
  const size_t end = puts.size();
  std::set<std::string_view> replaced;  // What a change that was cut short has left under our keys.
  if (end - first <= kFewWrites && bytes <= kFewBytes) {
    for (size_t i = first + 1; i < end; ++i) puts[i].joined = true;
  } else {
    StageRecords(std::span(puts).subspan(first));
    for (size_t i = first; i < end; ++i) {
      if (!puts[i].key.starts_with(kObjectKeyPrefix)) continue;
      puts[i].stage = Stage::kTake;
      CompareAndPut pending{
          .key = prefix + puts[i].key, .value = puts[i].value.value_or(""), .stage = Stage::kHold};
      if (const auto left = revisions.find(pending.key); left != revisions.end()) {
        pending.expected = left->second;
        replaced.insert(left->first);
      }
      puts.push_back(std::move(pending));
    }
  }
  for (const auto& [key, revision] : revisions) {
    if (!key.starts_with(kPendingPolicyPrefix) || replaced.contains(key)) continue;
    // Where the clock stood still, or was set back, a change that was cut short has left some of
    // its objects under this very version: they must be gone before it is in force.
    const Stage stage = key.starts_with(prefix) ? Stage::kHold : Stage::kTake;
    puts.push_back({.key = key, .expected = revision, .stage = stage});
  }
}

absl::Status FinishPolicy(Store& store) {
  std::map<std::string, StoredRecord> pending;
  RETURN_IF_ERROR(store.List(kPendingPolicyPrefix, [&](std::string_view key, const auto& record) {
    pending.emplace(key, record);
  }));
  if (pending.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto stored, store.Get(kPolicyVersionKey));
  SetVersion version;
  if (stored) {
    ASSIGN_OR_RETURN(version, DecodePolicyVersion(stored->value));
  }
  const std::string in_force = PendingPrefix(version.version);
  std::vector<CompareAndPut> puts;
  for (const auto& [key, record] : pending) {
    if (!key.starts_with(in_force)) continue;
    std::string object = key.substr(in_force.size());
    ASSIGN_OR_RETURN(const auto found, store.Get(object));
    std::optional<std::string> value;
    if (!record.value.empty()) value = record.value;
    if (found ? value == found->value : !value) continue;
    puts.push_back({.key = std::move(object),
                    .value = std::move(value),
                    .expected = found ? found->revision : 0});
  }
  if (puts.empty()) return absl::OkStatus();
  return base::Annotate(store.Commit(puts).status(), "finish a change of policy");
}

}  // namespace spoke::ipam
