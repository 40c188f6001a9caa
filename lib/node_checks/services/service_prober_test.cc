// Tests of where resolvers are named, and of the kernel's clock. Who is asked, and how, is tested
// in tests/netns.
#include "lib/node_checks/services/service_prober.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::node_checks {
namespace {

class ResolvConfTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir_.File("etc"));
    std::filesystem::create_directories(dir_.File("run"));
    std::ofstream(dir_.File("run/stub")) << "nameserver 192.0.2.1\n";
  }
  std::string Path() const { return ResolvConfPath(dir_.path(), "/own"); }

  const testing_support::TempDir dir_;
  const std::string file_ = dir_.File("etc/resolv.conf");
};

TEST_F(ResolvConfTest, IsTheNodesWhereThatIsThere) {
  EXPECT_EQ(ResolvConfPath("/", "/own"), "/own");
  EXPECT_EQ(Path(), "/own");
  std::ofstream(file_) << "nameserver 192.0.2.1\n";
  EXPECT_EQ(Path(), file_);
}

TEST_F(ResolvConfTest, ALinkLeadsToAFileOfTheNode) {
  std::filesystem::create_symlink("../run/stub", file_);
  EXPECT_EQ(Path(), file_);
  std::filesystem::remove(file_);
  std::filesystem::create_symlink("/run/stub", file_);
  EXPECT_EQ(Path(), dir_.File("run/stub"));
}

TEST_F(ResolvConfTest, IsOnesOwnWhereTheNodesLeadsToWhatIsNotMounted) {
  for (const char* target : {"/run/nosuch", "../run/nosuch"}) {
    std::filesystem::create_symlink(target, file_);
    EXPECT_EQ(Path(), "/own") << target;
    std::filesystem::remove(file_);
  }
}

TEST(ReadKeptClock, IsWhatTheKernelSays) {
  const auto clock = ReadKeptClock();
  ASSERT_TRUE(clock);
  // The kernel lets the error of a clock that nobody keeps grow to this, and no further.
  EXPECT_GE(clock->max_error, absl::ZeroDuration());
  EXPECT_LE(clock->max_error, kClockGivenUp);
}

}  // namespace
}  // namespace spoke::node_checks
