// The counters of the fast path: a map of the kernel's with an entry a pod, one value a processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

namespace spoke::path_bench {

// The map. Not thread-safe.
class FastMap {
 public:
  // Opens the map by the kernel's number of it, which /proc/PID/fdinfo of its owner tells. Finds
  // out which entries have counted anything: those are read from then on. Errors: as errno says.
  static absl::StatusOr<FastMap> Open(uint32_t id);

  // Reads them, an entry a call, as an agent does. Errors: as errno says.
  absl::Status Read();

  // Returns the number of entries; each has counted both ways.
  size_t entries() const { return used_.size(); }

 private:
  explicit FastMap(os::UniqueFd fd) : fd_(std::move(fd)) {}

  absl::Status LookUp(uint32_t key);

  os::UniqueFd fd_;
  std::vector<uint32_t> used_;
  std::vector<uint64_t> values_;
};

}  // namespace spoke::path_bench
