#include "netagent/node/node_setup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {
namespace {

// Returns the name of a path, and the path of a name. A device's name may have dots in it, which
// sysctl(8) writes as slashes.
std::string Swapped(std::string text) {
  for (char& c : text) {
    if (c == '/' || c == '.') c = c == '/' ? '.' : '/';
  }
  return text;
}

// The sysctl tree, with the report of what was done to it.
class Settings {
 public:
  explicit Settings(std::string root) : root_(std::move(root)) {}

  // `path` is relative to the root: "net/ipv4/ip_forward".
  absl::StatusOr<std::string> Read(const std::string& path) const {
    absl::StatusOr<std::string> value = os::ReadFile(root_ + "/" + path, 4096);
    if (!value.ok()) return base::Annotate(value.status(), Swapped(path));
    value->erase(value->find_last_not_of(" \n") + 1);
    return value;
  }

  // Whether it has `wanted` now. Both a change and a failure are put into the report.
  bool Ensure(const std::string& path, const std::string& wanted) {
    const absl::StatusOr<std::string> before = Read(path);
    if (!before.ok()) return Fail(before.status());
    if (*before == wanted) return true;
    const absl::Status written = Write(path, wanted);
    if (!written.ok()) return Fail(written);
    report_.changed.push_back({Swapped(path), *before, wanted});
    return true;
  }

  bool Fail(absl::Status status) {
    report_.failed.push_back(std::move(status));
    return false;
  }

  const std::string& root() const { return root_; }
  NodeSetupReport TakeReport() { return std::move(report_); }

 private:
  // Writes the whole value by one write(2), into the file that is there: /proc knows neither
  // renaming nor truncation.
  absl::Status Write(const std::string& path, const std::string& value) const {
    const std::string what = "set " + Swapped(path) + " to " + value;
    const os::UniqueFd fd(::open((root_ + "/" + path).c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) return base::ErrnoToStatus(errno, what);
    // The kernel asks for another try when it could not have its network lock at once.
    ssize_t written = -1;
    do {
      written = ::write(fd.get(), value.data(), value.size());
    } while (written < 0 && errno == EINTR);
    if (written < 0) return base::ErrnoToStatus(errno, what);
    return absl::OkStatus();
  }

  const std::string root_;
  NodeSetupReport report_;
};

// Lists the devices with IPv6 settings, sorted; not the two that stand for all and new ones.
std::vector<std::string> DevicesIn(const std::string& directory) {
  std::vector<std::string> devices;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name != "all" && name != "default" && name != "lo") devices.push_back(name);
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

void ForwardIpv6(Settings& settings) {
  const std::string conf = "net/ipv6/conf/";
  const absl::StatusOr<std::string> forwarding = settings.Read(conf + "all/forwarding");
  if (absl::IsNotFound(forwarding.status())) return;  // This kernel has no IPv6.
  if (!forwarding.ok()) {
    settings.Fail(forwarding.status());
    return;
  }
  if (*forwarding == "1") return;
  bool keeps_listening = true;
  for (const std::string& device : DevicesIn(settings.root() + "/" + conf)) {
    if (IsHostLinkName(device)) continue;
    const std::string path = conf + device + "/accept_ra";
    const absl::StatusOr<std::string> accept = settings.Read(path);
    if (absl::IsNotFound(accept.status())) continue;  // The device has gone.
    if (!accept.ok()) {
      keeps_listening = settings.Fail(accept.status());
    } else if (*accept == "1" && !settings.Ensure(path, "2")) {
      keeps_listening = false;
    }
  }
  if (!keeps_listening) {
    settings.Fail(absl::FailedPreconditionError(
        "net.ipv6.conf.all.forwarding stays off: the node could lose its default route"));
    return;
  }
  settings.Ensure(conf + "all/forwarding", "1");
}

}  // namespace

NodeSetupReport PrepareNode(const std::string& sysctl_root) {
  Settings settings(sysctl_root);
  settings.Ensure("net/ipv4/ip_forward", "1");
  ForwardIpv6(settings);
  return settings.TakeReport();
}

NodeSetupReport MakeSettings(const std::vector<node_checks::KernelSetting>& settings,
                             const std::string& sysctl_root) {
  Settings made(sysctl_root);
  for (const auto& [name, value] : settings) {
    made.Ensure(Swapped(name), value);
  }
  return made.TakeReport();
}

std::string SysctlRoot(const std::string& host_root, const std::string& own) {
  constexpr std::string_view kAlwaysThere = "/net/ipv4/ip_forward";
  const auto writable = [&](const std::string& root) {
    return ::access((root + std::string(kAlwaysThere)).c_str(), W_OK) == 0;
  };
  const std::string of_node = (host_root == "/" ? "" : host_root) + "/proc/sys";
  return !writable(own) && writable(of_node) ? of_node : own;
}

}  // namespace spoke::netagent
