// Durable records with compare-and-put. Implementations: MemoryStore (tests, with faults),
// SqliteStore, and EtcdStore in etcd/; store_contract.h holds the promises below as tests for all.
#pragma once

#include <cstddef>
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
  int64_t revision = 0;  // Rises with every commit of this key, also past a removal; never 0.

  bool operator==(const StoredRecord&) const = default;
};

// When a write is stored, if its batch cannot be stored at once: what a crash in between leaves
// must be safe to begin from. So an address is kept out of use before its node loses it, and a node
// loses it before another has it; last comes what says that all of it has happened.
enum class Stage : uint8_t { kHold, kRelease, kTake, kFinish };

// One write of a batch: takes effect only if the stored revision is still `expected` (0: no such
// key). No value removes the key.
struct CompareAndPut {
  std::string key;
  std::optional<std::string> value;
  int64_t expected = 0;
  Stage stage = Stage::kTake;
  bool joined = false;  // In one transaction, and so in the stage, of the write before it.
};

// Up to so many writes, whose keys and values together are well below so many bytes, every store
// commits at once.
inline constexpr size_t kAtomicWrites = 100;
inline constexpr size_t kAtomicBytes = size_t{1} << 20;

// The keys from `first` on that come before `end`, as bytes. An empty `end` is no bound.
struct KeyRange {
  std::string first;
  std::string end;

  static KeyRange WithPrefix(std::string_view prefix);
  bool Contains(std::string_view key) const {
    return key >= first && (end.empty() || key < std::string_view(end));
  }
  bool operator==(const KeyRange&) const = default;
};

struct ListOptions {
  KeyRange range;           // Everything, unless told.
  size_t limit = 0;         // The most records; 0 is all.
  bool descending = false;  // The greatest key first; with a limit, the greatest keys.
};

// What a backup holds: the file was read back and agrees.
struct BackupInfo {
  int64_t records = 0;
  int64_t bytes = 0;  // The length of the file.

  bool operator==(const BackupInfo&) const = default;
};

// Counts since the store was opened. What a back end does not have stays 0.
struct StoreStats {
  int64_t commits = 0;          // Commits that succeeded and were not empty.
  int64_t records_written = 0;  // Puts and removals in them.
  int64_t failed_commits = 0;   // Failures other than a changed revision.
  // The file's size now, without the log; on etcd, the size of the largest member's database.
  int64_t file_bytes = 0;
  // The part of the log not yet moved to the file; on etcd, the free part of the file.
  int64_t log_bytes = 0;
  int64_t checkpoints = 0;         // Times the log was moved to the file, or history was compacted.
  int64_t failed_checkpoints = 0;  // Times that this failed.
  int64_t waited_for_log = 0;      // Commits that had to wait for that, since the log was too long.
};

// Thread-safe. What Commit() has returned OK for survives a crash of the process and of the host.
class Store {
 public:
  virtual ~Store() = default;

  // Returns the record; nullopt when there is no such key. Does not wait for a Commit().
  // Errors: kUnavailable (the back end cannot be read now); kDataLoss, as List().
  virtual absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) = 0;

  // Calls `visit` with each record that `options` asks for, in key order, as one consistent
  // snapshot. Neither waits for a Commit() nor holds one up. `visit` may not call the store.
  // Errors: kUnavailable; kDataLoss (a record is damaged; the message names it and the remedy);
  // some records may have been visited by then.
  using Visit = std::function<void(std::string_view key, const StoredRecord& record)>;
  virtual absl::Status List(const ListOptions& options, const Visit& visit) = 0;

  // Visits every record whose key begins with `prefix`.
  absl::Status List(std::string_view prefix, const Visit& visit) {
    return List(ListOptions{.range = KeyRange::WithPrefix(prefix)}, visit);
  }

  // Stores `batch`, each record of it whole or not at all, and returns the new revisions in the
  // same order (0 for a removal). Records of one batch may share a revision. The cost of a sync is
  // shared by the batch: some thousand puts of a few kilobytes are well in one. A batch of up to
  // kAtomicWrites and kAtomicBytes happens as a whole or not at all. Of a larger one, an error may
  // leave any part of one stage, all of the stages before it and nothing of those after it. So
  // whoever gets an error for such a batch reads everything again before it decides; by then
  // nothing of the batch is still on its way. Errors: kAborted (a revision is another than
  // expected: read again, decide again; the message names the key); kInvalidArgument (a key twice,
  // an empty one, or a record that is too large); kResourceExhausted (disk full) and
  // kPermissionDenied (read-only), after which reads still work, and so do commits once the cause
  // is gone; kDataLoss (damaged; the message names the remedy); kFailedPrecondition (another server
  // has the store: nothing that this process knows or decides counts any more, and it must end);
  // kUnavailable, after which the batch may or may not have happened.
  virtual absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) = 0;

  // Writes a copy of one snapshot to the new file `path`, reads it back in full and compares, syncs
  // it, and only then lets it appear under its name. All is as in the store, but that the store's
  // own record says that this is a backup. Commits and reads go on meanwhile.
  // Errors: kAlreadyExists (never overwrites); kNotFound (no such directory); kDataLoss (the store
  // is damaged, or what was written is not what is read back); as errno says for the rest. After an
  // error there is no file.
  virtual absl::StatusOr<BackupInfo> Backup(const std::string& path) = 0;

  // Reads everything there is. Errors: kDataLoss (damage; the message says of what, and the
  // remedy); kUnavailable.
  virtual absl::Status CheckIntegrity() = 0;

  virtual StoreStats Stats() const = 0;

  // Returns the name for people: "sqlite:/var/lib/spoke/ipam.db".
  virtual std::string Describe() const = 0;
};

// The part of Commit()'s contract that needs no back end. Errors: kInvalidArgument.
absl::Status ValidateBatch(std::span<const CompareAndPut> batch);

// Returns kAborted for a `put` whose key has the revision `found` (0: no such key).
absl::Status Changed(const CompareAndPut& put, int64_t found);

}  // namespace spoke::ipam
