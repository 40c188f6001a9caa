#include "ipam-server/history/history.h"

#include <map>
#include <utility>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'000);

absl::Time At(int seconds) { return kNow + absl::Seconds(seconds); }

HistoryEntry Entry(int seconds, HistoryEvent event, uint64_t generation = 0) {
  HistoryEntry entry{.at = At(seconds),
                     .event = event,
                     .address = ip::Address::V4(0x0A000001),
                     .node = "n1",
                     .vm_id = "vm1"};
  if (generation > 0) {
    entry.generation = generation;
    entry.container_id = fmt::format("c{}", generation);
    entry.pod_name = fmt::format("pod{}", generation);
    entry.ifname = "eth0";
  }
  return entry;
}

TEST(History, KeysSortByTimeThenSequence) {
  EXPECT_EQ(HistoryKey(1'700'000'000'000, 7), "history/00000001700000000000-0000000007");
  EXPECT_LT(HistoryKey(9, 10), HistoryKey(10, 9));
  EXPECT_LT(HistoryKey(9, 9), HistoryKey(9, 10));
  const auto parts = ParseHistoryKey(HistoryKey(1'700'000'000'000, 7));
  EXPECT_EQ(parts, (HistoryKeyParts{1'700'000'000'000, 7}));
  for (const char* bad :
       {"", "history/", "node/1", "history/00000001700000000000-000000000x",
        "history/-0000001700000000000-0000000007", "history/00000001700000000000x0000000007"}) {
    EXPECT_EQ(ParseHistoryKey(bad), std::nullopt) << bad;
  }
}

TEST(HistoryBuffer, KeysRiseEvenWhenTheClockIsSetBack) {
  HistoryBuffer buffer(HistoryKeyParts{absl::ToUnixMillis(At(5)), 3});
  std::string last = HistoryKey(absl::ToUnixMillis(At(5)), 3);
  for (const int seconds : {0, 5, 6, 6, 2}) {
    buffer.Append(Entry(seconds, HistoryEvent::kAttached));
    const auto chunks = buffer.Take(At(seconds));
    ASSERT_EQ(chunks.size(), 1U);
    EXPECT_LT(last, chunks[0].key);
    last = chunks[0].key;
  }
  EXPECT_THAT(buffer.Take(At(9)), IsEmpty());
}

TEST(HistoryBuffer, ALargeCommitMakesSeveralChunksAndLosesNothing) {
  HistoryBuffer buffer;
  for (int i = 0; i < 10'000; ++i) buffer.Append(Entry(i, HistoryEvent::kAttached));
  int next = 0;
  for (const auto& chunk : buffer.Take(kNow)) {
    EXPECT_LE(chunk.entries.size(), HistoryBuffer::kMaxChunkEntries);
    for (const auto& entry : chunk.entries) EXPECT_EQ(entry.at, At(next++));
  }
  EXPECT_EQ(next, 10'000);
  EXPECT_TRUE(buffer.empty());
}

HistoryChunkInfo ChunkAt(absl::Time time, uint64_t entries, uint64_t bytes = 100) {
  return {.key = HistoryKey(absl::ToUnixMillis(time), 0), .entries = entries, .bytes = bytes};
}

TEST(ChunksToDrop, WhatIsTooOldGoes) {
  const std::vector<HistoryChunkInfo> chunks{ChunkAt(kNow - absl::Hours(721), 1),
                                             ChunkAt(kNow - absl::Hours(720), 1), ChunkAt(kNow, 1)};
  EXPECT_THAT(ChunksToDrop(chunks, {}, kNow), ElementsAre(0));
}

TEST(ChunksToDrop, TheOldestGoWhileALimitIsPassed) {
  std::vector<HistoryChunkInfo> chunks;
  for (int i = 0; i < 5; ++i) chunks.push_back(ChunkAt(At(i), 10));
  EXPECT_THAT(ChunksToDrop(chunks, {.max_entries = 25}, kNow), ElementsAre(0, 1, 2));
  const uint64_t each = 100 + chunks[0].key.size();
  EXPECT_THAT(ChunksToDrop(chunks, {.max_bytes = 4 * each}, kNow), ElementsAre(0));
  EXPECT_THAT(ChunksToDrop(chunks, {.max_bytes = 5 * each}, kNow), IsEmpty());
}

TEST(ChunksToMerge, SmallNeighboursBecomeOneWithinTheHour) {
  const std::vector<HistoryChunkInfo> chunks{
      ChunkAt(At(0), 1),       ChunkAt(At(1), 2),    ChunkAt(At(3600), 3), ChunkAt(At(3601), 4),
      ChunkAt(At(3602), 4096), ChunkAt(At(3603), 5), ChunkAt(At(9000), 6), ChunkAt(At(9001), 6)};
  EXPECT_THAT(ChunksToMerge(chunks, {}, At(9500)), ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_THAT(ChunksToMerge(chunks, {}, At(9601)),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(6, 7)));
}

TEST(Chunks, MergingAndDroppingReachTheirGoalInOneStep) {
  testing_support::Random random;
  for (int world = 0; world < 2000; ++world) {
    std::vector<HistoryChunkInfo> chunks;
    absl::Time time = kNow;
    uint64_t entries = 0;
    for (uint64_t i = random.Between(0, 50); i > 0; --i) {
      time += absl::Seconds(random.Between(1, 2000));
      chunks.push_back(ChunkAt(time, random.Between(1, 2500)));
      entries += chunks.back().entries;
    }
    const absl::Time now = time + absl::Seconds(random.Between(0, 1000));
    const HistoryLimits limits{.keep = absl::Hours(random.Between(1, 20)),
                               .max_entries = random.Between(0, 60'000)};
    std::vector<HistoryChunkInfo> merged = chunks;
    const auto runs = ChunksToMerge(chunks, limits, now);
    for (const auto& run : runs) {
      for (size_t i = 1; i < run.size(); ++i) {
        merged[run[0]].entries += merged[run[i]].entries;
        merged[run[i]].key.clear();
      }
    }
    std::erase_if(merged, [](const HistoryChunkInfo& chunk) { return chunk.key.empty(); });
    uint64_t kept = 0;
    for (const auto& chunk : merged) {
      ASSERT_LE(chunk.entries, HistoryBuffer::kMaxChunkEntries);
      kept += chunk.entries;
    }
    ASSERT_EQ(kept, entries) << "merging loses nothing";
    ASSERT_THAT(ChunksToMerge(merged, limits, now), IsEmpty());

    const auto drop = ChunksToDrop(merged, limits, now);
    merged.erase(merged.begin(), merged.begin() + static_cast<ptrdiff_t>(drop.size()));
    kept = 0;
    for (const auto& chunk : merged) kept += chunk.entries;
    ASSERT_LE(kept, limits.max_entries);
    ASSERT_TRUE(merged.empty() ||
                now - absl::FromUnixMillis(ParseHistoryKey(merged[0].key)->unix_ms) <= limits.keep);
    ASSERT_THAT(ChunksToDrop(merged, limits, now), IsEmpty());
  }
}

using enum HistoryEvent;

TEST(AssignmentsOf, PairsEachAssignmentWithItsEndNewestFirst) {
  const std::vector<HistoryEntry> entries{Entry(0, kAllocated),  Entry(1, kAttached),
                                          Entry(2, kInUse, 1),   Entry(3, kReleased, 1),
                                          Entry(33, kAvailable), Entry(40, kInUse, 2)};
  const auto spans = AssignmentsOf(entries);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].lessee.pod_name, "pod2");
  EXPECT_EQ(spans[0].start, At(40));
  EXPECT_EQ(spans[0].end, std::nullopt);
  EXPECT_EQ(spans[1].lessee.pod_name, "pod1");
  EXPECT_EQ(spans[1].start, At(2));
  EXPECT_EQ(spans[1].end, At(3));
}

TEST(AssignmentsOf, RepeatedAndLateEntriesMakeNoSecondAssignment) {
  const std::vector<HistoryEntry> entries{Entry(2, kInUse, 1),    Entry(3, kInUse, 1),
                                          Entry(4, kReleased, 1), Entry(5, kReleased, 1),
                                          Entry(6, kInUse, 2),    Entry(7, kReleased, 1)};
  const auto spans = AssignmentsOf(entries);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].end, std::nullopt) << "a late end is not the end of another";
  EXPECT_EQ(spans[1].start, At(2));
  EXPECT_EQ(spans[1].end, At(4));
}

TEST(AssignmentsOf, TheEndOfTheNodeIsTheEndOfTheAssignment) {
  const std::vector<HistoryEntry> entries{Entry(2, kInUse, 1), Entry(9, kFreed)};
  EXPECT_EQ(AssignmentsOf(entries).at(0).end, At(9));
}

TEST(HolderAt, AnswersFromTheFirstEntryWhenTheBeginningIsNoLongerKept) {
  const std::vector<HistoryEntry> entries{Entry(10, kReleased, 4), Entry(40, kAvailable)};
  const auto holder = HolderAt(entries, At(5));
  ASSERT_TRUE(holder.has_value());
  EXPECT_EQ(holder->node, "n1");
  ASSERT_TRUE(holder->assignment.has_value());
  EXPECT_EQ(holder->assignment->lessee.pod_name, "pod4");
  EXPECT_EQ(holder->assignment->start, std::nullopt);
  EXPECT_EQ(HolderAt(std::vector<HistoryEntry>{Entry(10, kAllocated)}, At(5)), std::nullopt);
  EXPECT_EQ(HolderAt({}, At(5)), std::nullopt);
}

// The life of one address, with what was true in each second.
struct Life {
  std::vector<HistoryEntry> entries;
  std::map<int, std::pair<std::string, std::string>> truth;  // Node and pod from then on.
};

Life RandomLife(testing_support::Random& random) {
  Life life;
  int second = 0;
  uint64_t generation = 0;
  std::string node;
  const auto happens = [&](HistoryEvent event, const std::string& pod) {
    second += static_cast<int>(random.Between(1, 5));
    HistoryEntry entry =
        Entry(second, event, event == kInUse || event == kReleased ? generation : 0);
    entry.node = node;
    life.entries.push_back(entry);
    const bool off = event == kDetached || event == kFreed;
    life.truth[second] = {off ? "" : node, pod};
  };
  for (uint64_t nodes = random.Between(1, 3); nodes > 0; --nodes) {
    node = fmt::format("n{}", random.Between(1, 3));
    happens(kAllocated, "");
    happens(kAttached, "");
    for (uint64_t pods = random.Between(0, 3); pods > 0; --pods) {
      ++generation;
      const std::string pod = fmt::format("pod{}", generation);
      happens(kInUse, pod);
      if (random.OneIn(4)) happens(kInUse, pod);
      if (random.OneIn(5)) {  // The VM goes while the pod runs.
        happens(kFreed, "");
        break;
      }
      happens(kReleased, "");
      happens(kAvailable, "");
    }
    if (life.entries.back().event == kFreed) continue;
    happens(kDetaching, "");
    happens(kDetached, "");
    happens(kFreed, "");
  }
  return life;
}

TEST(HolderAt, TellsTheTruthForAnyLifeAndAnyTime) {
  testing_support::Random random;
  int held = 0;
  Life life;
  for (int i = 0; i < testing_support::kRandomCases; ++i) {
    if (i % 10 == 0) life = RandomLife(random);
    const int second = static_cast<int>(random.Between(0, 60));
    const auto after = life.truth.upper_bound(second);
    const std::pair<std::string, std::string> truth = after == life.truth.begin()
                                                          ? std::pair<std::string, std::string>{}
                                                          : std::prev(after)->second;
    const auto holder = HolderAt(life.entries, At(second));
    ASSERT_EQ(holder ? holder->node : "", truth.first);
    ASSERT_EQ(holder && holder->assignment ? holder->assignment->lessee.pod_name : "",
              truth.second);
    held += holder ? 1 : 0;

    // The answer is right or there is none when the beginning is lost, except that an address that
    // was free is not told from one that nothing is known of.
    const std::vector<HistoryEntry> rest(
        life.entries.begin() + static_cast<ptrdiff_t>(random.Between(0, life.entries.size())),
        life.entries.end());
    if (rest.empty() || At(second) < rest.front().at - absl::Seconds(1)) continue;
    const auto partial = HolderAt(rest, At(second));
    if (partial) {
      ASSERT_EQ(partial->node, truth.first);
    }
  }
  EXPECT_GT(held, 10'000);
}

}  // namespace
}  // namespace spoke::ipam
