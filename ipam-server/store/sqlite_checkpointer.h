// Moves SQLite's write-ahead log into the database file on a thread of its own, so that commits do
// not pay for it, and keeps the log bounded.
#pragma once

#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/store/sqlite_handle.h"
#include "ipam-server/store/sqlite_store.h"

namespace spoke::ipam::sqlite {

// Thread-safe. Methods take and give page counts of the log.
class Checkpointer {
 public:
  // `writing` is what a commit holds; the thread takes it for the last, short part of its work,
  // without which the log would never be empty under load. Borrowed.
  Checkpointer(Database database, absl::Mutex& writing, const LogLimits& limits);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  // Ends the thread; the log stays as it is.
  ~Checkpointer();

  // Dies unless the caller holds `writing`. By this the compiler knows that the lock which the
  // caller took is the one that the functions below require.
  void AssertWriting() const ABSL_ASSERT_EXCLUSIVE_LOCK(writing_) { writing_.AssertHeld(); }

  // Takes how long the log is now, after each commit.
  void OnLogLength(int64_t pages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  // Waits before each commit while the log is too long, letting go of `writing`. Returns whether
  // it had to. A reader that keeps the log from being emptied does not hold up commits: they go
  // on after one attempt. Errors: why the log cannot be moved, as ErrorOf().
  absl::StatusOr<bool> AwaitRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  // Moves the log now and waits for it, letting go of `writing`. Whether all of it was moved, so
  // that the next commit writes from its beginning. Errors: as AwaitRoom().
  absl::StatusOr<bool> Run() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  // Waits until no round is under way, letting go of `writing`. None begins before the caller lets
  // go of it again.
  void AwaitIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  int64_t log_pages() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) { return log_pages_; }
  int64_t rounds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) { return rounds_; }
  int64_t failures() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) { return failures_; }

 private:
  struct Progress {
    int64_t log_pages = 0;
    int64_t moved_pages = 0;
  };

  void Loop();
  void RunRound();
  absl::StatusOr<Progress> Pass();

  const Database database_;  // The thread's alone.
  absl::Mutex& writing_;
  const LogLimits limits_;
  int64_t log_pages_ ABSL_GUARDED_BY(writing_) = 0;
  int64_t next_at_pages_ ABSL_GUARDED_BY(writing_);
  bool wanted_ ABSL_GUARDED_BY(writing_) = false;
  bool stopped_ ABSL_GUARDED_BY(writing_) = false;
  int64_t started_ ABSL_GUARDED_BY(writing_) = 0;  // Rounds; each ends in one of the next two.
  int64_t rounds_ ABSL_GUARDED_BY(writing_) = 0;
  int64_t failures_ ABSL_GUARDED_BY(writing_) = 0;
  bool all_moved_ ABSL_GUARDED_BY(writing_) = false;  // The last round moved all.
  absl::Status last_ ABSL_GUARDED_BY(writing_);       // The last round's status.
  std::thread thread_;
};

}  // namespace spoke::ipam::sqlite
