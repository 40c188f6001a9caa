// One batch into etcd: divided, compared, fenced, and known to have happened or not. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/store/etcd/chunks.h"
#include "ipam-server/store/etcd/connection.h"
#include "ipam-server/store/etcd/layout.h"
#include "ipam-server/store/etcd/leadership.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam::etcd {

class Writer {
 public:
  // Borrows all but `layout`.
  Writer(Connection& connection, Leadership& leadership, Layout layout);

  // As Store::Commit().
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch);

  // Makes sure that no write which was given up is still on its way; call it before a read. Errors:
  // as Leadership::RaiseFence().
  absl::Status Settle();

 private:
  // A batch on its way, for the threads that write its chunks.
  struct Batch {
    std::span<const CompareAndPut> puts;
    std::vector<int64_t> revisions;
  };
  absl::Status WriteStep(const std::vector<Chunk>& chunks, Batch& batch);
  absl::Status WriteChunk(const Chunk& chunk, Batch& batch);
  etcdserverpb::TxnRequest Request(const Chunk& chunk, const Batch& batch, int64_t fence,
                                   size_t way, const std::string& receipt) const;
  absl::Status WhyRefused(const Chunk& chunk, const Batch& batch, int64_t fence,
                          const etcdserverpb::TxnResponse& response);
  size_t TakeWay();
  void ReturnWay(size_t way);

  Connection& connection_;
  Leadership& leadership_;
  const Layout layout_;
  std::atomic<int64_t> transactions_ = 0;
  // Writes that were given up and may still happen, and how many of them a raised fence has ended.
  std::atomic<int64_t> doubts_ = 0;
  absl::Mutex settling_;
  int64_t settled_ ABSL_GUARDED_BY(settling_) = 0;
  absl::Mutex mutex_;
  std::vector<size_t> free_ways_ ABSL_GUARDED_BY(mutex_);
  size_t ways_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam::etcd
