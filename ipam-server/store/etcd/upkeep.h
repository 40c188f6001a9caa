// What keeps etcd's database small: every write leaves the former value behind until the history is
// compacted, and what that frees goes back to the disk only when a member is defragmented. A
// database that reaches its quota takes no write any more (alarm NOSPACE) until somebody says so.
#pragma once

#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/store/etcd/connection.h"

namespace spoke::ipam::etcd {

struct UpkeepSettings {
  // History is kept for one to two of these: a list, or a mirror that was away, needs it.
  absl::Duration compact_period = absl::Seconds(10);
  // A member whose file is larger than this and is not half full is defragmented, at most once in
  // so long. It answers nothing meanwhile, about a second for a gigabyte.
  int64_t defragment_bytes = int64_t{256} << 20;
  absl::Duration defragment_period = absl::Hours(1);
};

struct UpkeepStats {
  int64_t database_bytes = 0;  // Of the largest member's file.
  int64_t used_bytes = 0;      // Of it.
  int64_t compactions = 0;
  int64_t failures = 0;  // Of rounds; the next one tries again.
};

// Compacts everything, defragments the members one after the other, and ends the alarm. Errors: as
// Connection's; kPermissionDenied where the user has not the role root, which defragments.
absl::Status FreeSpace(Connection& connection);

// Thread-safe. Works on a thread of its own.
class Upkeep {
 public:
  // Borrows `connection`.
  Upkeep(Connection& connection, const UpkeepSettings& settings);
  ~Upkeep();
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  // A write was refused because the database is full: frees space soon.
  void OnFull();

  UpkeepStats stats() const;

 private:
  void Work();
  absl::Status Round();
  absl::Status Defragment();

  Connection& connection_;
  const UpkeepSettings settings_;
  // Of the thread.
  int64_t former_revision_ = 0;  // One period ago.
  absl::Time next_defragmentation_ = absl::InfinitePast();
  absl::Time next_freeing_ = absl::InfinitePast();

  mutable absl::Mutex mutex_;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  UpkeepStats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spoke::ipam::etcd
