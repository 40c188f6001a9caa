#include "ipam-server/store/backup_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

std::set<std::string> FilesIn(const testing_support::TempDir& dir) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST(ScratchBackups, OnlyThoseOfTheStoreAreRemoved) {
  const testing_support::TempDir dir;
  const std::set<std::string> others = {"ipam.db",
                                        "ipam.db-wal",
                                        "ipam.db.lock",
                                        "ipam.db.backup-monday",
                                        "ipam.db.backup-1-2.gz",
                                        "ipam.db.backup-1-2.tmp-short",
                                        "ipam.db.backup-1-2.tmp-ABCDEFG",
                                        "ipam.db.backup--2",
                                        "old.ipam.db.backup-1-2",
                                        "other.db.backup-1-2",
                                        "backup-1-2"};
  for (const std::string& name : others) std::ofstream(dir.File(name)) << "precious";
  std::filesystem::create_directory(dir.File("ipam.db.backup-3-4"));
  std::filesystem::create_symlink(dir.File("ipam.db"), dir.File("ipam.db.backup-5-6"));
  for (const char* name : {"ipam.db.backup-1-2", "ipam.db.backup-1-2.tmp-aB3xyZ",
                           "ipam.db.backup-1-2.tmp-aB3xyZ-journal"}) {
    std::ofstream(dir.File(name)) << "half";
  }
  const auto removed = RemoveScratchBackups(dir.File("ipam.db"));
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(*removed, 3);
  std::set<std::string> left = others;
  left.insert({"ipam.db.backup-3-4", "ipam.db.backup-5-6"});
  EXPECT_EQ(FilesIn(dir), left);
  EXPECT_EQ(RemoveScratchBackups(dir.File("none/ipam.db")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ScratchBackups, WhatAKilledProcessLeftIsRemoved) {
  const testing_support::TempDir dir;
  const std::string store = dir.File("ipam.db");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto file = BackupFile::Create(ScratchBackupPath(store, absl::Now()));
    ::kill(::getpid(), file.ok() ? SIGKILL : SIGABRT);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  ASSERT_EQ(FilesIn(dir).size(), 1U);
  EXPECT_EQ(*RemoveScratchBackups(store), 1);
  EXPECT_TRUE(FilesIn(dir).empty());
}

}  // namespace
}  // namespace spoke::ipam
