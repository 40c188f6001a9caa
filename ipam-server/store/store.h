// Durable records with compare-and-put. Implementations: MemoryStore (tests, with faults) and
// SqliteStore; store_contract.h holds the promises below as tests for all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::ipam {

struct StoredRecord {
  std::string value;
  int64_t revision = 0;  // Rises with every commit of this key; never 0.

  bool operator==(const StoredRecord&) const = default;
};

// One write of a batch: takes effect only if the stored revision is still `expected` (0: no such
// key). No value removes the key.
struct CompareAndPut {
  std::string key;
  std::optional<std::string> value;
  int64_t expected = 0;
};

// Thread-safe. What Commit() has returned OK for survives a crash of the process and of the host.
class Store {
 public:
  virtual ~Store() = default;

  // nullopt when there is no such key. Errors: kUnavailable (the back end cannot be read now).
  virtual absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) = 0;

  // Every record whose key begins with `prefix`, in key order, as one consistent snapshot.
  // Errors: kUnavailable; kDataLoss (corrupt, the message says where).
  using Visit = std::function<void(std::string_view key, const StoredRecord& record)>;
  virtual absl::Status List(std::string_view prefix, const Visit& visit) = 0;

  // All of `batch` or nothing; the new revisions in the same order (0 for a removal).
  // Errors: kAborted (a revision is another than expected: read again, decide again; the message
  // names the key); kInvalidArgument (a key twice, or an empty one); kResourceExhausted (disk full)
  // and kPermissionDenied (read-only), after which reads still work; kUnavailable, after which the
  // batch may or may not have happened.
  virtual absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) = 0;

  // For people: "sqlite:/var/lib/spoke/ipam.db".
  virtual std::string Describe() const = 0;
};

// The part of Commit()'s contract that needs no back end. Errors: kInvalidArgument.
absl::Status ValidateBatch(std::span<const CompareAndPut> batch);

}  // namespace spoke::ipam
