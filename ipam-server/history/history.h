// What happened to each address, so that "who had 10.1.2.3 at four o'clock" has an answer. Pure.
//
// Written in chunks: one for each commit, next to the records that the commit changes, so that the
// history says nothing that did not happen. A chunk is a value under its own key; the codec is
// store/history_codec.h.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

// The events, stored as numbers: none is ever given another meaning.
enum class HistoryEvent : uint8_t {
  kAllocated = 1,    // Given to a node; the cloud has yet to attach it.
  kAttached = 2,     // It is on the node's NIC.
  kInUse = 3,        // Assigned to a pod.
  kReleased = 4,     // The pod is gone; the cooldown begins.
  kAvailable = 5,    // The cooldown is over.
  kDetaching = 6,    // Its agent gave it up.
  kDetached = 7,     // It is off the NIC.
  kFreed = 8,        // It may be allocated again.
  kQuarantined = 9,  // It is kept out of use: somebody else was seen to use it.
  kLifted = 10,      // It is out of quarantine.
  kAdopted = 11,     // Its agent assigns it and the store did not know: taken over; kInUse follows.
};

// Returns "allocated"; a stable word, for people and for scripts.
std::string_view NameOf(HistoryEvent event);

struct HistoryEntry {
  absl::Time at;  // Whole milliseconds.
  HistoryEvent event = HistoryEvent::kAllocated;
  ip::Address address;
  std::string node;
  std::string vm_id;
  // The assignment's values; empty if there is none.
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  std::string container_id;
  std::string ifname;
  uint64_t generation = 0;

  bool operator==(const HistoryEntry&) const = default;
};

inline constexpr std::string_view kHistoryPrefix = "history/";

// Returns "history/<unix ms, 20 digits>-<sequence, 10 digits>", sorted by time, then sequence.
std::string HistoryKey(int64_t unix_ms, uint64_t sequence);

struct HistoryKeyParts {
  int64_t unix_ms = 0;
  uint64_t sequence = 0;

  auto operator<=>(const HistoryKeyParts&) const = default;
};

// Returns the parts; nullopt when `key` is none of ours.
std::optional<HistoryKeyParts> ParseHistoryKey(std::string_view key);

// What happened since the last commit, and the keys of the chunks. Not thread-safe; the loop that
// commits owns it.
class HistoryBuffer {
 public:
  // The most entries of a chunk, so that no value grows beyond what a store takes.
  static constexpr size_t kMaxChunkEntries = 4096;

  // Takes the newest key in the store after a restart, so that no chunk is written over.
  explicit HistoryBuffer(HistoryKeyParts newest = {}) : newest_(newest) {}

  void Append(HistoryEntry entry) { entries_.push_back(std::move(entry)); }
  bool empty() const { return entries_.empty(); }

  struct Chunk {
    std::string key;
    std::vector<HistoryEntry> entries;
  };
  // Moves what was appended out, as chunks with new keys that are above all before, even when the
  // clock was set back.
  std::vector<Chunk> Take(absl::Time now);

 private:
  HistoryKeyParts newest_;
  std::vector<HistoryEntry> entries_;
};

struct HistoryLimits {
  absl::Duration keep = absl::Hours(24 * 30);
  uint64_t max_entries = 20'000'000;
  uint64_t max_bytes = uint64_t{1} << 29U;  // Keys included.
  // Chunks older than this are put together, for a commit often has few entries.
  absl::Duration merge_after = absl::Minutes(10);
};

struct HistoryChunkInfo {
  std::string key;
  uint64_t entries = 0;
  uint64_t bytes = 0;  // The value's bytes.
};

// The chunks that are too old, and the oldest of the rest while the limits are passed: indices into
// `chunks`, which are sorted by key. Once they are gone, nothing more is to be dropped.
std::vector<size_t> ChunksToDrop(std::span<const HistoryChunkInfo> chunks,
                                 const HistoryLimits& limits, absl::Time now);

// Runs of neighbours to be made one: the entries of all, in order, go under the key of the first,
// and the other keys are removed, in one commit. A merged chunk covers an hour at most. Once that
// is done, nothing more is to be merged.
std::vector<std::vector<size_t>> ChunksToMerge(std::span<const HistoryChunkInfo> chunks,
                                               const HistoryLimits& limits, absl::Time now);

// A pod's use of an address.
struct AssignmentSpan {
  HistoryEntry lessee;              // Node, VM, pod, container, interface and generation.
  std::optional<absl::Time> start;  // nullopt: before what is kept.
  std::optional<absl::Time> end;    // nullopt: it goes on.
};

// Returns all assignments of one address, newest first. `entries` are those of that address alone,
// oldest first. A repeated or a late entry makes no second assignment.
std::vector<AssignmentSpan> AssignmentsOf(std::span<const HistoryEntry> entries);

struct AddressHolder {
  std::string node;
  std::string vm_id;
  std::optional<AssignmentSpan> assignment;  // nullopt: no pod had it.
};

// Returns who held one address at `at`; nullopt when nobody did, or when what is kept does not say.
// `entries` are those that AssignmentsOf() takes.
std::optional<AddressHolder> HolderAt(std::span<const HistoryEntry> entries, absl::Time at);

}  // namespace spoke::ipam
