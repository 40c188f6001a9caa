#include "ipam-server/history/history_job.h"

#include "gtest/gtest.h"
#include "ipam-server/history/history_codec.h"
#include "ipam-server/store/testing/memory_store.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {
namespace {

class HistoryJobTest : public testing::Test {
 protected:
  void Put(absl::Time at, uint64_t sequence) {
    const std::vector<HistoryEntry> entries = {
        {.at = at,
         .event = HistoryEvent::kAttached,
         .address = ip::Address::V4(0x0A010000 + static_cast<uint32_t>(sequence)),
         .node = "node1",
         .vm_id = "vm"}};
    const std::vector<CompareAndPut> put = {
        {.key = HistoryKey(absl::ToUnixMillis(at), sequence), .value = EncodeHistory(entries)}};
    ASSERT_TRUE(store_.Commit(put).ok());
  }
  std::pair<size_t, size_t> ChunksAndEntries() {
    std::pair<size_t, size_t> counts;
    EXPECT_TRUE(store_
                    .List(kHistoryPrefix,
                          [&](std::string_view, const StoredRecord& record) {
                            ++counts.first;
                            counts.second += DecodeHistory(record.value).value().size();
                          })
                    .ok());
    return counts;
  }

  MemoryStore store_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  HistoryJob job_{{.keep = absl::Hours(2)}, store_, clock_, log_};
};

TEST_F(HistoryJobTest, OldChunksGoAndSmallOnesBecomeOneWithoutLosingAnEntry) {
  for (uint64_t i = 0; i < 300; ++i) Put(clock_.Now() + absl::Seconds(30) * i, i);
  clock_.Advance(absl::Minutes(150) + absl::Hours(1));
  ASSERT_TRUE(job_.RunOnce().ok());
  const auto [chunks, entries] = ChunksAndEntries();
  EXPECT_EQ(entries, 120U);  // The entries of the last hour that there was.
  EXPECT_LT(chunks, 5U);
  ASSERT_TRUE(job_.RunOnce().ok());
  EXPECT_EQ(ChunksAndEntries(), (std::pair<size_t, size_t>(chunks, entries)));
}

TEST_F(HistoryJobTest, WhatCannotBeStoredIsSaidAndTriedAgain) {
  Put(clock_.Now(), 1);
  clock_.Advance(absl::Hours(9));
  store_.FailCommits(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(job_.RunOnce().code(), absl::StatusCode::kResourceExhausted);
  store_.FailCommits(absl::OkStatus());
  EXPECT_TRUE(job_.RunOnce().ok());
  EXPECT_EQ(ChunksAndEntries().first, 0U);
}

}  // namespace
}  // namespace spoke::ipam
