#include "netagent/links/pod_ipv6.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/status.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {
namespace {

absl::Status SwitchOnHere(const std::string& link, const std::string& sysctl_root) {
  const std::string path = sysctl_root + "/net/ipv6/conf/" + link + "/disable_ipv6";
  const os::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open " + path);
  // The kernel asks for another try when it could not have its network lock at once.
  ssize_t written = -1;
  do {
    written = ::write(fd.get(), "0", 1);
  } while (written < 0 && errno == EINTR);
  return written < 0 ? base::ErrnoToStatus(errno, "write " + path) : absl::OkStatus();
}

}  // namespace

absl::Status SwitchOnIpv6(const netns::Netns& pod, const std::string& link,
                          const std::string& sysctl_root) {
  return pod.Run([&]() -> absl::Status {
    RETURN_IF_ERROR(SwitchOnHere("lo", sysctl_root));
    return SwitchOnHere(link, sysctl_root);
  });
}

}  // namespace spoke::netagent
