#include "netagent/cni/directory_watch.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

class DirectoryWatchTest : public testing::Test {
 protected:
  DirectoryWatchTest() {
    Write(path_);
    EXPECT_TRUE(watch_.Watch({path_}).ok());
  }
  static void Write(const std::string& path) {
    ASSERT_TRUE(os::WriteFileAtomic(path, "text", os::Durability::kVisible).ok());
  }
  bool IsReadable() const {
    pollfd one{.fd = watch_.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) == 1;
  }

  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("10-spoke.conflist");
  DirectoryWatch watch_;
};

TEST_F(DirectoryWatchTest, HearsOfWhatIsRemovedMovedOrWritten) {
  EXPECT_FALSE(watch_.Drain());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_TRUE(IsReadable());
  EXPECT_TRUE(watch_.Drain());
  EXPECT_FALSE(IsReadable());
  Write(path_);
  EXPECT_TRUE(watch_.Drain());
  ASSERT_EQ(::rename(path_.c_str(), dir_.File("old").c_str()), 0);
  EXPECT_TRUE(watch_.Drain());
}

TEST_F(DirectoryWatchTest, OthersFilesAreNoMatter) {
  Write(dir_.File("99-other.conflist"));
  ASSERT_EQ(::unlink(dir_.File("99-other.conflist").c_str()), 0);
  EXPECT_FALSE(watch_.Drain());
}

TEST_F(DirectoryWatchTest, ADirectoryThatIsReplacedIsWatchedAgain) {
  const std::string inner = dir_.File("net.d");
  ASSERT_EQ(::mkdir(inner.c_str(), 0755), 0);
  ASSERT_TRUE(watch_.Watch({inner + "/conf"}).ok());
  ASSERT_EQ(::rmdir(inner.c_str()), 0);
  EXPECT_TRUE(watch_.Drain());
  EXPECT_FALSE(watch_.Watch({inner + "/conf"}).ok());
  ASSERT_EQ(::mkdir(inner.c_str(), 0755), 0);
  ASSERT_TRUE(watch_.Watch({inner + "/conf"}).ok());
  Write(inner + "/conf");
  EXPECT_TRUE(watch_.Drain());
}

}  // namespace
}  // namespace spoke::netagent
