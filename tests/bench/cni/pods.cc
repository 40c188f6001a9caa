#include "tests/bench/cni/pods.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/os/unique_fd.h"

namespace spoke::cni_bench {
namespace {

// The kernel takes namespaces down from a work queue; nothing says when it is done.
constexpr absl::Duration kTearDown = absl::Milliseconds(400);

absl::Status BringLoopbackUp() {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (::ioctl(fd.get(), SIOCSIFFLAGS, &request) < 0) return base::ErrnoToStatus(errno, "lo up");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pod> PodMaker::Make() {
  const std::string path = fmt::format("{}/pod{}", directory_, ++made_);
  const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return base::ErrnoToStatus(errno, "create " + path);
  const os::UniqueFd home(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!home.valid() || ::unshare(CLONE_NEWNET) < 0) {
    return base::ErrnoToStatus(errno, "make a network namespace");
  }
  absl::Status status = BringLoopbackUp();
  if (::mount("/proc/thread-self/ns/net", path.c_str(), nullptr, MS_BIND, nullptr) < 0) {
    status.Update(base::ErrnoToStatus(errno, "mount " + path));
  } else {
    mounted_.push_back(path);
  }
  CHECK(::setns(home.get(), CLONE_NEWNET) == 0, "the thread returns to its namespace");
  RETURN_IF_ERROR(status);
  // The id is as long as containerd's and CRI-O's.
  return Pod{fmt::format("{:064x}", made_ * 0x9E3779B97F4A7C15ULL), path};
}

absl::StatusOr<std::vector<Pod>> PodMaker::Make(size_t count) {
  std::vector<Pod> pods;
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(pods.emplace_back(), Make());
  }
  return pods;
}

void PodMaker::Remove() {
  if (mounted_.empty()) return;
  for (const std::string& path : mounted_) {
    ::umount2(path.c_str(), MNT_DETACH);
    ::unlink(path.c_str());
  }
  mounted_.clear();
  absl::SleepFor(kTearDown);
}

}  // namespace spoke::cni_bench
