#include "netagent/cni/tombstones.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "proto/spoke/v1/cni.pb.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};
const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24 * 365);

class TombstonesTest : public testing::Test {
 protected:
  TombstonesTest() { EXPECT_EQ(::mkdir(directory_.c_str(), 0700), 0); }

  static std::string ContentOf(const AttachmentKey& key) {
    v1::CniRequest request;
    request.set_verb(v1::CniRequest::VERB_DEL);
    request.set_container_id(key.container_id);
    request.set_ifname(key.ifname);
    return request.SerializeAsString();
  }
  void Write(const std::string& name, const std::string& content, absl::Time at = kNow) {
    const std::string path = directory_ + "/" + name;
    ASSERT_TRUE(os::WriteFileAtomic(path, content, os::Durability::kVisible).ok());
    const timespec time = absl::ToTimespec(at);
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  void Leave(const AttachmentKey& key, absl::Time at = kNow) {
    Write(TombstoneName(key), ContentOf(key), at);
  }
  bool Exists(const std::string& name) const {
    struct stat info {};
    return ::lstat((directory_ + "/" + name).c_str(), &info) == 0;
  }

  const testing_support::TempDir dir_;
  const std::string directory_ = dir_.File("tombstones");
  testing_support::RecordingLog log_;
  absl::Status answer_ = absl::OkStatus();
  std::vector<std::pair<AttachmentKey, absl::Time>> taken_;
  Tombstones tombstones_{directory_,
                         [this](const AttachmentKey& key, absl::Time written) {
                           taken_.emplace_back(key, written);
                           return answer_;
                         },
                         log_};
};

TEST_F(TombstonesTest, NamesAreFnvOfTheAttachmentAndDoNotChange) {
  // FNV-1a-64 of "aaa\0eth0", worked out by hand.
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : std::string("aaa\0eth0", 8)) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  }
  char want[17];
  std::snprintf(want, sizeof(want), "%016llx", static_cast<unsigned long long>(hash));
  EXPECT_EQ(TombstoneName(kPodA), want);
}

TEST_F(TombstonesTest, EachIsCarriedOutWithItsTimeAndRemoved) {
  Leave(kPodA, kNow - absl::Seconds(5));
  EXPECT_FALSE(tombstones_.TakeUp(10, kNow));
  EXPECT_THAT(taken_, ElementsAre(std::pair(kPodA, kNow - absl::Seconds(5))));
  EXPECT_FALSE(Exists(TombstoneName(kPodA)));
}

TEST_F(TombstonesTest, OneThatFailsStaysAndIsTriedAgain) {
  Leave(kPodA);
  answer_ = absl::UnavailableError("not now");
  EXPECT_FALSE(tombstones_.TakeUpOne(kPodA, kNow));
  EXPECT_TRUE(Exists(TombstoneName(kPodA)));
  EXPECT_EQ(log_.Count("tombstone_failed"), 1);
  answer_ = absl::OkStatus();
  EXPECT_TRUE(tombstones_.TakeUpOne(kPodA, kNow));
  EXPECT_FALSE(Exists(TombstoneName(kPodA)));
  EXPECT_FALSE(tombstones_.TakeUpOne(kPodA, kNow));
  EXPECT_EQ(taken_.size(), 2U);
}

TEST_F(TombstonesTest, WhatIsMalformedIsWarnedOfOnceMovedAsideAndGoesAfterADay) {
  Write("0123456789abcdef", "\xff\xff", kNow);
  Write(TombstoneName(kPodB), ContentOf(kPodA), kNow);
  Write("0000000000000001", std::string(Tombstones::kMaxBytes + 1, 'x'), kNow);
  ASSERT_EQ(::symlink("/etc/passwd", (directory_ + "/0000000000000002").c_str()), 0);
  ASSERT_EQ(::mkfifo((directory_ + "/0000000000000003").c_str(), 0600), 0);
  for (int i = 0; i < 3; ++i) tombstones_.TakeUp(100, kNow);
  EXPECT_EQ(log_.Count("tombstone_malformed"), 5);
  EXPECT_THAT(taken_, IsEmpty());
  EXPECT_TRUE(Exists(".0123456789abcdef"));
  EXPECT_FALSE(Exists("0123456789abcdef"));
  tombstones_.TakeUp(100, kNow + Tombstones::kKeepAside);
  EXPECT_FALSE(Exists(".0123456789abcdef"));
  EXPECT_FALSE(Exists("." + TombstoneName(kPodB)));
}

TEST_F(TombstonesTest, AFileThatIsBeingWrittenIsPassedOver) {
  Write(".temporary", ContentOf(kPodA));
  tombstones_.TakeUp(100, kNow + absl::Hours(23));
  EXPECT_TRUE(Exists(".temporary"));
  EXPECT_THAT(taken_, IsEmpty());
}

TEST_F(TombstonesTest, ManyAreTakenUpAFewAtATime) {
  constexpr size_t kMany = 3 * Tombstones::kFilesATick;
  for (size_t i = 0; i < kMany; ++i) Leave({"c" + std::to_string(i), "eth0"});
  tombstones_.Tick(kNow);
  EXPECT_LE(taken_.size(), Tombstones::kFilesATick);
  EXPECT_EQ(tombstones_.NextWake(), kNow) << "there is more to do at once";
  for (int i = 0; i < 4; ++i) tombstones_.Tick(kNow);
  EXPECT_EQ(taken_.size(), kMany);
  EXPECT_EQ(tombstones_.NextWake(), kNow + Tombstones::kPause);
  Leave(kPodA);
  tombstones_.Tick(kNow + absl::Seconds(9));
  EXPECT_EQ(taken_.size(), kMany);
  tombstones_.Tick(kNow + Tombstones::kPause);
  EXPECT_EQ(taken_.size(), kMany + 1);
}

TEST_F(TombstonesTest, NoDirectoryIsNoTombstones) {
  ASSERT_EQ(::rmdir(directory_.c_str()), 0);
  EXPECT_FALSE(tombstones_.TakeUp(10, kNow));
  EXPECT_FALSE(tombstones_.TakeUpOne(kPodA, kNow));
  EXPECT_THAT(log_.lines(), IsEmpty());
}

}  // namespace
}  // namespace spoke::netagent
