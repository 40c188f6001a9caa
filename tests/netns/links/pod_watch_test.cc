#include "netagent/links/pod_watch.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "absl/time/clock.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

constexpr int kLoopback = 1;

class PodWatchTest : public NodeLinksTest {
 protected:
  // Numbers the pod, as the node's end of a link does, and returns its number.
  int32_t Number(const PodNetns& pod) {
    MustSend(node_->socket(), {netlink::NumberNetns(pod.fd())});
    return netlink::NetnsNumber(node_->socket(), pod.fd()).value().value();
  }
  static void Change(PodNetns& pod, uint32_t mtu = 1400) {
    MustSend(pod.socket(), {netlink::SetLinkMtu(kLoopback, mtu)});
  }
};

// Takes a right from the calling thread for good.
void Drop(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> rights{};
  ASSERT_EQ(::syscall(SYS_capget, &header, rights.data()), 0);
  rights[0].effective &= ~(1U << static_cast<unsigned>(capability));
  ASSERT_EQ(::syscall(SYS_capset, &header, rights.data()), 0);
}

TEST_F(PodWatchTest, HearsOfPodsWithANumberAndOfNoOther) {
  PodNetns numbered;
  PodNetns unknown;
  const int32_t number = Number(numbered);
  auto watch = PodWatch::Open();
  ASSERT_TRUE(watch.ok()) << watch.status();
  Change(numbered);
  Change(unknown);
  EXPECT_EQ(watch->Take(), (PodChanges{.netns = {number}}));
  EXPECT_EQ(watch->Take(), PodChanges());
}

TEST_F(PodWatchTest, WhatTheNodeItselfChangesIsNoPods) {
  auto watch = PodWatch::Open();
  ASSERT_TRUE(watch.ok()) << watch.status();
  MustSend(node_->socket(), {netlink::SetLinkMtu(kLoopback, 1400)});
  EXPECT_EQ(watch->Take(), PodChanges());
}

// A pod that is loud costs one answer of bounded length, and then the others are heard again.
TEST_F(PodWatchTest, WhatWasLostOrTooMuchIsSaidToBeAll) {
  PodNetns loud;
  PodNetns quiet;
  Number(loud);
  const int32_t quiet_number = Number(quiet);
  auto watch = PodWatch::Open();
  ASSERT_TRUE(watch.ok()) << watch.status();
  for (uint32_t i = 0; i < PodWatch::kMaxTold; ++i) Change(loud, 1400 + i % 2);
  EXPECT_TRUE(watch->Take().all);
  for (int i = 0; i < 3 && watch->Take() != PodChanges(); ++i) continue;
  Change(quiet);
  EXPECT_EQ(watch->Take(), (PodChanges{.netns = {quiet_number}}));
}

TEST_F(PodWatchTest, WithoutTheRightToHearItSaysSo) {
  std::thread([] {
    Drop(CAP_NET_BROADCAST);
    const auto watch = PodWatch::Open();
    EXPECT_EQ(watch.status().code(), absl::StatusCode::kPermissionDenied) << watch.status();
    EXPECT_NE(watch.status().message().find("CAP_NET_BROADCAST"), std::string_view::npos)
        << watch.status();
  }).join();
}

TEST_F(PodWatchTest, KeepsNoPodAlive) {
  auto watch = PodWatch::Open();
  ASSERT_TRUE(watch.ok()) << watch.status();
  const AttachSpec spec = PlanAttach({"pod", "eth0"}, {ip::Address::V4(0x0A000107)}, 1500).value();
  {
    const PodNetns pod;
    ASSERT_TRUE(Attach(*links_, spec, pod.fd()).ok());
    EXPECT_EQ(watch->Take().netns.size(), 1U);
  }
  // A namespace that ends takes its links along, and their other ends with them.
  bool gone = false;
  for (int looks = 0; looks < 100 && !gone; ++looks) {
    gone = absl::IsNotFound(netlink::GetLink(node_->socket(), spec.host_link).status());
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace spoke::netagent
