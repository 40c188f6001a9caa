#include "lib/os/file.h"

#include <sys/stat.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::os {
namespace {

TEST(File, ReplacesAtomicallyAndLeavesNoTemporary) {
  const testing_support::TempDir dir;
  const std::string path = dir.File("state");
  ASSERT_TRUE(WriteFileAtomic(path, "one", Durability::kVisible).ok());
  ASSERT_TRUE(WriteFileAtomic(path, "two", Durability::kSurvivesPower).ok());
  EXPECT_EQ(*ReadFile(path), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(File, IsTheOwnersAloneFromItsFirstByte) {
  namespace fs = std::filesystem;
  const testing_support::TempDir dir;
  const std::string path = dir.File("key");
  // The file was left behind by a process that was killed.
  ASSERT_TRUE(WriteFileAtomic(path + ".tmp", "old", Durability::kVisible).ok());
  ASSERT_TRUE(WriteFileAtomic(path, "new", Durability::kVisible, 0600).ok());
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(*ReadFile(path), "new");
}

TEST(File, AFailedReplaceNamesThePathAndKeepsTheOldContent) {
  const testing_support::TempDir dir;
  const auto status = WriteFileAtomic(dir.File("gone/state"), "x", Durability::kVisible);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find(dir.File("gone/state")), std::string::npos);
}

TEST(File, ReadRefusesWhatIsLongerThanAllowed) {
  const testing_support::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("big"), std::string(100, 'x'), Durability::kVisible).ok());
  EXPECT_EQ(ReadFile(dir.File("big"), 99).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile(dir.File("none")).status().code(), absl::StatusCode::kNotFound);
}

TEST(File, MakeDirectoryMakesItOnceForItsOwnerAlone) {
  const testing_support::TempDir dir;
  EXPECT_TRUE(MakeDirectory(dir.File("new")).ok());
  EXPECT_TRUE(MakeDirectory(dir.File("new")).ok());
  struct stat found = {};
  ASSERT_EQ(::stat(dir.File("new").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
  ASSERT_TRUE(WriteFileAtomic(dir.File("taken"), "", Durability::kVisible).ok());
  EXPECT_EQ(MakeDirectory(dir.File("taken")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MakeDirectory(dir.File("none/new")).code(), absl::StatusCode::kNotFound);
}

TEST(File, DirectoryOfTakesTheLastComponentOff) {
  EXPECT_EQ(DirectoryOf("/run/spoke/cni.sock"), "/run/spoke");
  EXPECT_EQ(DirectoryOf("/cni.sock"), "/");
  EXPECT_EQ(DirectoryOf("cni.sock"), ".");
}

}  // namespace
}  // namespace spoke::os
