// Moves all records from one store to another, as from SQLite to etcd and back. No server may run
// on either: opening a store keeps others out.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

// How far the epoch of the store's mark is raised (ledger/recovery.h). Nodes remember it from their
// next hello on, so that the old store, or a copy of it, is found to be behind.
inline constexpr uint64_t kMigrationRaise = 1000;

struct MigrationReport {
  int64_t records = 0;  // The records that both stores have now.
  int64_t written = 0;  // Those of them that this run has written; the others were there already.
  int64_t removed = 0;  // Records of an earlier run that the source has no more.
};

// How far it is; `phase` is "copy" or "verify".
using MigrationProgress = std::function<void(std::string_view phase, int64_t records)>;

// Copies every record of `from` to `to`, reads both again and compares them record by record, marks
// `from` as moved, and puts `to` into service with the epoch raised. Borrows all during the call.
//
// A run that was cut short is continued by the next one, of the same stores: until the end no
// server starts on `to`, and from the mark on none starts on `from`. Errors: as Store::List() and
// Store::Commit(); kNotFound (`from` was never a server's store); kAlreadyExists (`to` has records
// of its own, or this move was finished before); kFailedPrecondition (`from` was moved elsewhere,
// or is itself half a copy); kDataLoss (the copy is not what was read: `to` stays out of service).
absl::StatusOr<MigrationReport> MigrateStore(Store& from, Store& to, absl::Time now,
                                             const MigrationProgress& progress);

// Returns OK when a server may start on `store`. Errors: as Store::Get(); kFailedPrecondition (its
// records were moved to another, or are not all there yet; the message says where, and what to do).
absl::Status CheckNotMoved(Store& store);

}  // namespace spoke::ipam
