// Finds the NIC of a node whose configuration does not name it.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace spoke::netagent {

struct NicSearch {
  std::string file;  // Keeps the name for the boot: on tmpfs.
  std::function<bool(const std::string& name)> is_there;
  std::function<absl::StatusOr<std::string>()> find;
};

// Returns the name that `file` has, as long as such a device is there, else what `find` finds, and
// writes it there. So an agent that starts again keeps its NIC, though somebody has taken the
// default route away meanwhile, or it leads elsewhere: the addresses are on that NIC. A file that
// cannot be read or written only costs another search. Not thread-safe. Errors: those of `find`.
absl::StatusOr<std::string> FindNic(const NicSearch& search);

}  // namespace spoke::netagent
