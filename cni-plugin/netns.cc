#include "cni-plugin/netns.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "cni-plugin/json/utf8.h"

namespace spoke::cni {
namespace {

// The number NS_GET_NSTYPE of linux/nsfs.h (ioctl_ns(2)), which the C library of releases has not.
constexpr unsigned kGetNamespaceType = 0xB703;

}  // namespace

Expected<os::UniqueFd> OpenNetns(const std::string& path, const char* own) {
  const auto bad = [&](const char* what) {
    return Error{kInvalidEnvironment,
                 "CNI_NETNS is no network namespace: " + ToUtf8(path) + ": " + what,
                 "the container is gone, or its runtime has lost its namespace"};
  };
  // Without O_NONBLOCK a pipe would hold us.
  os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return bad(errno == ENOENT ? "nothing is there" : std::strerror(errno));
  if (::ioctl(fd.get(), static_cast<int>(kGetNamespaceType)) != CLONE_NEWNET) {
    return bad("it is something else");
  }
  struct stat given {};
  struct stat ours {};
  if (::fstat(fd.get(), &given) != 0 || ::stat(own, &ours) != 0) return bad(std::strerror(errno));
  if (given.st_dev == ours.st_dev && given.st_ino == ours.st_ino) {
    return Error{kInvalidNetns, "CNI_NETNS is the node's own network namespace: " + ToUtf8(path),
                 "a pod on the host's network needs no attachment; correct the runtime's call"};
  }
  return fd;
}

bool IsSameNetns(int netns, const std::string& path) {
  struct stat a {};
  struct stat b {};
  return ::fstat(netns, &a) == 0 && ::stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

}  // namespace spoke::cni
