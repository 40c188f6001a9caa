// The repairer with the real kernel under it: what was taken away by hand is back in time.
#include <linux/rtnetlink.h>

#include <map>
#include <memory>
#include <optional>

#include "fmt/core.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "lib/os/clock.h"
#include "netagent/attach/repairer.h"
#include "netagent/claims.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/kernel_links.h"
#include "netagent/node/node_setup.h"
#include "netagent/session/testing/fake_server_link.h"
#include "tests/netns/links/node_world.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kV4 = ip::Address::V4(0x0A000107);  // 10.0.1.7
constexpr ip::Address kV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);

class RepairTest : public NodeLinksTest {
 protected:
  void SetUp() override {
    NodeLinksTest::SetUp();
    if (node_ == nullptr) return;
    attachments_.emplace(Attachments::Settings{.node_name = "node1", .nic = kNodeDevice},
                         Attachments::Edges{*links_, server_, clock_, log_},
                         std::make_unique<FakeJournal>(tmpfs_));
    repairer_.emplace(Repairer::Settings{.repair_pods = true,
                                         .open_netns = &OpenPodNetns,
                                         .prepare_node = [] { return PrepareNode(); }},
                      Repairer::Edges{*links_, clock_, log_}, *attachments_);
  }

  static absl::StatusOr<AttachSpec> SpecOf(const Assignment& assignment) {
    return PlanAttach(assignment.key, assignment.addresses, 1500, assignment.options);
  }
  // Builds a link, with the path of `seen_at` as the place where its namespace is found again.
  Assignment Build(const std::string& container, uint64_t nth, const PodNetns& pod,
                   const PodNetns& seen_at) {
    Assignment assignment{.key = {container, "eth0"},
                          .addresses = {ip::Advance(kV4, nth), ip::Advance(kV6, nth)},
                          .generation = nth + 1,
                          .netns_path = fmt::format("/proc/self/fd/{}", seen_at.fd())};
    const absl::Status built = Attach(*links_, SpecOf(assignment).value(), pod.fd());
    EXPECT_TRUE(built.ok()) << built;
    events_.push_back(AssignmentBegun{assignment});
    events_.push_back(AssignmentBuilt{assignment.key});
    return assignment;
  }
  void RunFor(absl::Duration duration) {
    const absl::Time end = clock_.Now() + duration;
    while (clock_.Now() < end) {
      repairer_->Tick();
      clock_.Advance(std::max(repairer_->NextWake() - clock_.Now(), absl::Milliseconds(1)));
    }
  }
  static std::vector<std::string> Settled(netlink::Socket& socket, const ip::Address& v6) {
    AwaitLocal(socket, v6);
    return Snapshot(socket);
  }

  FakeServerLink server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  std::vector<Event> events_;
  std::optional<Attachments> attachments_;
  std::optional<Repairer> repairer_;
};

TEST_F(RepairTest, WhatWasTakenAwayByHandIsBackWithinThirtySeconds) {
  PodNetns pod;
  const Assignment assignment = Build("pod", 0, pod, pod);
  const std::string link = HostLinkName(assignment.key);
  ASSERT_TRUE(attachments_->Start(events_).ok());
  RunFor(absl::Seconds(10));
  EXPECT_EQ(log_.Count("attachment_repaired"), 0);
  const std::vector<std::string> node_before = Settled(node_->socket(), kNodeV6);
  const std::vector<std::string> pod_before = Settled(pod.socket(), kV6);

  // The link goes down and up, and with that its routes and neighbours; an unreachable route goes;
  // the node stops forwarding; the pod loses its way out.
  const int32_t host = netlink::GetLink(node_->socket(), link)->index;
  const int32_t eth0 = netlink::GetLink(pod.socket(), "eth0")->index;
  MustSend(node_->socket(), {netlink::SetLinkUp(host, false), netlink::SetLinkUp(host, true),
                             netlink::DeleteRoute({.destination = ip::Prefix::Host(kV4),
                                                   .protocol = claims::kRouteProtocol,
                                                   .type = RTN_UNREACHABLE,
                                                   .metric = claims::kUnreachableMetric})});
  MustSend(pod.socket(), {netlink::DeleteRoute({.destination = ip::Prefix::Of(kV4, 0).value(),
                                                .protocol = claims::kRouteProtocol,
                                                .link = eth0}),
                          netlink::DeleteNeighbour(eth0, claims::kGatewayV6)});
  EXPECT_NE(Snapshot(node_->socket()), node_before);
  EXPECT_NE(Snapshot(pod.socket()), pod_before);

  RunFor(absl::Seconds(30));
  EXPECT_EQ(Settled(node_->socket(), kNodeV6), node_before);
  EXPECT_EQ(Settled(pod.socket(), kV6), pod_before);
  EXPECT_EQ(repairer_->counts().of(Part::kHostRoute).repaired, 2U);
  EXPECT_EQ(repairer_->counts().of(Part::kHostNeighbour).repaired, 2U);
  EXPECT_EQ(repairer_->counts().of(Part::kPodRoute).repaired, 1U);
  EXPECT_EQ(repairer_->counts().of(Part::kPodNeighbour).repaired, 1U);
  EXPECT_TRUE(repairer_->Healthy()) << repairer_->Health();
}

TEST_F(RepairTest, APathThatHasComeToMeanAnotherPodTouchesNeither) {
  PodNetns one;
  PodNetns two;
  Build("one", 0, one, two);
  Build("two", 1, two, one);
  ASSERT_TRUE(attachments_->Start(events_).ok());
  for (PodNetns* pod : {&one, &two}) {
    const int32_t eth0 = netlink::GetLink(pod->socket(), "eth0")->index;
    MustSend(pod->socket(), {netlink::DeleteRoute({.destination = ip::Prefix::Of(kV4, 0).value(),
                                                   .protocol = claims::kRouteProtocol,
                                                   .link = eth0})});
  }
  const auto one_before = Settled(one.socket(), kV6);
  const auto two_before = Settled(two.socket(), ip::Advance(kV6, 1));
  RunFor(absl::Seconds(30));
  EXPECT_EQ(Settled(one.socket(), kV6), one_before);
  EXPECT_EQ(Settled(two.socket(), ip::Advance(kV6, 1)), two_before);
  EXPECT_EQ(log_.Count("attachment_repaired"), 0);
}

}  // namespace
}  // namespace spoke::netagent
