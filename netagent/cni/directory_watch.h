// Hears from the kernel (inotify) when somebody removes, replaces or changes a file of some
// directories. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {

class DirectoryWatch {
 public:
  // Makes a watch of nothing. Without inotify, such as where a user has used up his share of it, it
  // stays deaf: fd() is then -1.
  DirectoryWatch();

  // Watches the directory of each path, and hears of these paths only. It may be called again, also
  // for a directory that was replaced since. Errors: as errno says, of the first directory that
  // cannot be watched; the others are.
  absl::Status Watch(const std::vector<std::string>& paths);

  // Becomes readable when something has happened.
  int fd() const { return inotify_.get(); }

  // Takes what has happened, and returns whether any of it concerns the paths.
  bool Drain();

 private:
  bool Concerns(std::string_view name) const;

  os::UniqueFd inotify_;
  std::vector<std::string> names_;  // The last parts of the paths.
};

}  // namespace spoke::netagent
