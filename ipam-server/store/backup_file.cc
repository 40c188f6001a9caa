#include "ipam-server/store/backup_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam {
namespace {

absl::Status AlreadyThere(const std::string& path) {
  return absl::AlreadyExistsError(
      path + " exists already, and a backup never overwrites: choose another name, or remove it");
}

// rename(2) that leaves an existing target alone.
int RenameToNew(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // NFS, for one, does not know the flag.
  if (::link(from.c_str(), to.c_str()) != 0) return -1;
  ::unlink(from.c_str());
  return 0;
}

}  // namespace

absl::StatusOr<BackupFile> BackupFile::Create(const std::string& path) {
  RETURN_IF_ERROR(os::CheckDirectory(os::DirectoryOf(path)));
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) return AlreadyThere(path);
  std::string temporary = path + ".tmp-XXXXXX";
  const os::UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "create " + temporary);
  return BackupFile(path, std::move(temporary));
}

BackupFile::BackupFile(BackupFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

BackupFile::~BackupFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

absl::Status BackupFile::Sync() {
  const os::UniqueFd fd(::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open " + temporary_);
  if (::fsync(fd.get()) < 0) return base::ErrnoToStatus(errno, "sync " + temporary_);
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);  // A wish: some file systems cannot.
  return absl::OkStatus();
}

absl::StatusOr<int64_t> BackupFile::Publish() {
  struct stat info {};
  if (::stat(temporary_.c_str(), &info) < 0) {
    return base::ErrnoToStatus(errno, "size of " + temporary_);
  }
  if (RenameToNew(temporary_, path_) != 0) {
    if (errno == EEXIST) return AlreadyThere(path_);
    return base::ErrnoToStatus(errno, "rename " + temporary_ + " to " + path_);
  }
  temporary_.clear();
  const std::string directory = os::DirectoryOf(path_);
  const os::UniqueFd directory_fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_fd.valid() || ::fsync(directory_fd.get()) < 0) {
    const int error = errno;
    ::unlink(path_.c_str());  // Whether the name will last is unknown, so there is no backup.
    return base::ErrnoToStatus(error, "sync directory " + directory);
  }
  return int64_t{info.st_size};
}

}  // namespace spoke::ipam
