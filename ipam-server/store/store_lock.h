// One server a store: a lock file that names its holder.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam {

// A lock held from Acquire() until destroyed; the kernel lets go of it when the process dies,
// however it dies. The file stays: to remove it would let two processes lock two files of one name.
class StoreLock {
 public:
  // Creates `path` if need be, locks it and writes this process's id into it. Does not wait.
  // Errors: kFailedPrecondition (another holds it: the message has its process id); as errno says.
  static absl::StatusOr<StoreLock> Acquire(const std::string& path);

 private:
  explicit StoreLock(os::UniqueFd fd) : fd_(std::move(fd)) {}

  os::UniqueFd fd_;
};

}  // namespace spoke::ipam
