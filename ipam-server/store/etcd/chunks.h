// How a batch of writes is divided into transactions that etcd takes. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam::etcd {

// Of one transaction. etcd refuses more than 128 operations and 1.5 MiB, which has to hold the
// comparisons as well.
inline constexpr size_t kMaxChunkWrites = kAtomicWrites;
inline constexpr size_t kMaxChunkBytes = kAtomicBytes;
inline constexpr size_t kMaxRecordBytes = size_t{1400} << 10;

// Positions in the batch that one transaction writes, in its order.
using Chunk = std::vector<size_t>;

// The steps of a batch, one after the other; the chunks of a step may be written in parallel. A
// batch that fits in one transaction is one chunk; in a larger one each stage is a step of its own,
// and a joined write is in the chunk of the write before it, whatever stage it names.
// Errors: kInvalidArgument (a record of more than kMaxRecordBytes, or joined ones of more; the
// message names the key).
absl::StatusOr<std::vector<std::vector<Chunk>>> PlanChunks(std::span<const CompareAndPut> batch);

}  // namespace spoke::ipam::etcd
