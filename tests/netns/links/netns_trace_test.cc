// Tests of how a pod's network namespace is known again, and known to be gone.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "lib/netns/netns.h"
#include "lib/os/file.h"
#include "netagent/attach/lost_dels.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

// Namespaces are mounted under names, as runtimes do; nobody else sees the mounts.
class NetnsTraceTest : public testing_support::NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  }
  void TearDown() override {
    ::umount2(path_.c_str(), MNT_DETACH);
    NetnsTest::TearDown();
  }

  void Mount(int netns) {
    ASSERT_TRUE(os::WriteFileAtomic(path_, "", os::Durability::kVisible).ok());
    ASSERT_EQ(::mount(fmt::format("/proc/self/fd/{}", netns).c_str(), path_.c_str(), nullptr,
                      MS_BIND, nullptr),
              0);
  }
  void Unmount() {
    ASSERT_EQ(::umount2(path_.c_str(), MNT_DETACH), 0);
    ASSERT_EQ(::unlink(path_.c_str()), 0);
  }

  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("pod");
};

TEST_F(NetnsTraceTest, ANamespaceIsThereAsLongAsItsPathLeadsToIt) {
  const os::UniqueFd pod = testing_support::NewNetns();
  Mount(pod.get());
  const netns::Trace before = netns::TraceOf(path_, pod.get());
  EXPECT_NE(before, netns::Trace());
  EXPECT_EQ(netns::LookAt(path_).value(), before);
  EXPECT_EQ(IsNetnsGone(before, netns::LookAt(path_)).value(), false);
  Unmount();
  EXPECT_EQ(IsNetnsGone(before, netns::LookAt(path_)).value(), true);
  const os::UniqueFd next = testing_support::NewNetns();
  Mount(next.get());
  EXPECT_EQ(IsNetnsGone(before, netns::LookAt(path_)).value(), true) << "it is another one";
}

TEST_F(NetnsTraceTest, APathThatDoesNotLeadToThePodLeavesNoTrace) {
  const os::UniqueFd pod = testing_support::NewNetns();
  EXPECT_EQ(netns::TraceOf(path_, pod.get()), netns::Trace()) << "nothing is there";
  const os::UniqueFd other = testing_support::NewNetns();
  Mount(other.get());
  EXPECT_EQ(netns::TraceOf(path_, pod.get()), netns::Trace()) << "another namespace";
  EXPECT_EQ(netns::TraceOf("", pod.get()), netns::Trace());
  EXPECT_EQ(netns::TraceOf("pod", pod.get()), netns::Trace());
}

TEST_F(NetnsTraceTest, AMountThatIsNotSeenIsNoProof) {
  const os::UniqueFd pod = testing_support::NewNetns();
  Mount(pod.get());
  const netns::Trace before = netns::TraceOf(path_, pod.get());
  // This is as in a container to which the mount does not come: the file is there, and nothing on
  // it.
  ASSERT_EQ(::umount2(path_.c_str(), MNT_DETACH), 0);
  EXPECT_FALSE(IsNetnsGone(before, netns::LookAt(path_)).ok());
  // This is as in one that has another directory there, or none.
  EXPECT_FALSE(IsNetnsGone(before, netns::LookAt("/proc/pod")).ok());
  EXPECT_FALSE(IsNetnsGone(before, netns::LookAt(dir_.File("none/pod"))).ok());
}

TEST_F(NetnsTraceTest, NoTwoNamespacesHaveOneCookie) {
  const auto here = netns::Netns::Current().value();
  const auto cookie = here.Cookie();
  if (absl::IsUnimplemented(cookie.status())) {
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << cookie.status();
    GTEST_SKIP() << cookie.status();
  }
  ASSERT_TRUE(cookie.ok()) << cookie.status();
  EXPECT_NE(*cookie, 0U);
  EXPECT_EQ(here.Cookie().value(), *cookie);
  uint64_t last = *cookie;
  for (int i = 0; i < 8; ++i) {
    // The kernel gives the number of the one before again.
    const os::UniqueFd next = testing_support::NewNetns();
    const uint64_t other = netns::Netns::FromDescriptor(next.get())->Cookie().value();
    EXPECT_NE(other, last);
    last = other;
  }
}

}  // namespace
}  // namespace spoke::netagent
