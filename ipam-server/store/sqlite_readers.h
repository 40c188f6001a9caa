// Connections that only read: each sees one snapshot, and none waits for the writer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/store/sqlite_handle.h"

namespace spoke::ipam::sqlite {

struct Reader {
  Database database;
  Statement get;  // One record by key: the columns of kRowColumns.
};

// Thread-safe. Opens connections when they are needed and keeps them; at most kMaxReaders read at a
// time, more wait.
class ReaderPool {
 public:
  static constexpr int kMaxReaders = 8;

  // A reader on loan. Return it with Finish(); one that is only dropped is closed, which is what
  // should happen to it after an error.
  class Loan {
   public:
    Loan(ReaderPool& pool, Reader reader) : pool_(&pool), reader_(std::move(reader)) {}
    Loan(Loan&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), reader_(std::move(other.reader_)) {}
    Loan& operator=(Loan&&) = delete;
    ~Loan();

    void Finish() { healthy_ = true; }
    sqlite3* database() const { return reader_.database.get(); }
    sqlite3_stmt* get() const { return reader_.get.get(); }

   private:
    ReaderPool* pool_;
    Reader reader_;
    bool healthy_ = false;
  };

  ReaderPool(std::string path, std::string vfs) : path_(std::move(path)), vfs_(std::move(vfs)) {}

  // Errors: as ErrorOf().
  absl::StatusOr<Loan> Borrow();

 private:
  absl::StatusOr<Reader> OpenReader() const;
  void Return(Reader reader, bool healthy);

  const std::string path_;
  const std::string vfs_;
  absl::Mutex mutex_;
  std::vector<Reader> available_ ABSL_GUARDED_BY(mutex_);
  int in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam::sqlite
