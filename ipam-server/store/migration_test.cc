#include "ipam-server/store/migration.h"

#include <map>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/record_codec.h"
#include "ipam-server/store/sqlite_store.h"
#include "ipam-server/store/testing/memory_store.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

constexpr absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

absl::Status Put(Store& store, const std::string& key, const std::string& value) {
  const auto found = store.Get(key).value();
  const std::vector<CompareAndPut> batch = {{key, value, found ? found->revision : 0}};
  return store.Commit(batch).status();
}

void Fill(Store& store, size_t nodes) {
  std::vector<CompareAndPut> batch;
  for (size_t i = 0; i < nodes; ++i) {
    batch.push_back({.key = fmt::format("node/{:05}", i), .value = fmt::format("value {}", i)});
  }
  batch.push_back(
      {.key = std::string(kStoreKey), .value = EncodeStore({.store_id = "abc", .epoch = 77})});
  ASSERT_TRUE(store.Commit(batch).ok());
}

std::map<std::string, std::string> All(Store& store) {
  std::map<std::string, std::string> all;
  EXPECT_TRUE(store
                  .List("", [&](std::string_view key,
                                const StoredRecord& record) { all.emplace(key, record.value); })
                  .ok());
  return all;
}

absl::StatusOr<MigrationReport> Move(Store& from, Store& to) {
  return MigrateStore(from, to, kNow, [](std::string_view, int64_t) {});
}

TEST(Migration, MovesEveryRecordAndRaisesTheEpoch) {
  const testing_support::TempDir directory;
  const auto from = OpenSqliteStore(directory.path() + "/old.db").value();
  MemoryStore to;
  Fill(*from, 2500);
  const auto report = Move(*from, to);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->records, 2501);
  EXPECT_EQ(report->written, 2501);
  auto expected = All(*from);
  expected.erase("migration/moved");
  expected[std::string(kStoreKey)] =
      EncodeStore({.store_id = "abc", .epoch = 77 + kMigrationRaise});
  EXPECT_EQ(All(to), expected);
  EXPECT_TRUE(CheckNotMoved(to).ok());
}

TEST(Migration, NoServerStartsOnAStoreThatWasMoved) {
  MemoryStore from;
  MemoryStore to;
  Fill(from, 3);
  ASSERT_TRUE(Move(from, to).ok());
  const absl::Status status = CheckNotMoved(from);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("was moved to memory at 2023-11-14T22:13:20Z"));
}

TEST(Migration, ARunThatWasCutShortIsContinuedAtAnyPlace) {
  // Each run has room for fewer commits than the move takes, the first for none.
  for (int commits = 0; commits < 8; ++commits) {
    MemoryStore from;
    MemoryStore to;
    Fill(from, 3500);
    int left = commits;
    to.BeforeCommit([&] {
      if (left-- == 0) to.FailNextCommits(1, absl::UnavailableError("away"));
    });
    auto report = Move(from, to);
    if (!report.ok()) {
      EXPECT_EQ(report.status().code(), StatusCode::kUnavailable);
      const bool begun = to.Get("migration/filling")->has_value();
      EXPECT_EQ(CheckNotMoved(to).code(),
                begun ? StatusCode::kFailedPrecondition : StatusCode::kOk);
      report = Move(from, to);
    }
    ASSERT_TRUE(report.ok()) << commits << ": " << report.status();
    EXPECT_EQ(report->records, 3501);
    EXPECT_TRUE(CheckNotMoved(to).ok());
    EXPECT_FALSE(CheckNotMoved(from).ok());
  }
}

TEST(Migration, RecordsThatTheSourceHasNoMoreAreRemoved) {
  MemoryStore from;
  MemoryStore to;
  Fill(from, 10);
  ASSERT_TRUE(Put(to, "migration/filling", "abc\nmemory").ok());
  ASSERT_TRUE(Put(to, "node/00003", "an older value").ok());
  ASSERT_TRUE(Put(to, "node/zzz", "gone since").ok());
  const auto report = Move(from, to);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->removed, 1);
  EXPECT_EQ(to.Get("node/00003")->value().value, "value 3");
  EXPECT_FALSE(to.Get("node/zzz")->has_value());
}

TEST(Migration, NothingIsOverwritten) {
  MemoryStore from;
  Fill(from, 3);
  MemoryStore to;
  ASSERT_TRUE(Put(to, "node/x", "somebody's").ok());
  const auto before = All(to);
  EXPECT_EQ(Move(from, to).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(All(to), before);
  EXPECT_TRUE(CheckNotMoved(from).ok());

  MemoryStore half;
  ASSERT_TRUE(Put(half, "migration/filling", "another\nsqlite:/old.db").ok());
  const auto status = Move(from, half).status();
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("sqlite:/old.db"));
}

TEST(Migration, SaysWhenThereIsNothingToMove) {
  MemoryStore empty;
  MemoryStore to;
  EXPECT_EQ(Move(empty, to).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(All(to).empty());

  MemoryStore from;
  Fill(from, 3);
  ASSERT_TRUE(Move(from, to).ok());
  const auto again = Move(from, to).status();
  EXPECT_EQ(again.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(again.message(), HasSubstr("nothing is left to do"));
}

TEST(Migration, HalfACopyAndAMovedStoreAreNoSource) {
  MemoryStore half;
  MemoryStore to;
  Fill(half, 3);
  ASSERT_TRUE(Put(half, "migration/filling", "abc\nsqlite:/old.db").ok());
  EXPECT_EQ(Move(half, to).status().code(), StatusCode::kFailedPrecondition);

  MemoryStore moved;
  Fill(moved, 3);
  ASSERT_TRUE(Put(moved, "migration/moved", "2023-11-14T22:13:20Z\netcd:elsewhere /spoke/").ok());
  const auto status = Move(moved, to).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("etcd:elsewhere"));
}

}  // namespace
}  // namespace spoke::ipam
