#include <fstream>

#include "ipam-server/store/memory_store.h"
#include "ipam-server/store/sqlite_store.h"
#include "ipam-server/store/store_contract.h"

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

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

TEST(SqliteStore, KeepsRecordsAndRevisionsAcrossARestart) {
  const testing_support::TempDir dir;
  const std::vector<CompareAndPut> batch = {{"node/a", "one", 0}};
  const int64_t revision = OpenSqlite(dir.path())->Commit(batch).value().at(0);
  const auto reopened = OpenSqlite(dir.path());
  EXPECT_EQ(**reopened->Get("node/a"), (StoredRecord{"one", revision}));
}

TEST(SqliteStore, TwoServersCannotShareAFile) {
  const testing_support::TempDir dir;
  const auto first = OpenSqlite(dir.path());
  const auto second = OpenSqliteStore(dir.File("ipam.db"));
  EXPECT_EQ(second.status().code(), kFailedPrecondition) << second.status();
  EXPECT_NE(std::string(second.status().message()).find("another process"), std::string::npos);
}

TEST(SqliteStore, AFileThatIsNoDatabaseIsNamedNotOverwritten) {
  const testing_support::TempDir dir;
  std::ofstream(dir.File("ipam.db")) << std::string(4096, 'x');
  const auto store = OpenSqliteStore(dir.File("ipam.db"));
  EXPECT_EQ(store.status().code(), kDataLoss) << store.status();
  EXPECT_NE(std::string(store.status().message()).find(dir.File("ipam.db")), std::string::npos);
}

TEST(SqliteStore, AMissingDirectoryIsNotFound) {
  EXPECT_EQ(OpenSqliteStore("/nonexistent/ipam.db").status().code(), absl::StatusCode::kNotFound);
}

TEST(MemoryStore, AnInjectedFaultChangesNothing) {
  MemoryStore store;
  store.FailCommits(absl::ResourceExhaustedError("disk full"));
  const std::vector<CompareAndPut> batch = {{"node/a", "one", 0}};
  EXPECT_EQ(store.Commit(batch).status(), absl::ResourceExhaustedError("disk full"));
  EXPECT_FALSE(store.Get("node/a")->has_value());
  store.FailCommits(absl::OkStatus());
  EXPECT_TRUE(store.Commit(batch).ok());
}

}  // namespace
}  // namespace spoke::ipam
