#include "netagent/cni/directory_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

// A file that is written anew is heard of when its writer closes it. What is made and not yet
// written is no matter.
constexpr uint32_t kEvents = IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB |
                             IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// The events of a watched directory itself, which have no name.
constexpr uint32_t kOfDirectory = IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW;

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

DirectoryWatch::DirectoryWatch() : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

absl::Status DirectoryWatch::Watch(const std::vector<std::string>& paths) {
  names_.clear();
  absl::Status first;
  for (const std::string& path : paths) {
    names_.emplace_back(NameOf(path));
    const std::string directory = path.substr(0, path.rfind('/') + 1);
    if (::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents) < 0) {
      first.Update(base::ErrnoToStatus(errno, fmt::format("watch {}", directory)));
    }
  }
  return first;
}

bool DirectoryWatch::Concerns(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

bool DirectoryWatch::Drain() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool concerns = false;
  while (true) {
    const ssize_t size = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return concerns;
    size_t at = 0;
    while (at + sizeof(inotify_event) <= static_cast<size_t>(size)) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      // The kernel fills the name up with zeros.
      const char* const name = buffer.data() + at + sizeof(event);
      concerns = concerns || (event.mask & kOfDirectory) != 0 ||
                 Concerns({name, ::strnlen(name, event.len)});
      at += sizeof(event) + event.len;
    }
  }
}

}  // namespace spoke::netagent
