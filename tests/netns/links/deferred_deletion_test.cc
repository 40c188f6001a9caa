// Tests of what is left of a pod link between its DEL and the moment the kernel has unregistered
// it.
#include "netagent/links/deferred_deletion.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/clock.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/links/kernel_links.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kFirstV4 = ip::Address::V4(0x0A000107);   // 10.0.1.7
constexpr ip::Address kSecondV4 = ip::Address::V4(0x0A000108);  // 10.0.1.8
constexpr ip::Address kFirstV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);

// A log that only counts.
class CountingLog final : public telemetry::Log {
 public:
  void Write(telemetry::Level, std::string_view event,
             std::initializer_list<telemetry::Field>) override {
    absl::MutexLock lock(&mutex_);
    events_.emplace_back(event);
  }
  ptrdiff_t Count(std::string_view event) {
    absl::MutexLock lock(&mutex_);
    return std::count(events_.begin(), events_.end(), event);
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
};

class DeferredDeletionTest : public NodeWorldTest {
 protected:
  static AttachSpec Spec(const std::string& container, std::vector<ip::Address> addresses) {
    return PlanAttach({container, "eth0"}, std::move(addresses), 1450).value();
  }

  absl::StatusOr<netlink::Link> Link(const std::string& name) {
    return netlink::GetLink(node_->socket(), name);
  }

  // Makes a veth with both ends in the node's namespace.
  void AddVeth(const std::string& name, int32_t index) {
    MustSend(node_->socket(),
             {netlink::CreateVeth({name, index, {{2, 0, 0, 0, 3, 1}}},
                                  {"p" + std::to_string(index), index + 1, {{2, 0, 0, 0, 3, 2}}},
                                  node_->node().fd(), 1500)});
  }
};

TEST_F(DeferredDeletionTest, ADetachedLinkIsCutOffAtOnceAndUnregisteredLater) {
  const PodNetns pod;
  const auto links = KernelLinks::Create().value();
  const std::vector<std::string> before = Snapshot(node_->socket());
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(*links, spec, pod.fd()).ok());
  const int32_t index = Link(spec.host_link)->index;

  ASSERT_TRUE(Detach(*links, spec.host_link).ok());
  // Nothing but the link itself can be left, and the snapshot shows whatever belongs to it.
  std::vector<std::string> after = Snapshot(node_->socket());
  std::erase_if(after, [&](const std::string& line) {
    return line.find("link " + std::to_string(index) + " " + spec.host_link) == 0;
  });
  EXPECT_EQ(after, before);
  if (const auto link = Link(spec.host_link); link.ok()) {
    EXPECT_FALSE(link->up);
    EXPECT_TRUE(claims::IsDeletionGroup(link->group));
  }

  const absl::Time deadline = absl::Now() + absl::Seconds(5);
  while (Link(spec.host_link).ok() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(absl::IsNotFound(Link(spec.host_link).status()));
}

TEST_F(DeferredDeletionTest, AnAgentUnregistersWhatItsPredecessorHadDetached) {
  const PodNetns pod;
  const AttachSpec detached = Spec("detached", {kFirstV4});
  const AttachSpec attached = PlanAttach({"attached", "net1"}, {kFirstV6}, 1450).value();
  {
    const auto first = KernelLinks::Create().value();
    ASSERT_TRUE(Attach(*first, detached, pod.fd()).ok());
    ASSERT_TRUE(Attach(*first, attached, pod.fd()).ok());
  }
  // This is what an agent leaves that is killed right after the DEL.
  MustSend(node_->socket(),
           {netlink::RetireLink(detached.host_link, claims::kFirstDeletionGroup + 5)});

  const auto second = KernelLinks::Create().value();
  EXPECT_TRUE(absl::IsNotFound(Link(detached.host_link).status()));
  EXPECT_TRUE(Link(attached.host_link)->up);
  EXPECT_EQ(ListAttached(*second).value(),
            (std::vector<AttachedLink>{{attached.host_link, {kFirstV6}}}));
}

TEST_F(DeferredDeletionTest, ALinkOfSomebodyElsesInOurGroupIsNeverRemoved) {
  const PodNetns one;
  const PodNetns two;
  CountingLog log;
  KernelLinks::Settings settings;
  settings.log = &log;
  const auto links = KernelLinks::Create(std::move(settings)).value();
  AddVeth("theirs", 900);
  for (const auto& [name, address, pod] :
       {std::tuple("one", kFirstV4, &one), std::tuple("two", kSecondV4, &two)}) {
    const AttachSpec spec = Spec(name, {address});
    ASSERT_TRUE(Attach(*links, spec, pod->fd()).ok());
    // The links are in every group, so in the one that is next.
    for (uint32_t i = 0; i < claims::kDeletionGroups; ++i) {
      const std::string theirs = "t" + std::to_string(i);
      if (name == std::string("one")) AddVeth(theirs, 1000 + 2 * static_cast<int32_t>(i));
      MustSend(node_->socket(), {netlink::RetireLink(theirs, claims::kFirstDeletionGroup + i)});
    }
    ASSERT_TRUE(Detach(*links, spec.host_link).ok());
    ASSERT_TRUE(links->FinishDetaching().ok());
    EXPECT_TRUE(absl::IsNotFound(Link(spec.host_link).status()));
  }
  for (uint32_t i = 0; i < claims::kDeletionGroups; ++i) {
    EXPECT_TRUE(Link("t" + std::to_string(i)).ok());
  }
  EXPECT_EQ(log.Count("foreign_link_in_group"), 1);
}

TEST_F(DeferredDeletionTest, ALinkThatGoesWithItsPodIsUnregisteredAlready) {
  const auto links = KernelLinks::Create().value();
  const AttachSpec spec = Spec("pod", {kFirstV4});
  {
    const PodNetns pod;
    ASSERT_TRUE(Attach(*links, spec, pod.fd()).ok());
    MustSend(node_->socket(), {netlink::DeleteLink(spec.host_link)});
    EXPECT_TRUE(Detach(*links, spec.host_link).ok());
    ASSERT_TRUE(Attach(*links, spec, pod.fd()).ok());
    ASSERT_TRUE(Detach(*links, spec.host_link).ok());
    MustSend(node_->socket(), {netlink::DeleteLink(spec.host_link)});
  }
  EXPECT_TRUE(links->FinishDetaching().ok());
}

TEST_F(DeferredDeletionTest, ARefusalIsReportedToWhoeverWaitsAndTriedAgain) {
  const PodNetns pod;
  CountingLog log;
  std::atomic<bool> refuse = true;
  KernelLinks::Settings settings;
  settings.log = &log;
  settings.fault_point = [&refuse](std::string_view step) {
    return step == "deferred_deletion.unregister" && refuse ? absl::InternalError("injected")
                                                            : absl::OkStatus();
  };
  const auto links = KernelLinks::Create(std::move(settings)).value();
  const AttachSpec spec = Spec("pod", {kFirstV4});
  ASSERT_TRUE(Attach(*links, spec, pod.fd()).ok());
  ASSERT_TRUE(Detach(*links, spec.host_link).ok());
  EXPECT_TRUE(absl::IsUnavailable(links->FinishDetaching()));
  EXPECT_TRUE(ListAttached(*links)->empty());
  EXPECT_GE(log.Count("unregister_failed"), 1);
  refuse = false;
  EXPECT_TRUE(links->FinishDetaching().ok());
  EXPECT_TRUE(absl::IsNotFound(Link(spec.host_link).status()));
}

}  // namespace
}  // namespace spoke::netagent
