#include "ipam-server/operators/operator_log.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/operators/policy_versions.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr uint32_t kDefaultLimit = 100;
// A commit holds up the loop's while it lasts, so it is kept small.
constexpr size_t kKeysPerCommit = 100;

// Cuts between characters of UTF-8.
std::string Cut(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  text.resize(most);
  return text + "...";
}

bool IsAsked(const v1::OperatorRecord& record, const v1::ListOperatorLogRequest& request) {
  return record.unix_ms() >= request.since_unix_ms() &&
         (request.who().empty() || record.who() == request.who()) &&
         (!request.policy_only() || record.policy_before() != record.policy_after());
}

absl::Status Remove(Store& store, std::span<const CompareAndPut> removals) {
  while (!removals.empty()) {
    const size_t count = std::min(removals.size(), kKeysPerCommit);
    RETURN_IF_ERROR(store.Commit(removals.first(count)).status());
    removals = removals.subspan(count);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OperatorLogKey> OperatorLogKeys::Newest(Store& store) {
  OperatorLogKey newest;
  RETURN_IF_ERROR(store.List(
      {.range = KeyRange::WithPrefix(kOperatorLogPrefix), .limit = 1, .descending = true},
      [&](std::string_view key, const StoredRecord&) {
        newest = ParseOperatorLogKey(key).value_or(OperatorLogKey());
      }));
  return newest;
}

std::string OperatorLogKeys::Next(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const int64_t now_ms = absl::ToUnixMillis(now);
  newest_ = now_ms > newest_.unix_ms ? OperatorLogKey{.unix_ms = now_ms}
                                     : OperatorLogKey{newest_.unix_ms, newest_.number + 1};
  return StoreKeyOf(newest_);
}

v1::OperatorRecord RecordOf(const Operator& who, const ChangeSummary& summary, absl::Time now) {
  v1::OperatorRecord record;
  record.set_unix_ms(absl::ToUnixMillis(now));
  record.set_who(who.name);
  record.set_role(std::string(NameOf(who.role)));
  record.set_from(who.from);
  record.set_method(std::string(summary.method));
  record.set_what(Cut(summary.what, kMaxSummaryBytes));
  return record;
}

absl::Status QueryOperatorLog(Store& store, const v1::ListOperatorLogRequest& request,
                              uint64_t version, v1::ListOperatorLogResponse& response) {
  const auto limit = static_cast<int>(std::min<uint32_t>(
      request.limit() == 0 ? kDefaultLimit : request.limit(), OperatorLogLimits().records));
  absl::Status first_error;
  ListOptions options{.range = KeyRange::WithPrefix(kOperatorLogPrefix), .descending = true};
  options.range.first =
      StoreKeyOf(OperatorLogKey{.unix_ms = std::max<int64_t>(request.since_unix_ms(), 0)});
  RETURN_IF_ERROR(store.List(options, [&](std::string_view key, const StoredRecord& stored) {
    if (response.records_size() >= limit || !first_error.ok()) return;
    v1::OperatorRecord record;
    if (!record.ParseFromString(stored.value)) {
      first_error = absl::DataLossError(fmt::format("store key {}: no record of operators", key));
      return;
    }
    if (IsAsked(record, request)) *response.add_records() = std::move(record);
  }));
  RETURN_IF_ERROR(first_error);
  if (!request.policy_only()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<uint64_t> undo, VersionsToGoBackTo(store, version));
  for (const uint64_t earlier : undo) response.add_undo_to(earlier);
  return absl::OkStatus();
}

absl::Status TrimOperatorLog(Store& store, const OperatorLogLimits& limits, absl::Time now) {
  std::vector<CompareAndPut> removals;
  size_t kept = 0;
  const int64_t oldest = absl::ToUnixMillis(now - limits.keep);
  RETURN_IF_ERROR(
      store.List({.range = KeyRange::WithPrefix(kOperatorLogPrefix), .descending = true},
                 [&](std::string_view key, const StoredRecord& record) {
                   const auto parsed = ParseOperatorLogKey(key);
                   if (parsed && parsed->unix_ms >= oldest && kept < limits.records) {
                     ++kept;
                   } else {
                     removals.push_back({.key = std::string(key), .expected = record.revision});
                   }
                 }));
  std::set<uint64_t> versions;
  RETURN_IF_ERROR(
      store.List({.range = KeyRange::WithPrefix(kPolicyHistoryPrefix), .descending = true},
                 [&](std::string_view key, const StoredRecord& record) {
                   const uint64_t version = ParsePolicyHistoryKey(key).value_or(0);
                   const bool known = versions.contains(version);
                   if (known || versions.size() < limits.policy_versions) {
                     versions.insert(version);
                   } else {
                     removals.push_back({.key = std::string(key), .expected = record.revision});
                   }
                 }));
  return Remove(store, removals);
}

}  // namespace spoke::ipam
