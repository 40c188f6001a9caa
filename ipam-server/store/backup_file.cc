#include "ipam-server/store/backup_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam {
namespace {

absl::Status AlreadyThere(const std::string& path) {
  return absl::AlreadyExistsError(
      path + " exists already, and a backup never overwrites: choose another name, or remove it");
}

constexpr std::string_view kScratch = ".backup-";
constexpr std::string_view kTemporary = ".tmp-";
constexpr size_t kRandomLetters = 6;  // The letters that mkostemp(3) replaces.

// Takes leading digits off `text`; false: there are none.
bool TakeDigits(std::string_view& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

bool Take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

// Whether a file of that name is a backup of the store in the file `store`, of the same directory,
// on its way; also SQLite's own journal of one.
bool IsScratch(std::string_view name, std::string_view store) {
  if (!Take(name, store) || !Take(name, kScratch) || !TakeDigits(name) || !Take(name, "-") ||
      !TakeDigits(name)) {
    return false;
  }
  if (Take(name, kTemporary)) {
    if (name.size() < kRandomLetters) return false;
    const std::string_view random = name.substr(0, kRandomLetters);
    if (!std::all_of(random.begin(), random.end(), absl::ascii_isalnum)) return false;
    name.remove_prefix(kRandomLetters);
  }
  return name.empty() || name == "-journal";
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
  std::string temporary = path + std::string(kTemporary) + std::string(kRandomLetters, 'X');
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
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);  // A hint: some file systems cannot.
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

// --- Beside the store. ---

std::string ScratchBackupPath(const std::string& store, absl::Time now) {
  return fmt::format("{}{}{}-{}", store, kScratch, ::getpid(), absl::ToUnixNanos(now));
}

absl::StatusOr<int> RemoveScratchBackups(const std::string& store) {
  const std::filesystem::path path(store);
  const std::string directory = os::DirectoryOf(store);
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  if (error) return base::ErrnoToStatus(error.value(), "list " + directory);
  int removed = 0;
  absl::Status first_error;
  for (; entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (error) return base::ErrnoToStatus(error.value(), "list " + directory);
    if (!IsScratch(entry->path().filename().string(), path.filename().string())) continue;
    if (!entry->is_regular_file(error) || entry->is_symlink(error)) continue;
    if (::unlink(entry->path().c_str()) == 0) {
      ++removed;
    } else {
      first_error.Update(base::ErrnoToStatus(errno, "remove " + entry->path().string()));
    }
  }
  RETURN_IF_ERROR(first_error);
  return removed;
}

}  // namespace spoke::ipam
