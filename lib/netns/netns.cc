#include "lib/netns/netns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::netns {
namespace {

constexpr int kNetnsCookie = 71;  // The option SO_NETNS_COOKIE, which not every C library has.

// This is the thread's own: /proc/self is the main thread's.
constexpr const char* kCurrent = "/proc/thread-self/ns/net";

// Leads back in any case, also after an exception from inside.
class Return {
 public:
  explicit Return(os::UniqueFd home) : home_(std::move(home)) {}
  Return(const Return&) = delete;
  Return& operator=(const Return&) = delete;
  ~Return() {
    CHECK(::setns(home_.get(), CLONE_NEWNET) == 0, "a thread leaves a pod's network namespace");
  }

 private:
  const os::UniqueFd home_;
};

}  // namespace

absl::StatusOr<Netns> Netns::Verify(os::UniqueFd fd, const std::string& what) {
  // The file system is checked first: on another one's file the ioctl's number could mean anything.
  struct statfs file_system {};
  if (::fstatfs(fd.get(), &file_system) < 0) {
    return base::ErrnoToStatus(errno, "look at " + what);
  }
  if (file_system.f_type != NSFS_MAGIC || ::ioctl(fd.get(), NS_GET_NSTYPE) != CLONE_NEWNET) {
    return absl::FailedPreconditionError(what + " is not a network namespace");
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) < 0) return base::ErrnoToStatus(errno, "look at " + what);
  return Netns(std::move(fd), Identity{.device = status.st_dev, .inode = status.st_ino});
}

absl::StatusOr<Netns> Netns::Current() { return Open(kCurrent); }

absl::StatusOr<Netns> Netns::Open(const std::string& path) {
  os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open " + path);
  return Verify(std::move(fd), path);
}

absl::StatusOr<Netns> Netns::Create() {
  os::UniqueFd home(::open(kCurrent, O_RDONLY | O_CLOEXEC));
  if (!home.valid()) return base::ErrnoToStatus(errno, "open the thread's network namespace");
  if (::unshare(CLONE_NEWNET) < 0) return base::ErrnoToStatus(errno, "make a network namespace");
  const Return back(std::move(home));
  return Current();
}

absl::StatusOr<Netns> Netns::FromDescriptor(int fd) {
  os::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    if (errno == EBADF) return absl::FailedPreconditionError("the descriptor is not open");
    return base::ErrnoToStatus(errno, "copy a namespace's descriptor");
  }
  return Verify(std::move(copy), "the descriptor");
}

absl::StatusOr<uint64_t> Netns::Cookie() const {
  uint64_t cookie = 0;
  RETURN_IF_ERROR(Run([&cookie]() -> absl::Status {
    const os::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return base::ErrnoToStatus(errno, "open a socket in a network namespace");
    socklen_t size = sizeof(cookie);
    if (::getsockopt(socket.get(), SOL_SOCKET, kNetnsCookie, &cookie, &size) == 0) {
      return absl::OkStatus();
    }
    if (errno == ENOPROTOOPT) {
      return absl::UnimplementedError("this kernel has no cookies of network namespaces");
    }
    return base::ErrnoToStatus(errno, "read the cookie of a network namespace");
  }));
  return cookie;
}

absl::Status Netns::Run(absl::FunctionRef<absl::Status()> inside) const {
  os::UniqueFd home(::open(kCurrent, O_RDONLY | O_CLOEXEC));
  if (!home.valid()) return base::ErrnoToStatus(errno, "open the thread's network namespace");
  if (::setns(fd_.get(), CLONE_NEWNET) < 0) {
    return base::ErrnoToStatus(errno, "enter a network namespace");
  }
  const Return back(std::move(home));
  return inside();
}

absl::StatusOr<Trace> LookAt(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (path.empty() || path.front() != '/') {
    return absl::InvalidArgumentError("the path of a network namespace is not absolute");
  }
  Trace trace;
  struct stat directory {};
  if (::stat(path.substr(0, slash + 1).c_str(), &directory) < 0) {
    if (errno == ENOENT) return trace;
    return base::ErrnoToStatus(errno, "look at the directory of " + path);
  }
  trace.directory_device = directory.st_dev;
  trace.directory_inode = directory.st_ino;
  const auto netns = Netns::Open(path);
  if (absl::IsNotFound(netns.status())) return trace;
  if (!netns.ok()) return netns.status();
  trace.inode = netns->identity().inode;
  // The inode's number has to do where there is no cookie.
  trace.cookie = netns->Cookie().value_or(0);
  return trace;
}

Trace TraceOf(const std::string& path, int netns) {
  struct stat status {};
  if (::fstat(netns, &status) < 0) return {};
  const auto trace = LookAt(path);
  return trace.ok() && trace->inode == status.st_ino ? *trace : Trace();
}

}  // namespace spoke::netns
