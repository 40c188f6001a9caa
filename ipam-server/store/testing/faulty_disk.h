// A disk under SQLite that fails on request, forgets what was not synced, and shows what would be
// left of it if the power went: for tests.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace spoke::ipam {

// A VFS of SQLite over "unix-excl", registered under name() for as long as the object lives; must
// outlive the databases that use it, and remembers their files after they are closed. Thread-safe.
class FaultyDisk {
 public:
  FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;
  ~FaultyDisk();

  const std::string& name() const { return name_; }

  // Makes every write, read or sync fail with this errno from now on, until 0 is set. A failed sync
  // drops what it was to save, and the next says nothing of it: as Linux does.
  void FailWrites(int error);
  void FailReads(int error);
  void FailSyncs(int error);
  // The next `count` syncs fail with EIO.
  void FailNextSyncs(int count);

  // Calls `call` just before the `operation`th write, truncation or sync from now, on its thread.
  // 0 takes that back; a call that is under way has ended by then.
  void Before(int64_t operation, std::function<void()> call);

  // Calls `call` just before the next write to the file `path`, on its thread.
  void BeforeWriteTo(std::string path, std::function<void()> call);

  // Writes every file as it would be found after a power cut at this moment to `directory`: what
  // was synced, and of the rest a random choice, some of it torn.
  void WriteImage(const std::string& directory, std::mt19937& random) const;

 private:
  struct Change {
    int64_t offset = 0;
    std::string bytes;
    bool truncate = false;  // It truncates to `offset`.
  };
  struct FileState {
    std::string synced;
    std::vector<Change> pending;
  };
  struct OpenFile;
  struct Methods;

  static void Apply(const Change& change, std::string& content);
  void Opened(const std::string& path);
  void Deleted(const std::string& path);
  // The errno to fail with, or 0.
  int OnWrite(const std::string& path);
  int OnRead();
  void Changed(const std::string& path, Change change);
  // Returns false if the sync fails.
  bool OnSync(const std::string& path);
  void CountOperation();

  const std::string name_;
  sqlite3_vfs* const base_;
  sqlite3_vfs vfs_;
  mutable absl::Mutex mutex_;
  std::map<std::string, FileState> files_ ABSL_GUARDED_BY(mutex_);
  int write_error_ ABSL_GUARDED_BY(mutex_) = 0;
  int read_error_ ABSL_GUARDED_BY(mutex_) = 0;
  int sync_error_ ABSL_GUARDED_BY(mutex_) = 0;
  int failing_syncs_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t until_call_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void()> call_ ABSL_GUARDED_BY(mutex_);
  std::string call_path_ ABSL_GUARDED_BY(mutex_);  // Of BeforeWriteTo().
  std::function<void()> path_call_ ABSL_GUARDED_BY(mutex_);
  bool calling_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace spoke::ipam
