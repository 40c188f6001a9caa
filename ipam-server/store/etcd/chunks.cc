#include "ipam-server/store/etcd/chunks.h"

#include <array>
#include <utility>

#include "fmt/core.h"

namespace spoke::ipam::etcd {
namespace {

// A key stands in a comparison, a write, and a read for the case that the comparison fails; each
// of them costs some bytes besides.
constexpr size_t kKeyCopies = 3;
constexpr size_t kBytesPerWrite = 64;

size_t BytesOf(const CompareAndPut& put) {
  return kKeyCopies * put.key.size() + (put.value ? put.value->size() : 0) + kBytesPerWrite;
}

// Writes that must be in one chunk.
struct Group {
  Chunk writes;
  size_t bytes = 0;
};

class StepPlan {
 public:
  void Add(Group group) {
    if (!chunks_.empty() && (chunks_.back().size() + group.writes.size() > kMaxChunkWrites ||
                             bytes_ + group.bytes > kMaxChunkBytes)) {
      chunks_.emplace_back();
      bytes_ = 0;
    }
    if (chunks_.empty()) chunks_.emplace_back();
    chunks_.back().insert(chunks_.back().end(), group.writes.begin(), group.writes.end());
    bytes_ += group.bytes;
  }
  std::vector<Chunk> Take() { return std::move(chunks_); }

 private:
  std::vector<Chunk> chunks_;
  size_t bytes_ = 0;  // Of the last one.
};

}  // namespace

absl::StatusOr<std::vector<std::vector<Chunk>>> PlanChunks(std::span<const CompareAndPut> batch) {
  Group all;
  std::vector<std::pair<Stage, Group>> groups;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!batch[i].joined || groups.empty()) groups.push_back({batch[i].stage, {}});
    Group& group = groups.back().second;
    for (Group* into : {&group, &all}) {
      into->writes.push_back(i);
      into->bytes += BytesOf(batch[i]);
    }
    if (group.bytes > kMaxRecordBytes || group.writes.size() > kMaxChunkWrites) {
      return absl::InvalidArgumentError(
          fmt::format("record {} is too large for etcd: {} bytes with its key, of at most {}",
                      batch[i].key, group.bytes, kMaxRecordBytes));
    }
  }
  std::vector<std::vector<Chunk>> steps;
  if (all.writes.size() <= kMaxChunkWrites && all.bytes <= kMaxChunkBytes) {
    if (!all.writes.empty()) steps.push_back({std::move(all.writes)});
    return steps;
  }
  for (const Stage stage : {Stage::kHold, Stage::kRelease, Stage::kTake, Stage::kFinish}) {
    StepPlan step;
    for (auto& [of, group] : groups) {
      if (of == stage) step.Add(std::move(group));
    }
    std::vector<Chunk> chunks = step.Take();
    if (!chunks.empty()) steps.push_back(std::move(chunks));
  }
  return steps;
}

}  // namespace spoke::ipam::etcd
