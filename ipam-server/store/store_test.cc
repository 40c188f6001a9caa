#include <filesystem>

#include "ipam-server/store/sqlite_store.h"
#include "ipam-server/store/testing/memory_store.h"
#include "ipam-server/store/testing/store_contract.h"

namespace spoke::ipam {
namespace {

std::unique_ptr<Store> OpenSqlite(const std::string& directory) {
  return OpenSqliteStore(directory + "/ipam.db").value();
}

absl::StatusOr<std::unique_ptr<Store>> RestoreMemory(const std::string& backup) {
  auto store = MemoryStore::Restore(backup);
  if (!store.ok()) return store.status();
  return *std::move(store);
}

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreContract,
    testing::Values(
        StoreFactory{.name = "Memory",
                     .open = [](const std::string&) -> std::unique_ptr<Store> {
                       return std::make_unique<MemoryStore>();
                     },
                     .restore = &RestoreMemory},
        StoreFactory{.name = "Sqlite",
                     .open = &OpenSqlite,
                     .restore = [](const std::string& backup) { return OpenSqliteStore(backup); },
                     .durable = true}),
    [](const auto& test) { return test.param.name; });

TEST(MemoryStore, AnInjectedFaultChangesNothing) {
  MemoryStore store;
  store.FailCommits(absl::ResourceExhaustedError("disk full"));
  const std::vector<CompareAndPut> batch = {{"node/a", "one", 0}};
  EXPECT_EQ(store.Commit(batch).status(), absl::ResourceExhaustedError("disk full"));
  EXPECT_FALSE(store.Get("node/a")->has_value());
  store.FailCommits(absl::OkStatus());
  EXPECT_TRUE(store.Commit(batch).ok());
}

TEST(MemoryStore, AFaultLastsAsManyCommitsAsToldTo) {
  MemoryStore store;
  store.FailNextCommits(2, absl::UnavailableError("away"));
  const std::vector<CompareAndPut> batch = {{"node/a", "one", 0}};
  EXPECT_FALSE(store.Commit(batch).ok());
  EXPECT_FALSE(store.Commit(batch).ok());
  EXPECT_TRUE(store.Commit(batch).ok());
  EXPECT_EQ(store.Stats().failed_commits, 2);
}

TEST(MemoryStore, ACommitWhoseAnswerIsLostHasHappened) {
  MemoryStore store;
  store.LoseNextAnswers(1);
  const std::vector<CompareAndPut> batch = {{"node/a", "one", 0}};
  EXPECT_EQ(store.Commit(batch).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store.Get("node/a")->value().value, "one");
  EXPECT_EQ(store.Commit(batch).status().code(), absl::StatusCode::kAborted);
}

TEST(MemoryStore, ReadsGoOnWhileACommitIsSlowAndFailWhenToldTo) {
  MemoryStore store;
  const std::vector<CompareAndPut> batch = {{"node/a", "one", 0}};
  bool read = false;
  store.BeforeCommit([&] { read = store.Get("node/a").ok(); });
  EXPECT_TRUE(store.Commit(batch).ok());
  EXPECT_TRUE(read);
  store.FailReads(absl::UnavailableError("away"));
  EXPECT_FALSE(store.Get("node/a").ok());
  EXPECT_FALSE(store.List("", [](std::string_view, const StoredRecord&) {}).ok());
}

TEST(MemoryStore, ADamagedBackupIsNotRestored) {
  const testing_support::TempDir dir;
  MemoryStore store;
  const std::vector<CompareAndPut> batch = {{"node/a", "one", 0}};
  ASSERT_TRUE(store.Commit(batch).ok());
  ASSERT_TRUE(store.Backup(dir.File("backup")).ok());
  const auto size = std::filesystem::file_size(dir.File("backup"));
  std::filesystem::resize_file(dir.File("backup"), size - 1);
  EXPECT_EQ(MemoryStore::Restore(dir.File("backup")).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace spoke::ipam
