#include "ipam-server/store/sqlite_checkpointer.h"

#include <cerrno>
#include <utility>

#include "lib/base/status.h"

namespace spoke::ipam::sqlite {
namespace {

// What one pass may leave for the part that holds up commits: 2 MiB, a few milliseconds.
constexpr int64_t kShortRest = 512;
// A log that grows as fast as it is moved would keep the thread going for ever.
constexpr int kMaxPasses = 4;

}  // namespace

Checkpointer::Checkpointer(Database database, absl::Mutex& writing, const LogLimits& limits)
    : database_(std::move(database)),
      writing_(writing),
      limits_(limits),
      next_at_pages_(limits.checkpoint_pages),
      thread_([this] { Loop(); }) {}

Checkpointer::~Checkpointer() {
  {
    absl::MutexLock lock(&writing_);
    stopped_ = true;
  }
  thread_.join();
}

void Checkpointer::OnLogLength(int64_t pages) {
  log_pages_ = pages;
  // The log is shorter than at the last round: it was begun anew since.
  if (pages < next_at_pages_ - limits_.checkpoint_pages) next_at_pages_ = limits_.checkpoint_pages;
  if (pages >= next_at_pages_) wanted_ = true;
}

absl::StatusOr<bool> Checkpointer::AwaitRoom() {
  if (log_pages_ < limits_.max_pages) return false;
  RETURN_IF_ERROR(Run().status());
  return true;
}

absl::StatusOr<bool> Checkpointer::Run() {
  // A round that is under way may have begun before what the caller means; the one after has not.
  wanted_ = true;
  const int64_t mine = started_ + 1;
  const auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) {
    return stopped_ || rounds_ + failures_ >= mine;
  };
  writing_.Await(absl::Condition(&done));
  if (!last_.ok()) return last_;
  return all_moved_;
}

void Checkpointer::AwaitIdle() {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) {
    return stopped_ || rounds_ + failures_ >= started_;
  };
  writing_.Await(absl::Condition(&idle));
}

void Checkpointer::Loop() {
  const auto ready = [this]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) { return stopped_ || wanted_; };
  while (true) {
    {
      absl::MutexLock lock(&writing_);
      writing_.Await(absl::Condition(&ready));
      if (stopped_) return;
      wanted_ = false;
      ++started_;
    }
    RunRound();
  }
}

// Most of the log is moved while commits append to it. The short rest is moved while none can: only
// a log that has been moved whole is written from its beginning again.
void Checkpointer::RunRound() {
  absl::StatusOr<Progress> progress = Progress{};
  for (int i = 0; i < kMaxPasses; ++i) {
    const int64_t before = progress->moved_pages;
    progress = Pass();
    if (!progress.ok() || progress->log_pages - progress->moved_pages <= kShortRest) break;
    if (i > 0 && progress->moved_pages == before) break;  // A reader's snapshot is in the way.
  }
  absl::MutexLock lock(&writing_);
  if (progress.ok()) progress = Pass();
  last_ = progress.status();
  if (!progress.ok()) {
    ++failures_;
    all_moved_ = false;
    next_at_pages_ = log_pages_ + limits_.checkpoint_pages;
    return;
  }
  ++rounds_;
  all_moved_ = progress->moved_pages == progress->log_pages;
  log_pages_ = all_moved_ ? 0 : progress->log_pages;
  // A reader can keep the log from being begun anew: then the next round is due no sooner.
  next_at_pages_ = progress->log_pages + limits_.checkpoint_pages;
}

absl::StatusOr<Checkpointer::Progress> Checkpointer::Pass() {
  int log = 0;
  int moved = 0;
  errno = 0;
  const int result =
      sqlite3_wal_checkpoint_v2(database_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &log, &moved);
  // A commit is emptying the log itself: nothing is left to do for this pass.
  if ((result & 0xFF) == SQLITE_BUSY) return Progress{};
  if (result != SQLITE_OK) return ErrorOf(database_.get(), result, "move the log into the file");
  return Progress{.log_pages = log, .moved_pages = moved};
}

}  // namespace spoke::ipam::sqlite
