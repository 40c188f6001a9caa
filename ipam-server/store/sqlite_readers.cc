#include "ipam-server/store/sqlite_readers.h"

#include "fmt/core.h"
#include "ipam-server/store/sqlite_schema.h"
#include "lib/base/status.h"

namespace spoke::ipam::sqlite {

ReaderPool::Loan::~Loan() {
  if (pool_ != nullptr) pool_->Return(std::move(reader_), healthy_);
}

absl::StatusOr<ReaderPool::Loan> ReaderPool::Borrow() {
  {
    absl::MutexLock lock(&mutex_);
    const auto free = [this]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return in_use_ < kMaxReaders; };
    mutex_.Await(absl::Condition(&free));
    ++in_use_;
    if (!available_.empty()) {
      Reader reader = std::move(available_.back());
      available_.pop_back();
      return Loan(*this, std::move(reader));
    }
  }
  absl::StatusOr<Reader> reader = OpenReader();
  if (reader.ok()) return Loan(*this, *std::move(reader));
  absl::MutexLock lock(&mutex_);
  --in_use_;
  return reader.status();
}

absl::StatusOr<Reader> ReaderPool::OpenReader() const {
  Reader reader;
  // Even a reader of a write-ahead log takes locks that need the right to write.
  ASSIGN_OR_RETURN(reader.database, Open(path_, SQLITE_OPEN_READWRITE, vfs_.c_str()));
  RETURN_IF_ERROR(Execute(reader.database.get(), "PRAGMA query_only = ON"));
  ASSIGN_OR_RETURN(reader.get,
                   Prepare(reader.database.get(),
                           fmt::format("SELECT {} FROM record WHERE key = ?1", kRowColumns)));
  return reader;
}

void ReaderPool::Return(Reader reader, bool healthy) {
  absl::MutexLock lock(&mutex_);
  --in_use_;
  if (healthy) available_.push_back(std::move(reader));
}

}  // namespace spoke::ipam::sqlite
