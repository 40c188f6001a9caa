// What operators have changed, and when: a record in the commit of each change, so that the log
// says nothing that did not happen and misses nothing that did.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/operators/operator_keys.h"
#include "ipam-server/operators/role.h"
#include "ipam-server/store/store.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

// What a call changes. Without `what` it is not recorded: it changed nothing.
struct ChangeSummary {
  std::string_view method;
  std::string what;
};

// The longest text of a record.
inline constexpr size_t kMaxSummaryBytes = 1024;

// The keys of records, each above all before it, even when the clock was set back. Thread-safe.
class OperatorLogKeys {
 public:
  // Returns the keys that go on behind the newest record of `store`. Errors: as Store::List().
  static absl::StatusOr<OperatorLogKey> Newest(Store& store);

  explicit OperatorLogKeys(const OperatorLogKey& newest) : newest_(newest) {}

  std::string Next(absl::Time now);

 private:
  absl::Mutex mutex_;
  OperatorLogKey newest_ ABSL_GUARDED_BY(mutex_);
};

// Returns the record of a change; who reads it sees no more than kMaxSummaryBytes of its text. The
// versions of the policy are the caller's to set.
v1::OperatorRecord RecordOf(const Operator& who, const ChangeSummary& summary, absl::Time now);

// Adds the records that `request` asks for, newest first; of policy alone, also the versions that
// can be gone back to from `version`, the present one. Errors: as Store::List(); kDataLoss (a
// damaged record).
absl::Status QueryOperatorLog(Store& store, const v1::ListOperatorLogRequest& request,
                              uint64_t version, v1::ListOperatorLogResponse& response);

// How many records are kept, and for how long.
struct OperatorLogLimits {
  size_t records = 10'000;
  absl::Duration keep = absl::Hours(24 * 90);
  size_t policy_versions = 20;
};

// Removes the records beyond `limits`, and what policy was before the last versions. Errors: as
// Store::List() and Store::Commit().
absl::Status TrimOperatorLog(Store& store, const OperatorLogLimits& limits, absl::Time now);

}  // namespace spoke::ipam
