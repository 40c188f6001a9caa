#include "lib/netns/netns.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::netns {
namespace {

TEST(Netns, IsTheSameHoweverItWasOpened) {
  const auto current = Netns::Current();
  ASSERT_TRUE(current.ok()) << current.status();
  const auto by_path = Netns::Open("/proc/thread-self/ns/net");
  ASSERT_TRUE(by_path.ok()) << by_path.status();
  const auto copied = Netns::FromDescriptor(current->fd());
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(current->identity(), by_path->identity());
  EXPECT_EQ(current->identity(), copied->identity());
  EXPECT_NE(copied->fd(), current->fd());
}

TEST(Netns, RefusesWhatIsNone) {
  const testing_support::TempDir dir;
  ASSERT_EQ(::mkfifo(dir.File("fifo").c_str(), 0600), 0);
  const std::string fifo = dir.File("fifo");
  for (const char* path :
       {"/dev/null", "/proc/self/status", "/proc/thread-self/ns/mnt", "/", fifo.c_str()}) {
    const auto netns = Netns::Open(path);
    EXPECT_TRUE(absl::IsFailedPrecondition(netns.status())) << path << ": " << netns.status();
  }
  EXPECT_TRUE(absl::IsNotFound(Netns::Open("/nonexistent").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Netns::FromDescriptor(-1).status()));
  const os::UniqueFd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(absl::IsFailedPrecondition(Netns::FromDescriptor(device.get()).status()));
}

}  // namespace
}  // namespace spoke::netns
