#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "cni-plugin/commands.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::cni {
namespace {

constexpr const char* kOwn = "/proc/self/ns/net";
constexpr const char* kNotOwn = "/proc/self/ns/uts";  // A path of another kind, so never the same.

// Covers B16, B17.
TEST(OpenNetns, RefusesWhatIsNoNetworkNamespace) {
  const testing_support::TempDir dir;
  std::ofstream(dir.File("file")) << "x";
  ASSERT_EQ(::mkfifo(dir.File("pipe").c_str(), 0600), 0);
  for (const std::string& path :
       {std::string(), dir.File("missing"), dir.File("file"), dir.File("pipe"), dir.path(),
        std::string("/proc/self/ns/uts"), std::string("/proc/self/stat"), std::string("/dev/null"),
        std::string("/proc/4194305/ns/net")}) {
    const auto netns = OpenNetns(path, kOwn);
    ASSERT_FALSE(netns.ok()) << path;
    EXPECT_EQ(netns.error().code, kInvalidEnvironment) << path;
    EXPECT_NE(netns.error().message.find("CNI_NETNS"), std::string::npos);
  }
}

// Covers B18.
TEST(OpenNetns, RefusesTheNodesOwnByIdentity) {
  EXPECT_EQ(OpenNetns(kOwn, kOwn).error().code, kInvalidNetns);
  EXPECT_EQ(OpenNetns("/proc/thread-self/ns/net", kOwn).error().code, kInvalidNetns);
  EXPECT_TRUE(OpenNetns(kOwn, kNotOwn).ok());
}

// Covers G3.
TEST(IsSameNetns, ComparesByIdentityNotByName) {
  const auto netns = OpenNetns(kOwn, kNotOwn);
  ASSERT_TRUE(netns.ok());
  EXPECT_TRUE(IsSameNetns(netns->get(), "/proc/thread-self/ns/net"));
  EXPECT_FALSE(IsSameNetns(netns->get(), kNotOwn));
  EXPECT_FALSE(IsSameNetns(netns->get(), "/nowhere"));
}

}  // namespace
}  // namespace spoke::cni
