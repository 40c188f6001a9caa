// Pods as far as a CNI plugin sees them: network namespaces under names in the file system.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/cni/chain.h"

namespace spoke::cni_bench {

// Makes namespaces, mounted below one directory, and takes them away. The calling thread stays
// where it is. Not thread-safe.
class PodMaker {
 public:
  // `directory` has to be on a file system of this process's mount namespace.
  explicit PodMaker(std::string directory) : directory_(std::move(directory)) {}
  PodMaker(const PodMaker&) = delete;
  PodMaker& operator=(const PodMaker&) = delete;
  ~PodMaker() { Remove(); }

  // Makes a pod with lo up, as the runtime's loopback plugin leaves it. Errors: as errno says.
  absl::StatusOr<Pod> Make();
  absl::StatusOr<std::vector<Pod>> Make(size_t count);

  // Takes all away and waits until the kernel has. What is torn down while something is measured
  // is measured with it, so this belongs between measurements.
  void Remove();

 private:
  const std::string directory_;
  std::vector<std::string> mounted_;
  size_t made_ = 0;
};

}  // namespace spoke::cni_bench
