#include "netagent/links/netns_trace.h"

#include <sys/stat.h>

#include <cerrno>

#include "lib/base/status.h"
#include "lib/netns/netns.h"

namespace spoke::netagent {

absl::StatusOr<NetnsTrace> LookAtNetns(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (path.empty() || path.front() != '/') {
    return absl::InvalidArgumentError("the path of a network namespace is not absolute");
  }
  NetnsTrace trace;
  struct stat directory {};
  if (::stat(path.substr(0, slash + 1).c_str(), &directory) < 0) {
    if (errno == ENOENT) return trace;
    return base::ErrnoToStatus(errno, "look at the directory of " + path);
  }
  trace.directory_device = directory.st_dev;
  trace.directory_inode = directory.st_ino;
  const auto netns = netns::Netns::Open(path);
  if (absl::IsNotFound(netns.status())) return trace;
  if (!netns.ok()) return netns.status();
  trace.inode = netns->identity().inode;
  // The inode's number has to do where there is no cookie.
  trace.cookie = netns->Cookie().value_or(0);
  return trace;
}

NetnsTrace TraceNetns(const std::string& path, int netns) {
  struct stat status {};
  if (::fstat(netns, &status) < 0) return {};
  const auto trace = LookAtNetns(path);
  return trace.ok() && trace->inode == status.st_ino ? *trace : NetnsTrace();
}

}  // namespace spoke::netagent
