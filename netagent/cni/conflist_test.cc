#include "netagent/cni/conflist.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24);
constexpr std::string_view kContent = R"({"cniVersion":"1.0.0","name":"spoke","plugins":[]})";

class ConflistTest : public testing::Test {
 protected:
  ConflistTest() {
    EXPECT_EQ(::mkdir(settings_.directory.c_str(), 0755), 0);
    WriteSource(kContent);
  }
  void WriteSource(std::string_view content) {
    ASSERT_TRUE(os::WriteFileAtomic(settings_.source, content, os::Durability::kVisible).ok());
  }
  ino_t InodeOf(const std::string& path) const {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
  }

  const testing_support::TempDir dir_;
  const ConflistSettings settings_{
      .directory = dir_.File("net.d"), .file = "10-spoke.conflist", .source = dir_.File("source")};
  const std::string path_ = settings_.directory + "/10-spoke.conflist";
  testing_support::RecordingLog log_;
};

TEST_F(ConflistTest, IsWrittenOnceThePodsCanBeServedAndNotBefore) {
  ConflistKeeper keeper(settings_, log_);
  keeper.Tick(false, kNow);
  EXPECT_EQ(InodeOf(path_), 0U);
  EXPECT_TRUE(keeper.pending());
  keeper.Tick(true, kNow);
  EXPECT_EQ(os::ReadFile(path_).value(), kContent);
  EXPECT_FALSE(keeper.pending());
  EXPECT_EQ(log_.Count("conflist_written"), 1);
  // What an operator does with it afterwards is his.
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  keeper.Tick(true, kNow + absl::Hours(1));
  EXPECT_EQ(InodeOf(path_), 0U);
}

TEST_F(ConflistTest, TheSameContentIsLeftAloneAndOtherContentReplaced) {
  EXPECT_TRUE(InstallConflist(settings_).value());
  const ino_t first = InodeOf(path_);
  EXPECT_FALSE(InstallConflist(settings_).value());
  EXPECT_EQ(InodeOf(path_), first);
  WriteSource(R"({"name":"other"})");
  EXPECT_TRUE(InstallConflist(settings_).value());
  EXPECT_EQ(os::ReadFile(path_).value(), R"({"name":"other"})");
}

TEST_F(ConflistTest, WhatCannotBeWrittenIsTriedAgainAndTheOldFileStays) {
  ASSERT_TRUE(InstallConflist(settings_).ok());
  WriteSource("{ not json");
  ConflistKeeper keeper(settings_, log_);
  keeper.Tick(true, kNow);
  keeper.Tick(true, kNow + absl::Seconds(9));
  EXPECT_EQ(log_.Count("conflist_not_written"), 1);
  EXPECT_EQ(os::ReadFile(path_).value(), kContent);
  WriteSource(R"({"name":"other"})");
  keeper.Tick(true, kNow + ConflistKeeper::kPause);
  EXPECT_FALSE(keeper.pending());
  EXPECT_EQ(os::ReadFile(path_).value(), R"({"name":"other"})");
}

TEST_F(ConflistTest, WithoutSettingsNothingIsWritten) {
  ConflistKeeper keeper(std::nullopt, log_);
  keeper.Tick(true, kNow);
  EXPECT_FALSE(keeper.pending());
  EXPECT_TRUE(log_.lines().empty());
}

}  // namespace
}  // namespace spoke::netagent
