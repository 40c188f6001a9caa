#include "ipam-server/store/store.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/core.h"

namespace spoke::ipam {

KeyRange KeyRange::WithPrefix(std::string_view prefix) {
  // The end is the first key after all that begin with the prefix: its last byte, one up. A byte
  // that cannot go up leaves that to the one before it; when none can, there is no bound.
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {.first = std::string(prefix), .end = std::move(end)};
}

absl::Status ValidateBatch(std::span<const CompareAndPut> batch) {
  absl::flat_hash_set<std::string_view> keys;
  keys.reserve(batch.size());
  for (const CompareAndPut& put : batch) {
    if (put.key.empty()) return absl::InvalidArgumentError("a record needs a key");
    if (!keys.insert(put.key).second) {
      return absl::InvalidArgumentError("key " + put.key + " stands twice in one batch");
    }
  }
  return absl::OkStatus();
}

absl::Status Changed(const CompareAndPut& put, int64_t found) {
  return absl::AbortedError(fmt::format("key {} has changed: it is at revision {}, expected was {}",
                                        put.key, found, put.expected));
}

}  // namespace spoke::ipam
