#include "ipam-server/store/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

// Returns "process 4711", or less if the file does not say.
std::string HolderNamedIn(const std::string& path) {
  const auto content = os::ReadFile(path, 64);
  if (!content.ok()) return "another process";
  const std::string pid = content->substr(0, content->find('\n'));
  if (pid.empty() || pid.find_first_not_of("0123456789") != std::string::npos) {
    return "another process";
  }
  return "another process (" + pid + ")";
}

}  // namespace

absl::StatusOr<StoreLock> StoreLock::Acquire(const std::string& path) {
  os::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "create lock file " + path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK) return base::ErrnoToStatus(errno, "lock " + path);
    return absl::FailedPreconditionError(fmt::format(
        "{} holds {}: stop it, or give this server a store of its own", HolderNamedIn(path), path));
  }
  // The pid is only for people, so a full disk is no reason to fail: the lock holds without it.
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(fd.get(), pid.data(), pid.size(), 0);
  }
  return StoreLock(std::move(fd));
}

}  // namespace spoke::ipam
