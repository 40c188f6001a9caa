#include "ipam-server/history/history.h"

#include <algorithm>
#include <charconv>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr size_t kTimeDigits = 20;
constexpr size_t kSequenceDigits = 10;
constexpr absl::Duration kMergedSpan = absl::Hours(1);

template <typename Number>
std::optional<Number> ParseDigits(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

absl::Time TimeOf(const HistoryChunkInfo& chunk) {
  const auto parts = ParseHistoryKey(chunk.key);
  return parts ? absl::FromUnixMillis(parts->unix_ms) : absl::InfinitePast();
}

bool IsSameAssignment(const HistoryEntry& a, const HistoryEntry& b) {
  return a.node == b.node && a.vm_id == b.vm_id && a.container_id == b.container_id &&
         a.ifname == b.ifname && a.generation == b.generation;
}

// Whether the address was on, or on its way to or from, the NIC of the entry's node before it.
bool TellsOfBefore(HistoryEvent event) {
  switch (event) {
    case HistoryEvent::kAttached:
    case HistoryEvent::kInUse:
    case HistoryEvent::kReleased:
    case HistoryEvent::kAvailable:
    case HistoryEvent::kDetaching:
    case HistoryEvent::kDetached:
      return true;
    case HistoryEvent::kAllocated:
    case HistoryEvent::kFreed:
    case HistoryEvent::kQuarantined:
    case HistoryEvent::kLifted:
    case HistoryEvent::kAdopted:
      return false;
  }
  return false;
}

}  // namespace

std::string_view NameOf(HistoryEvent event) {
  switch (event) {
    case HistoryEvent::kAllocated:
      return "allocated";
    case HistoryEvent::kAttached:
      return "attached";
    case HistoryEvent::kInUse:
      return "in_use";
    case HistoryEvent::kReleased:
      return "released";
    case HistoryEvent::kAvailable:
      return "available";
    case HistoryEvent::kDetaching:
      return "detaching";
    case HistoryEvent::kDetached:
      return "detached";
    case HistoryEvent::kFreed:
      return "freed";
    case HistoryEvent::kQuarantined:
      return "quarantined";
    case HistoryEvent::kLifted:
      return "lifted";
    case HistoryEvent::kAdopted:
      return "adopted";
  }
  return "unknown";
}

std::string HistoryKey(int64_t unix_ms, uint64_t sequence) {
  return fmt::format("{}{:0{}}-{:0{}}", kHistoryPrefix, unix_ms, kTimeDigits, sequence,
                     kSequenceDigits);
}

std::optional<HistoryKeyParts> ParseHistoryKey(std::string_view key) {
  if (!key.starts_with(kHistoryPrefix)) return std::nullopt;
  key.remove_prefix(kHistoryPrefix.size());
  if (key.size() != kTimeDigits + 1 + kSequenceDigits || key[kTimeDigits] != '-') {
    return std::nullopt;
  }
  const auto unix_ms = ParseDigits<int64_t>(key.substr(0, kTimeDigits));
  const auto sequence = ParseDigits<uint64_t>(key.substr(kTimeDigits + 1));
  if (!unix_ms || !sequence) return std::nullopt;
  return HistoryKeyParts{.unix_ms = *unix_ms, .sequence = *sequence};
}

std::vector<HistoryBuffer::Chunk> HistoryBuffer::Take(absl::Time now) {
  std::vector<Chunk> chunks;
  for (size_t from = 0; from < entries_.size(); from += kMaxChunkEntries) {
    const int64_t unix_ms = absl::ToUnixMillis(now);
    newest_ = unix_ms > newest_.unix_ms
                  ? HistoryKeyParts{.unix_ms = unix_ms}
                  : HistoryKeyParts{.unix_ms = newest_.unix_ms, .sequence = newest_.sequence + 1};
    const size_t to = std::min(from + kMaxChunkEntries, entries_.size());
    const auto begin = std::make_move_iterator(entries_.begin());
    chunks.push_back(
        {.key = HistoryKey(newest_.unix_ms, newest_.sequence),
         .entries = {begin + static_cast<ptrdiff_t>(from), begin + static_cast<ptrdiff_t>(to)}});
  }
  entries_.clear();
  return chunks;
}

std::vector<size_t> ChunksToDrop(std::span<const HistoryChunkInfo> chunks,
                                 const HistoryLimits& limits, absl::Time now) {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  for (const HistoryChunkInfo& chunk : chunks) {
    entries += chunk.entries;
    bytes += chunk.bytes + chunk.key.size();
  }
  std::vector<size_t> drop;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const bool over = entries > limits.max_entries || bytes > limits.max_bytes;
    if (!over && now - TimeOf(chunks[i]) <= limits.keep) break;
    entries -= chunks[i].entries;
    bytes -= chunks[i].bytes + chunks[i].key.size();
    drop.push_back(i);
  }
  return drop;
}

std::vector<std::vector<size_t>> ChunksToMerge(std::span<const HistoryChunkInfo> chunks,
                                               const HistoryLimits& limits, absl::Time now) {
  std::vector<std::vector<size_t>> runs;
  std::vector<size_t> run;
  uint64_t entries = 0;
  const auto close = [&] {
    if (run.size() > 1) runs.push_back(run);
    run.clear();
    entries = 0;
  };
  for (size_t i = 0; i < chunks.size(); ++i) {
    const absl::Time time = TimeOf(chunks[i]);
    if (now - time < limits.merge_after) break;
    const bool fits = !run.empty() && time - TimeOf(chunks[run.front()]) <= kMergedSpan &&
                      entries + chunks[i].entries <= HistoryBuffer::kMaxChunkEntries;
    if (!fits) close();
    run.push_back(i);
    entries += chunks[i].entries;
  }
  close();
  return runs;
}

std::vector<AssignmentSpan> AssignmentsOf(std::span<const HistoryEntry> entries) {
  std::vector<AssignmentSpan> spans;
  const auto open = [&]() -> AssignmentSpan* {
    return spans.empty() || spans.back().end ? nullptr : &spans.back();
  };
  for (const HistoryEntry& entry : entries) {
    AssignmentSpan* const current = open();
    switch (entry.event) {
      case HistoryEvent::kInUse:
        if (current != nullptr && IsSameAssignment(current->lessee, entry)) break;
        if (current != nullptr) current->end = entry.at;
        spans.push_back({.lessee = entry, .start = entry.at});
        break;
      case HistoryEvent::kReleased:
        if (current != nullptr) {
          if (IsSameAssignment(current->lessee, entry)) current->end = entry.at;
        } else if (spans.empty()) {
          spans.push_back({.lessee = entry, .start = std::nullopt, .end = entry.at});
        }
        break;
      case HistoryEvent::kAllocated:
      case HistoryEvent::kDetached:
      case HistoryEvent::kFreed:
        if (current != nullptr) current->end = entry.at;  // Its node is gone.
        break;
      case HistoryEvent::kAttached:
      case HistoryEvent::kAvailable:
      case HistoryEvent::kDetaching:
      case HistoryEvent::kQuarantined:
      case HistoryEvent::kLifted:
      case HistoryEvent::kAdopted:
        break;
    }
  }
  std::reverse(spans.begin(), spans.end());
  return spans;
}

std::optional<AddressHolder> HolderAt(std::span<const HistoryEntry> entries, absl::Time at) {
  const HistoryEntry* node = nullptr;
  bool known = false;
  for (const HistoryEntry& entry : entries) {
    if (entry.at > at) {
      if (!known && TellsOfBefore(entry.event)) node = &entry;
      break;
    }
    switch (entry.event) {
      case HistoryEvent::kDetached:
      case HistoryEvent::kFreed:
        node = nullptr;
        known = true;
        break;
      case HistoryEvent::kQuarantined:
      case HistoryEvent::kLifted:
        break;  // Says nothing of who has it.
      case HistoryEvent::kAllocated:
      case HistoryEvent::kAttached:
      case HistoryEvent::kInUse:
      case HistoryEvent::kReleased:
      case HistoryEvent::kAvailable:
      case HistoryEvent::kDetaching:
      case HistoryEvent::kAdopted:
        node = &entry;
        known = true;
        break;
    }
  }
  if (node == nullptr) return std::nullopt;
  AddressHolder holder{.node = node->node, .vm_id = node->vm_id};
  for (AssignmentSpan& span : AssignmentsOf(entries)) {
    if (span.start.value_or(absl::InfinitePast()) <= at &&
        at < span.end.value_or(absl::InfiniteFuture())) {
      holder.assignment = std::move(span);
      break;
    }
  }
  return holder;
}

}  // namespace spoke::ipam
