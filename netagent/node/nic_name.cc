#include "netagent/node/nic_name.h"

#include <net/if.h>

#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::netagent {

absl::StatusOr<std::string> FindNic(const NicSearch& search) {
  const auto kept = os::ReadFile(search.file, IFNAMSIZ);
  if (kept.ok() && !kept->empty() && search.is_there(*kept)) return *kept;
  ASSIGN_OR_RETURN(std::string found, search.find());
  os::WriteFileAtomic(search.file, found, os::Durability::kVisible).IgnoreError();
  return found;
}

}  // namespace spoke::netagent
