// What is SQLite's alone: files, versions, damage. The rest is in store_contract.h.
#include "ipam-server/store/sqlite_store.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/sqlite_handle.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

void RunSql(const std::string& path, const std::string& sql) {
  const auto database =
      sqlite::Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr).value();
  const absl::Status status = sqlite::Execute(database.get(), sql);
  ASSERT_TRUE(status.ok()) << status;
}

std::string ContentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void WriteContent(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

class SqliteStoreTest : public testing::Test {
 protected:
  std::unique_ptr<Store> Open() { return OpenSqliteStore(path()).value(); }
  absl::Status OpenError() { return OpenSqliteStore(path()).status(); }

  void Fill(int records) {
    const auto store = Open();
    std::vector<CompareAndPut> batch;
    for (int i = 0; i < records; ++i) {
      batch.push_back({"node/" + std::to_string(i), std::string(5000, 'a'), 0});
    }
    ASSERT_TRUE(store->Commit(batch).ok());
  }

  // Every error is of use to whoever reads it: which file, and what now.
  void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& remedy) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr(path()));
    EXPECT_THAT(MessageOf(status), HasSubstr(remedy));
  }

  std::string path() const { return directory_.File("ipam.db"); }
  const testing_support::TempDir& directory() const { return directory_; }

 private:
  const testing_support::TempDir directory_;
};

TEST_F(SqliteStoreTest, TwoServersCannotShareAFileAndTheHolderIsNamed) {
  const auto first = Open();
  const absl::Status second = OpenError();
  ExpectError(second, kFailedPrecondition, "another process");
  EXPECT_THAT(MessageOf(second), HasSubstr(std::to_string(::getpid())));
}

// A process that knows nothing of the lock file, such as the sqlite3 command, is kept out too.
TEST_F(SqliteStoreTest, NoOtherProcessGetsAtTheFileWhileAServerHasIt) {
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(go.data()), 0);
  const pid_t child = ::fork();  // It forks before the store has threads.
  if (child == 0) {
    char byte = 0;
    if (::read(go[0], &byte, 1) != 1) ::_exit(2);
    const auto other = sqlite::Open(path(), SQLITE_OPEN_READWRITE, "unix");
    const auto records = sqlite::QueryNumber(other->get(), "SELECT count(*) FROM record");
    ::_exit(records.status().code() == kFailedPrecondition ? 0 : 1);
  }
  const auto store = Open();
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(go[0]);
  ::close(go[1]);
}

TEST_F(SqliteStoreTest, ALockThatAKilledServerLeftDoesNotMatter) {
  WriteContent(path() + ".lock", "12345\n");
  EXPECT_TRUE(OpenSqliteStore(path()).ok());
}

TEST_F(SqliteStoreTest, AFileThatIsNoDatabaseIsNamedAndLeftAlone) {
  const std::string text(8192, 'x');
  WriteContent(path(), text);
  ExpectError(OpenError(), kDataLoss, "backup");
  EXPECT_EQ(ContentOf(path()), text);
}

TEST_F(SqliteStoreTest, ADirectoryIsNoStore) {
  std::filesystem::create_directory(path());
  ExpectError(OpenError(), kFailedPrecondition, "set another path");
}

TEST_F(SqliteStoreTest, AMissingDirectoryIsNotFound) {
  EXPECT_EQ(OpenSqliteStore("/nonexistent/ipam.db").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SqliteStoreTest, AnotherApplicationsDatabaseIsNamedAndLeftAlone) {
  RunSql(path(), "PRAGMA application_id = 4711; CREATE TABLE record (a); CREATE TABLE counter (a)");
  const std::string before = ContentOf(path());
  ExpectError(OpenError(), kFailedPrecondition, "another application");
  EXPECT_EQ(ContentOf(path()), before);
}

TEST_F(SqliteStoreTest, ADatabaseWithoutOurTablesIsNamedAndLeftAlone) {
  RunSql(path(), "PRAGMA user_version = 1; CREATE TABLE songs (title)");
  ExpectError(OpenError(), kFailedPrecondition, "another application");
}

TEST_F(SqliteStoreTest, ANewerVersionIsRefused) {
  Open();
  RunSql(path(), "PRAGMA user_version = 99");
  ExpectError(OpenError(), kFailedPrecondition, "newer server");
}

// An emptied store taken for a new one would hand out addresses that are in use.
TEST_F(SqliteStoreTest, AnEmptyFileIsDamageAndNotANewStore) {
  Fill(1);
  std::filesystem::resize_file(path(), 0);
  ExpectError(OpenError(), kDataLoss, "restore a backup");
}

TEST_F(SqliteStoreTest, ALogWithoutItsFileIsDamageAndNotANewStore) {
  WriteContent(path() + "-wal", "a log");
  ExpectError(OpenError(), kDataLoss, "restore a backup");
}

TEST_F(SqliteStoreTest, ATruncatedFileIsDamage) {
  Fill(50);
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) / 2);
  ExpectError(OpenError(), kDataLoss, "backup");
}

// A page is overwritten at each place of a file in turn: damage is found on opening or on reading,
// or it did no harm, since the page was not in use.
TEST_F(SqliteStoreTest, DamageAnywhereIsFoundBeforeAWrongRecordIsRead) {
  Fill(10);
  const std::string good = ContentOf(path());
  std::map<std::string, StoredRecord> want;
  const auto read = [](Store& store) {
    std::map<std::string, StoredRecord> found;
    auto status = store.List(
        "", [&](std::string_view key, const StoredRecord& record) { found.emplace(key, record); });
    return std::pair(status, found);
  };
  want = read(*Open()).second;
  ASSERT_EQ(want.size(), 10U);
  int found = 0;
  for (size_t at = 0; at + 16 <= good.size(); at += 1024) {
    std::string bad = good;
    for (size_t i = 0; i < 16; ++i) bad[at + i] = static_cast<char>(~bad[at + i]);
    std::filesystem::remove(path() + "-wal");
    WriteContent(path(), bad);
    const auto store = OpenSqliteStore(path());
    if (!store.ok()) {
      ++found;
      EXPECT_THAT(MessageOf(store.status()), HasSubstr(path()));
      continue;
    }
    const auto [status, records] = read(**store);
    if (!status.ok()) {
      ++found;
      ExpectError(status, kDataLoss, "backup");
      EXPECT_EQ((*store)->CheckIntegrity().code(), kDataLoss);
      EXPECT_FALSE((*store)->Backup(directory().File("backup")).ok());
      continue;
    }
    EXPECT_EQ(records, want) << "damage at " << at << " went unseen";
  }
  EXPECT_GT(found, 20);
  EXPECT_FALSE(std::filesystem::exists(directory().File("backup")));
}

TEST_F(SqliteStoreTest, AValueThatChangedOnDiskIsNamedByItsKey) {
  Fill(3);
  RunSql(path(), "UPDATE record SET value = replace(value, 'a', 'b') WHERE key = 'node/1'");
  const auto store = Open();
  ExpectError(store->Get("node/1").status(), kDataLoss, "node/1");
  EXPECT_TRUE(store->Get("node/2").ok());
  ExpectError(store->CheckIntegrity(), kDataLoss, "node/1");
}

TEST_F(SqliteStoreTest, ARecordUnderAWrongKeyIsFound) {
  Fill(3);
  RunSql(path(), "UPDATE record SET key = 'node/x' WHERE key = 'node/1'");
  ExpectError(Open()->CheckIntegrity(), kDataLoss, "node/x");
}

TEST_F(SqliteStoreTest, TheFirstVersionIsBroughtUpToDate) {
  RunSql(path(),
         "PRAGMA journal_mode = WAL;"
         "CREATE TABLE record (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value BLOB NOT "
         "NULL) WITHOUT ROWID;"
         "CREATE TABLE counter (revision INTEGER NOT NULL);"
         "INSERT INTO counter VALUES (7);"
         "INSERT INTO record VALUES ('node/a', 3, x'00ff'), ('node/b', 5, zeroblob(9000)), "
         "('node/c', 6, x'');"
         "PRAGMA user_version = 1");
  for (int round = 0; round < 2; ++round) {  // The second finds version 2.
    const auto store = Open();
    EXPECT_EQ(store->Get("node/a")->value(), (StoredRecord{std::string("\0\xff", 2), 3}));
    EXPECT_EQ(store->Get("node/b")->value(), (StoredRecord{std::string(9000, '\0'), 5}));
    EXPECT_EQ(store->Get("node/c")->value(), (StoredRecord{"", 6}));
    EXPECT_TRUE(store->CheckIntegrity().ok());
  }
  const std::vector<CompareAndPut> batch = {{"node/a", "new", 3}};
  EXPECT_EQ(Open()->Commit(batch)->at(0), 8);
}

TEST_F(SqliteStoreTest, ABackupIsAFileOfItsOwnThatNeedsNoLog) {
  Fill(5);
  const auto store = Open();
  const std::string backup = directory().File("backup");
  ASSERT_TRUE(store->Backup(backup).ok());
  std::filesystem::permissions(backup, std::filesystem::perms::owner_read);
  const auto copy = sqlite::Open(backup, SQLITE_OPEN_READONLY, nullptr).value();
  EXPECT_EQ(*sqlite::QueryNumber(copy.get(), "SELECT count(*) FROM record"), 5);
  for (const auto& entry : std::filesystem::directory_iterator(directory().path())) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == "backup" || name.starts_with("ipam.db")) << name;
  }
}

// Lengths of the log far below what a commit makes, so that every few commits wait.
constexpr LogLimits kShortLog = {.checkpoint_pages = 4, .max_pages = 16};

TEST_F(SqliteStoreTest, TheLogStaysShortUnderLoad) {
  const auto store = OpenSqliteStore(path(), {.log = kShortLog}).value();
  int64_t revision = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<CompareAndPut> batch = {{"a", std::string(20'000, 'a'), revision}};
    const auto revisions = store->Commit(batch);
    ASSERT_TRUE(revisions.ok()) << revisions.status();
    revision = revisions->at(0);
  }
  // A commit is 6 pages or so, and goes ahead below 16.
  EXPECT_LT(std::filesystem::file_size(path() + "-wal"), 30U * 4200U);
  EXPECT_GT(store->Stats().checkpoints, 0);
  EXPECT_EQ(store->Stats().failed_checkpoints, 0);
}

TEST_F(SqliteStoreTest, ALongListDoesNotStopCommitsEvenWhenTheLogIsFull) {
  const auto store = OpenSqliteStore(path(), {.log = kShortLog}).value();
  std::vector<CompareAndPut> batch = {{"a", std::string(20'000, 'a'), 0}};
  batch[0].expected = store->Commit(batch)->at(0);
  const auto status = store->List("", [&](std::string_view, const StoredRecord& record) {
    EXPECT_EQ(record.value[0], 'a');
    batch[0].value = std::string(20'000, 'b');
    std::thread([&] {
      for (int i = 0; i < 20; ++i) {
        const auto revisions = store->Commit(batch);
        ASSERT_TRUE(revisions.ok()) << revisions.status();
        batch[0].expected = revisions->at(0);
      }
    }).join();
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(store->Stats().waited_for_log, 0);
  EXPECT_EQ(store->Get("a")->value().value[0], 'b');
}

}  // namespace
}  // namespace spoke::ipam
