#include "ipam-server/history/history_job.h"

#include <vector>

#include "ipam-server/history/history_codec.h"
#include "ipam-server/operators/operator_log.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kPeriod = absl::Minutes(10);
// A commit holds up the loop's while it lasts, so it is kept small.
constexpr size_t kKeysPerCommit = 256;

struct Listed {
  std::vector<HistoryChunkInfo> chunks;
  std::vector<int64_t> revisions;
};

absl::StatusOr<Listed> ListChunks(Store& store) {
  Listed listed;
  absl::Status first_error;
  RETURN_IF_ERROR(store.List(kHistoryPrefix, [&](std::string_view key, const StoredRecord& record) {
    const auto entries = DecodeHistory(record.value);
    first_error.Update(base::Annotate(entries.status(), key));
    if (!entries.ok()) return;
    listed.chunks.push_back(
        {.key = std::string(key), .entries = entries->size(), .bytes = record.value.size()});
    listed.revisions.push_back(record.revision);
  }));
  RETURN_IF_ERROR(first_error);
  return listed;
}

absl::Status Drop(Store& store, const Listed& listed, const std::vector<size_t>& indices) {
  std::vector<CompareAndPut> puts;
  for (size_t i = 0; i < indices.size(); ++i) {
    puts.push_back(
        {.key = listed.chunks[indices[i]].key, .expected = listed.revisions[indices[i]]});
    if (puts.size() < kKeysPerCommit && i + 1 < indices.size()) continue;
    RETURN_IF_ERROR(store.Commit(puts).status());
    puts.clear();
  }
  return absl::OkStatus();
}

absl::Status Merge(Store& store, const Listed& listed, const std::vector<size_t>& run) {
  std::vector<HistoryEntry> entries;
  std::vector<CompareAndPut> puts;
  for (const size_t index : run) {
    ASSIGN_OR_RETURN(const auto stored, store.Get(listed.chunks[index].key));
    if (!stored) return absl::OkStatus();  // Somebody restored a backup; the next round looks anew.
    ASSIGN_OR_RETURN(const std::vector<HistoryEntry> more, DecodeHistory(stored->value));
    entries.insert(entries.end(), more.begin(), more.end());
    puts.push_back({.key = listed.chunks[index].key, .expected = stored->revision});
  }
  puts.front().value = EncodeHistory(entries);
  puts.front().stage = Stage::kHold;  // Before the others go.
  return store.Commit(puts).status();
}

}  // namespace

HistoryJob::HistoryJob(const HistoryLimits& limits, Store& store, const os::Clock& clock,
                       telemetry::Log& log)
    : limits_(limits), store_(store), clock_(clock), log_(log) {}

HistoryJob::~HistoryJob() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void HistoryJob::Start() {
  thread_ = std::thread([this] { Work(); });
}

void HistoryJob::Work() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), kPeriod)) return;
    }
    if (const absl::Status status = RunOnce(); !status.ok()) {
      log_.Warn("history_not_trimmed", {{"error", status}});
    }
  }
}

absl::Status HistoryJob::RunOnce() {
  const absl::Time now = clock_.Now();
  ASSIGN_OR_RETURN(Listed listed, ListChunks(store_));
  RETURN_IF_ERROR(Drop(store_, listed, ChunksToDrop(listed.chunks, limits_, now)));
  ASSIGN_OR_RETURN(listed, ListChunks(store_));
  for (const std::vector<size_t>& run : ChunksToMerge(listed.chunks, limits_, now)) {
    RETURN_IF_ERROR(Merge(store_, listed, run));
  }
  return TrimOperatorLog(store_, OperatorLogLimits(), now);
}

}  // namespace spoke::ipam
