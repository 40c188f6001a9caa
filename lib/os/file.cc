#include "lib/os/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "lib/base/status.h"
#include "lib/os/unique_fd.h"

namespace spoke::os {
namespace {

absl::Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return base::ErrnoToStatus(errno, "write " + path);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteTemporary(const std::string& path, std::string_view content,
                            Durability durability, mode_t mode) {
  // An old file that was left behind might have other readers.
  if ((mode & S_IROTH) == 0) ::unlink(path.c_str());
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "create " + path);
  RETURN_IF_ERROR(WriteAll(fd.get(), content, path));
  // A program that others cannot run is of no use to them, whatever the umask.
  if ((mode & S_IXUSR) != 0 && ::fchmod(fd.get(), mode) < 0) {
    return base::ErrnoToStatus(errno, "make executable " + path);
  }
  if (durability == Durability::kSurvivesPower && ::fsync(fd.get()) < 0) {
    return base::ErrnoToStatus(errno, "sync " + path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open " + path);
  std::string content;
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::ErrnoToStatus(errno, "read " + path);
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(got));
    if (content.size() > max_bytes) {
      return absl::ResourceExhaustedError("read " + path + ": longer than " +
                                          std::to_string(max_bytes) + " bytes");
    }
  }
}

absl::Status WriteFileAtomic(const std::string& path, std::string_view content,
                             Durability durability, mode_t mode) {
  const std::string temporary = path + ".tmp";
  absl::Status status = WriteTemporary(temporary, content, durability, mode);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = base::ErrnoToStatus(errno, "rename " + temporary + " to " + path);
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  if (durability == Durability::kSurvivesPower) {
    const std::string directory = DirectoryOf(path);
    UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid() || ::fsync(fd.get()) < 0) {
      return base::ErrnoToStatus(errno, "sync directory " + directory);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDirectory(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) < 0) return base::ErrnoToStatus(errno, "directory " + path);
  if (!S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(path + " is not a directory");
  return absl::OkStatus();
}

absl::Status MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
  if (errno != EEXIST) return base::ErrnoToStatus(errno, "make the directory " + path);
  return CheckDirectory(path);
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace spoke::os
