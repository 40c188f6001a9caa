#include "netagent/journal/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "netagent/journal/journal_codec.h"

namespace spoke::netagent {
namespace {

class FileJournal final : public Journal {
 public:
  FileJournal(std::string path, os::UniqueFd lock, os::UniqueFd file, size_t size)
      : path_(std::move(path)), lock_(std::move(lock)), file_(std::move(file)), size_(size) {}

  absl::Status Append(const Event& event) override {
    const std::string frame = EncodeFrame(event);
    const ssize_t written = ::write(file_.get(), frame.data(), frame.size());
    if (written == static_cast<ssize_t>(frame.size())) {
      size_ += frame.size();
      return absl::OkStatus();
    }
    const int error = written < 0 ? errno : ENOSPC;
    // A part of a frame would end every later replay.
    if (::ftruncate(file_.get(), static_cast<off_t>(size_)) < 0) {
      return base::ErrnoToStatus(errno, "cut back journal " + path_);
    }
    return base::ErrnoToStatus(error, "append to journal " + path_);
  }

  absl::Status Compact(const std::vector<Event>& events) override {
    std::string content;
    for (const Event& event : events) content += EncodeFrame(event);
    RETURN_IF_ERROR(os::WriteFileAtomic(path_, content, os::Durability::kVisible));
    os::UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file.valid()) return base::ErrnoToStatus(errno, "open journal " + path_);
    file_ = std::move(file);
    size_ = content.size();
    return absl::OkStatus();
  }

  size_t size() const override { return size_; }

 private:
  const std::string path_;
  const os::UniqueFd lock_;
  os::UniqueFd file_;
  size_t size_;
};

}  // namespace

absl::StatusOr<OpenedJournal> OpenJournal(const std::string& path) {
  // The lock is a file of its own, since the journal is replaced when it is compacted.
  const std::string lock_path = path + ".lock";
  os::UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return base::ErrnoToStatus(errno, "open " + lock_path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError("another agent holds " + lock_path);
    }
    return base::ErrnoToStatus(errno, "lock " + lock_path);
  }
  os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid()) return base::ErrnoToStatus(errno, "open journal " + path);
  ASSIGN_OR_RETURN(const std::string content, os::ReadFile(path));
  ParsedJournal parsed = ParseJournal(content);
  if (::ftruncate(file.get(), static_cast<off_t>(parsed.valid_bytes)) < 0) {
    return base::ErrnoToStatus(errno, "cut back journal " + path);
  }
  return OpenedJournal{.journal = std::make_unique<FileJournal>(
                           path, std::move(lock), std::move(file), parsed.valid_bytes),
                       .events = std::move(parsed.events),
                       .dropped_bytes = content.size() - parsed.valid_bytes};
}

}  // namespace spoke::netagent
