#include "ipam-server/store/store.h"

#include "absl/container/flat_hash_set.h"

namespace spoke::ipam {

absl::Status ValidateBatch(std::span<const CompareAndPut> batch) {
  absl::flat_hash_set<std::string> keys;
  for (const CompareAndPut& put : batch) {
    if (put.key.empty()) return absl::InvalidArgumentError("a record needs a key");
    if (!keys.insert(put.key).second) {
      return absl::InvalidArgumentError("key " + put.key + " stands twice in one batch");
    }
  }
  return absl::OkStatus();
}

}  // namespace spoke::ipam
