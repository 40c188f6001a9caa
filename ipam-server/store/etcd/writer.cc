#include "ipam-server/store/etcd/writer.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ipam::etcd {
namespace {

namespace pb = etcdserverpb;

// Transactions of one batch at a time. etcd applies them one after the other; a few on their way
// keep it busy, and the members' disks are synced for several at once.
constexpr size_t kParallelChunks = 8;

void CompareRevision(pb::TxnRequest& request, const std::string& key, int64_t revision) {
  pb::Compare& compare = *request.add_compare();
  compare.set_key(key);
  compare.set_target(pb::Compare::MOD);  // 0 for a key that is not there.
  compare.set_mod_revision(revision);
}

int64_t RevisionIn(const pb::RangeResponse& found) {
  return found.kvs_size() == 0 ? 0 : found.kvs(0).mod_revision();
}

// A large transaction takes longer, with eight of them on the way to a slow disk: to give it up
// early would send it twice.
CallTime TimeFor(const pb::TxnRequest& request) {
  constexpr absl::Duration kPerChunk = absl::Seconds(3);
  const double share =
      static_cast<double>(request.ByteSizeLong()) / static_cast<double>(kMaxChunkBytes);
  CallTime time;
  time.attempt += share * kPerChunk;
  time.patience += 2 * share * kPerChunk;
  return time;
}

// The error that says most about what the caller has to do.
const absl::Status& Worse(const absl::Status& a, const absl::Status& b) {
  const auto rank = [](const absl::Status& status) {
    if (status.ok()) return 0;
    if (absl::IsAborted(status)) return 1;
    return absl::IsFailedPrecondition(status) ? 3 : 2;
  };
  return rank(b) > rank(a) ? b : a;
}

}  // namespace

Writer::Writer(Connection& connection, Leadership& leadership, Layout layout)
    : connection_(connection), leadership_(leadership), layout_(std::move(layout)) {}

absl::Status Writer::Settle() {
  RETURN_IF_ERROR(leadership_.lost());
  absl::MutexLock lock(&settling_);
  const int64_t doubts = doubts_;
  if (doubts == settled_) return absl::OkStatus();
  RETURN_IF_ERROR(leadership_.RaiseFence());
  settled_ = doubts;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> Writer::Commit(std::span<const CompareAndPut> batch) {
  ASSIGN_OR_RETURN(const auto steps, PlanChunks(batch));
  RETURN_IF_ERROR(Settle());
  Batch on_way{.puts = batch, .revisions = std::vector<int64_t>(batch.size())};
  for (const std::vector<Chunk>& step : steps) RETURN_IF_ERROR(WriteStep(step, on_way));
  return std::move(on_way.revisions);
}

absl::Status Writer::WriteStep(const std::vector<Chunk>& chunks, Batch& batch) {
  if (chunks.size() == 1) return WriteChunk(chunks.front(), batch);
  std::atomic<size_t> next = 0;
  absl::Mutex mutex;
  absl::Status worst;
  const auto work = [&] {
    for (size_t i = next++; i < chunks.size(); i = next++) {
      const absl::Status written = WriteChunk(chunks[i], batch);
      absl::MutexLock lock(&mutex);
      worst = Worse(worst, written);
      if (!worst.ok()) return;
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(chunks.size(), kParallelChunks); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return worst;
}

absl::Status Writer::WriteChunk(const Chunk& chunk, Batch& batch) {
  const int64_t fence = leadership_.fence();
  const size_t way = TakeWay();
  const std::string receipt = fmt::format("{}-{}", leadership_.lease(), ++transactions_);
  const pb::TxnRequest request = Request(chunk, batch, fence, way, receipt);
  pb::TxnResponse response;
  bool in_doubt = false;
  absl::Status status = connection_.Txn(request, response, in_doubt, TimeFor(request));
  int64_t revision = response.header().revision();
  if (status.ok() && !response.succeeded()) {
    const pb::RangeResponse& found = response.responses(1).response_range();
    if (found.kvs_size() > 0 && found.kvs(0).value() == receipt) {
      // An attempt whose answer was lost has done it.
      revision = found.kvs(0).mod_revision();
    } else {
      status = WhyRefused(chunk, batch, fence, response);
    }
  }
  if (!status.ok() && in_doubt) ++doubts_;
  ReturnWay(way);
  RETURN_IF_ERROR(status);
  for (const size_t i : chunk) batch.revisions[i] = batch.puts[i].value ? revision : 0;
  return absl::OkStatus();
}

// Fails with what stands in the way: the leader's key, the receipt, and the revision of each key.
pb::TxnRequest Writer::Request(const Chunk& chunk, const Batch& batch, int64_t fence, size_t way,
                               const std::string& receipt) const {
  pb::TxnRequest request;
  CompareRevision(request, leadership_.key(), fence);
  request.add_failure()->mutable_request_range()->set_key(leadership_.key());
  const std::string receipt_key = layout_.ReceiptKey(way);
  request.add_failure()->mutable_request_range()->set_key(receipt_key);
  for (const size_t i : chunk) {
    const CompareAndPut& put = batch.puts[i];
    const std::string key = layout_.KeyOf(put.key);
    CompareRevision(request, key, put.expected);
    pb::RangeRequest& look = *request.add_failure()->mutable_request_range();
    look.set_key(key);
    look.set_keys_only(true);
    if (put.value) {
      pb::PutRequest& write = *request.add_success()->mutable_request_put();
      write.set_key(key);
      write.set_value(*put.value);
    } else if (put.expected != 0) {
      request.add_success()->mutable_request_delete_range()->set_key(key);
    }
  }
  pb::PutRequest& write = *request.add_success()->mutable_request_put();
  write.set_key(receipt_key);
  write.set_value(receipt);
  return request;
}

absl::Status Writer::WhyRefused(const Chunk& chunk, const Batch& batch, int64_t fence,
                                const pb::TxnResponse& response) {
  const pb::RangeResponse& leader = response.responses(0).response_range();
  RETURN_IF_ERROR(leadership_.Check(leader));
  if (RevisionIn(leader) != fence) {
    // Another thread has raised it, or a raise whose answer was lost: then nobody knows it yet.
    ++doubts_;
    return absl::UnavailableError("the leader's fence was raised meanwhile: try again");
  }
  for (size_t i = 0; i < chunk.size(); ++i) {
    const int64_t found = RevisionIn(response.responses(static_cast<int>(i) + 2).response_range());
    if (found != batch.puts[chunk[i]].expected) return Changed(batch.puts[chunk[i]], found);
  }
  return absl::UnavailableError("etcd refuses a transaction without a reason");
}

size_t Writer::TakeWay() {
  absl::MutexLock lock(&mutex_);
  if (free_ways_.empty()) return ways_++;
  const size_t way = free_ways_.back();
  free_ways_.pop_back();
  return way;
}

void Writer::ReturnWay(size_t way) {
  absl::MutexLock lock(&mutex_);
  free_ways_.push_back(way);
}

}  // namespace spoke::ipam::etcd
