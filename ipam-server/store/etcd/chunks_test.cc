#include "ipam-server/store/etcd/chunks.h"

#include <set>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam::etcd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<CompareAndPut> Writes(size_t count, size_t bytes, Stage stage) {
  std::vector<CompareAndPut> writes;
  for (size_t i = 0; i < count; ++i) {
    writes.push_back(
        {.key = "key/" + std::to_string(i), .value = std::string(bytes, 'x'), .stage = stage});
  }
  return writes;
}

TEST(PlanChunks, ASmallBatchIsOneTransactionWhateverItsStages) {
  std::vector<CompareAndPut> batch = Writes(3, 10, Stage::kTake);
  batch[1].stage = Stage::kRelease;
  EXPECT_THAT(PlanChunks(batch).value(), ElementsAre(ElementsAre(ElementsAre(0, 1, 2))));
  EXPECT_THAT(PlanChunks({}).value(), SizeIs(0));
  EXPECT_THAT(PlanChunks(Writes(kMaxChunkWrites, 10, Stage::kTake)).value(),
              ElementsAre(SizeIs(1)));
}

TEST(PlanChunks, ALargeBatchHoldsThenReleasesThenTakes) {
  std::vector<CompareAndPut> batch = Writes(301, 10, Stage::kTake);
  for (size_t i = 100; i < 200; ++i) batch[i].stage = Stage::kRelease;
  batch[300].stage = Stage::kHold;
  const auto steps = PlanChunks(batch).value();
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_THAT(steps[0], ElementsAre(ElementsAre(300)));
  EXPECT_EQ(steps[1].at(0).at(0), 100U);
  EXPECT_EQ(steps[2].at(0).at(0), 0U);
}

TEST(PlanChunks, JoinedWritesAreInOneTransaction) {
  std::vector<CompareAndPut> batch = Writes(150, 10, Stage::kTake);
  batch[100].joined = true;
  batch[100].stage = Stage::kRelease;
  const auto steps = PlanChunks(batch).value();
  ASSERT_THAT(steps, SizeIs(1)) << "its own stage does not count";
  for (const Chunk& chunk : steps[0]) {
    const std::set<size_t> writes(chunk.begin(), chunk.end());
    EXPECT_EQ(writes.contains(99), writes.contains(100));
  }
}

TEST(PlanChunks, ARecordThatEtcdWouldRefuseIsNamed) {
  const absl::Status status = PlanChunks(Writes(1, kMaxRecordBytes, Stage::kTake)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("key/0"));
  // One that is larger than what chunks are filled to is a chunk by itself.
  EXPECT_TRUE(PlanChunks(Writes(2, kMaxChunkBytes + 1, Stage::kTake)).ok());
}

TEST(PlanChunks, EveryWriteIsInOneChunkWithinTheLimits) {
  testing_support::Random random;
  for (int round = 0; round < 200; ++round) {
    std::vector<CompareAndPut> batch;
    for (uint64_t i = 0, count = random.Between(0, 1000); i < count; ++i) {
      CompareAndPut put{.key = std::to_string(i),
                        .value = std::string(random.Between(0, 9000), 'x')};
      put.stage = static_cast<Stage>(random.Between(0, 2));
      put.joined = random.OneIn(20);
      batch.push_back(std::move(put));
    }
    std::set<size_t> seen;
    const auto steps = PlanChunks(batch);
    ASSERT_TRUE(steps.ok()) << steps.status();
    for (const auto& step : *steps) {
      for (const Chunk& chunk : step) {
        ASSERT_LE(chunk.size(), kMaxChunkWrites);
        size_t bytes = 0;
        for (const size_t write : chunk) {
          bytes += batch[write].value->size();
          ASSERT_TRUE(seen.insert(write).second);
        }
        ASSERT_LE(bytes, kMaxChunkBytes);
      }
    }
    ASSERT_EQ(seen.size(), batch.size());
  }
}

}  // namespace
}  // namespace spoke::ipam::etcd
