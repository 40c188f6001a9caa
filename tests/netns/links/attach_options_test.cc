// Tests of what an attachment may have beside its addresses, as the kernel then holds it.
#include <linux/if_addr.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/queueing/qdisc.h"
#include "netagent/claims.h"
#include "netagent/links/kernel_links.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kFirstV4 = ip::Address::V4(0x0A000107);   // 10.0.1.7
constexpr ip::Address kSecondV4 = ip::Address::V4(0x0A000108);  // 10.0.1.8
constexpr ip::Address kThirdV4 = ip::Address::V4(0x0A000109);   // 10.0.1.9
constexpr ip::Address kFirstV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);
constexpr ip::Address kSecondV6 = ip::Address::V6(0xFD00'0000'0000'0001, 8);
constexpr ip::Address kThirdV6 = ip::Address::V6(0xFD00'0000'0000'0001, 9);

class AttachOptionsTest : public NodeLinksTest {
 protected:
  static AttachSpec Spec(const std::string& ifname, std::vector<ip::Address> addresses,
                         const AttachOptions& options) {
    return PlanAttach({"pod", ifname}, std::move(addresses), 1450, options).value();
  }

  // Returns what the device sends through, except what the kernel has put there itself.
  static std::vector<netlink::Qdisc> QdiscsOf(netlink::Socket& socket, const std::string& name) {
    const auto link = netlink::GetLink(socket, name).value();
    auto qdiscs = netlink::DumpQdiscs(socket, link.index).value();
    std::erase_if(qdiscs, [](const netlink::Qdisc& qdisc) { return qdisc.handle == 0; });
    return qdiscs;
  }

  // Pings the node, from each address by the interface that has it.
  void ExpectReachesNode(PodNetns& pod, const ip::Address& own) {
    SCOPED_TRACE(own.ToString());
    if (!own.is_v4()) AwaitLocal(pod.socket(), own);
    const ip::Address& there = own.is_v4() ? kNodeV4 : kNodeV6;
    UdpSocket client(pod.netns(), own);
    UdpSocket server(node_->node(), there);
    EXPECT_TRUE(CanTalk(client, server, there, 100));
  }
};

TEST_F(AttachOptionsTest, ALaterInterfaceHasItsOwnWayOutAndLeavesTheFirstItsDefault) {
  PodNetns pod;
  AttachOptions options;
  ASSERT_TRUE(Attach(*links_, Spec("eth0", {kFirstV4, kFirstV6}, options), pod.fd()).ok());
  options.ordinal = 1;
  const AttachSpec second = Spec("net1", {kSecondV4, kSecondV6}, options);
  absl::Status status = Attach(*links_, second, pod.fd());
  ASSERT_TRUE(status.ok()) << status;
  options.ordinal = 2;
  status = Attach(*links_, Spec("net2", {kThirdV4, kThirdV6}, options), pod.fd());
  ASSERT_TRUE(status.ok()) << status;

  // The node drops what comes by another link than the one its address is routed to, so each
  // address works only by its own.
  for (const ip::Address& own : {kFirstV4, kSecondV4, kThirdV4, kFirstV6, kSecondV6, kThirdV6}) {
    ExpectReachesNode(pod, own);
  }
  const int32_t eth0 = netlink::GetLink(pod.socket(), "eth0")->index;
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    auto routes =
        netlink::DumpRoutes(pod.socket(), family, RT_TABLE_MAIN, claims::kRouteProtocol).value();
    std::erase_if(routes, [](const netlink::Route& r) { return r.destination.length() != 0; });
    ASSERT_EQ(routes.size(), 3U);
    EXPECT_EQ(std::min_element(routes.begin(), routes.end(),
                               [](const auto& a, const auto& b) { return a.metric < b.metric; })
                  ->link,
              eth0);
  }
}

TEST_F(AttachOptionsTest, TheLaterInterfaceIsTheWayOutWhenTheFirstIsGone) {
  PodNetns pod;
  AttachOptions options;
  const AttachSpec first = Spec("eth0", {kFirstV4}, options);
  ASSERT_TRUE(Attach(*links_, first, pod.fd()).ok());
  options.ordinal = 1;
  const AttachSpec second = Spec("net1", {kSecondV4, kSecondV6}, options);
  ASSERT_TRUE(Attach(*links_, second, pod.fd()).ok());
  ASSERT_TRUE(Detach(*links_, first.host_link).ok());
  ASSERT_TRUE(links_->FinishDetaching().ok());
  ExpectReachesNode(pod, kSecondV4);
  ExpectReachesNode(pod, kSecondV6);
  // Without a source of its own choice it takes the one that is there.
  UdpSocket any(pod.netns(), ip::Address::V4(0));
  UdpSocket server(node_->node(), kNodeV4);
  EXPECT_TRUE(CanTalk(any, server, kNodeV4, 100));
}

TEST_F(AttachOptionsTest, NothingLimitsAPodAtItsOwnEnd) {
  PodNetns pod;
  AttachOptions options;
  options.bandwidth = {.ingress_rate = units::BitRate(10'000'000),
                       .ingress_burst = units::BitCount(2'147'483'647)};
  const AttachSpec towards = Spec("eth0", {kFirstV4}, options);
  ASSERT_TRUE(Attach(*links_, towards, pod.fd()).ok());
  ASSERT_EQ(QdiscsOf(node_->socket(), towards.host_link).size(), 1U);
  const netlink::Qdisc root = QdiscsOf(node_->socket(), towards.host_link).front();
  EXPECT_EQ(root.handle, claims::kShaperHandle);
  EXPECT_EQ(root.parent, TC_H_ROOT);
  EXPECT_EQ(root.token_bucket, (netlink::TokenBucket{1'250'000, 16384, 62'500}));
  EXPECT_TRUE(QdiscsOf(pod.socket(), "eth0").empty());

  options.ordinal = 1;
  options.bandwidth = {.egress_rate = units::BitRate(100'000'000'000)};
  const AttachSpec from = Spec("net1", {kSecondV4, kSecondV6}, options);
  ASSERT_TRUE(Attach(*links_, from, pod.fd()).ok());
  EXPECT_TRUE(QdiscsOf(node_->socket(), from.host_link).empty());
  EXPECT_TRUE(QdiscsOf(pod.socket(), "net1").empty());
  for (const ip::Address& own : {kFirstV4, kSecondV4, kSecondV6}) ExpectReachesNode(pod, own);
}

TEST_F(AttachOptionsTest, ALimitedPodGetsWhatItsRateGives) {
  PodNetns pod;
  AttachOptions options;
  options.bandwidth = {.ingress_rate = units::BitRate(1'000'000)};
  ASSERT_TRUE(Attach(*links_, Spec("eth0", {kFirstV4}, options), pod.fd()).ok());
  UdpSocket sender(node_->node(), kNodeV4);
  UdpSocket receiver(pod.netns(), kFirstV4);
  sender.Connect(kFirstV4, receiver.port());
  // 40 packets of 1000 bytes: 16 KiB go at once and another 16 KiB wait, the rest is dropped.
  // (Which the kernel tells a sender of its own.)
  for (int i = 0; i < 40; ++i) {
    const int error = sender.Send(std::string(1000, 'x'));
    EXPECT_TRUE(error == 0 || error == ENOBUFS) << error;
  }
  size_t received = 0;
  while (!receiver.Receive().empty()) ++received;
  EXPECT_GE(received, 20U);
  EXPECT_LE(received, 36U);
}

TEST_F(AttachOptionsTest, MacAndMtuAreAsAskedFor) {
  PodNetns pod;
  AttachOptions options;
  options.pod_mac = ip::MacAddress{{2, 1, 2, 3, 4, 5}};
  options.mtu = 1300;
  const AttachSpec spec = Spec("eth0", {kFirstV4, kFirstV6}, options);
  ASSERT_TRUE(Attach(*links_, spec, pod.fd()).ok());
  const auto eth0 = netlink::GetLink(pod.socket(), "eth0").value();
  EXPECT_EQ(eth0.mac, *options.pod_mac);
  EXPECT_EQ(eth0.mtu, 1300U);
  EXPECT_EQ(netlink::GetLink(node_->socket(), spec.host_link)->mtu, 1300U);
  ExpectReachesNode(pod, kFirstV4);
  ExpectReachesNode(pod, kFirstV6);
}

TEST_F(AttachOptionsTest, Ipv6ThatTheRuntimeHasSwitchedOffIsSwitchedOnForAnAddress) {
  PodNetns pod;
  const auto run = [&pod](const std::function<void()>& inside) {
    const absl::Status status = pod.netns().Run([&inside] {
      inside();
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
  };
  const auto disabled = [](const std::string& name) {
    int value = -1;
    std::ifstream("/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6") >> value;
    return value;
  };
  run([] { std::ofstream("/proc/sys/net/ipv6/conf/all/disable_ipv6") << 1; });
  run([&] { ASSERT_EQ(disabled("lo"), 1); });
  AttachOptions options;
  absl::Status status = Attach(*links_, Spec("eth0", {kFirstV6, kFirstV4}, options), pod.fd());
  ASSERT_TRUE(status.ok()) << status;
  options.ordinal = 1;
  status = Attach(*links_, Spec("net1", {kSecondV4}, options), pod.fd());
  ASSERT_TRUE(status.ok()) << status;
  run([&] {
    EXPECT_EQ(disabled("lo"), 0);
    EXPECT_EQ(disabled("eth0"), 0);
    // Nobody asked for it there.
    EXPECT_EQ(disabled("net1"), 1);
  });
  for (const ip::Address& own : {kFirstV4, kFirstV6, kSecondV4}) ExpectReachesNode(pod, own);
  // The pod reaches itself.
  UdpSocket client(pod.netns(), kFirstV6);
  UdpSocket server(pod.netns(), kFirstV6);
  EXPECT_TRUE(CanTalk(client, server, kFirstV6, 100));
}

}  // namespace
}  // namespace spoke::netagent
