// KernelLinks end to end: two namespaces that talk, and what is left when they are gone.
#include "netagent/links/kernel_links.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "lib/os/file.h"
#include "netagent/claims.h"
#include "netagent/node/node_setup.h"
#include "tests/netns/links/node_world.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kFirstV4 = ip::Address::V4(0x0A000107);       // 10.0.1.7
constexpr ip::Address kSecondV4 = ip::Address::V4(0x0A000108);      // 10.0.1.8
constexpr ip::Address kUnassignedV4 = ip::Address::V4(0x0A000109);  // 10.0.1.9
constexpr ip::Address kFirstV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);
constexpr ip::Address kSecondV6 = ip::Address::V6(0xFD00'0000'0000'0001, 8);
constexpr ip::Address kUnassignedV6 = ip::Address::V6(0xFD00'0000'0000'0001, 9);

class KernelLinksTest : public NodeLinksTest {
 protected:
  static AttachSpec Spec(const std::string& container, std::vector<ip::Address> addresses,
                         uint32_t mtu = 1450) {
    return PlanAttach({container, "eth0"}, std::move(addresses), mtu).value();
  }

  // A setting of the node's, with net/ as its root.
  static std::string Setting(const std::string& path) {
    return os::ReadFile("/proc/sys/net/" + path).value();
  }
  static void Set(const std::string& path, const std::string& value) {
    const os::UniqueFd fd(::open(("/proc/sys/net/" + path).c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::write(fd.get(), value.data(), value.size()), static_cast<ssize_t>(value.size()));
  }
};

TEST_F(KernelLinksTest, PodsReachEachOtherTheNodeAndTheFabricInBothFamilies) {
  PodNetns one;
  PodNetns two;
  ASSERT_TRUE(Attach(*links_, Spec("one", {kFirstV4, kFirstV6}), one.fd()).ok());
  ASSERT_TRUE(Attach(*links_, Spec("two", {kSecondV4, kSecondV6}), two.fd()).ok());
  AwaitLocal(one.socket(), kFirstV6);
  AwaitLocal(two.socket(), kSecondV6);
  struct Pair {
    ip::Address client, server, node;
  };
  for (const Pair& p : {Pair{kFirstV4, kSecondV4, kNodeV4}, Pair{kFirstV6, kSecondV6, kNodeV6}}) {
    SCOPED_TRACE(p.client.ToString());
    const size_t headers = p.client.is_v4() ? 28 : 48;  // The bytes of IP and UDP.
    UdpSocket client(one.netns(), p.client);
    UdpSocket server(two.netns(), p.server);
    EXPECT_TRUE(CanTalk(client, server, p.server, 1450 - headers));
    UdpSocket back(two.netns(), p.server);
    UdpSocket first(one.netns(), p.client);
    EXPECT_TRUE(CanTalk(back, first, p.client, 1));
    // Packets pass to and from the node.
    UdpSocket to_node(one.netns(), p.client);
    UdpSocket node(node_->node(), p.node);
    EXPECT_TRUE(CanTalk(to_node, node, p.node, 1));
    UdpSocket from_node(node_->node(), p.node);
    UdpSocket pod(two.netns(), p.server);
    EXPECT_TRUE(CanTalk(from_node, pod, p.server, 1));
  }
}

TEST_F(KernelLinksTest, BothEndsAreAsSpecified) {
  PodNetns pod;
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(*links_, spec, pod.fd()).ok());

  const auto eth0 = netlink::GetLink(pod.socket(), "eth0").value();
  const auto host = netlink::GetLink(node_->socket(), spec.host_link).value();
  EXPECT_TRUE(eth0.up && host.up);
  EXPECT_EQ(eth0.mac, spec.pod_mac);
  EXPECT_EQ(host.mac, spec.host_mac);
  EXPECT_EQ(eth0.mtu, 1450U);
  EXPECT_EQ(host.mtu, 1450U);
  EXPECT_EQ(eth0.peer_index, host.index);
  EXPECT_EQ(host.peer_index, eth0.index);
  for (const auto& link : {eth0, host}) {
    EXPECT_EQ(link.tx_queues, 1U);
    EXPECT_EQ(link.rx_queues, 1U);
  }

  struct Family {
    ip::Address address, gateway;
  };
  for (const Family& f :
       {Family{kFirstV4, claims::kGatewayV4}, Family{kFirstV6, claims::kGatewayV6}}) {
    SCOPED_TRACE(f.address.ToString());
    const ip::Family family = f.address.family();
    // Nothing is tentative: the address can be used from the start.
    const auto addresses = netlink::DumpAddresses(pod.socket(), family, eth0.index).value();
    const auto own = std::find_if(addresses.begin(), addresses.end(),
                                  [&](const auto& a) { return a.address == f.address; });
    ASSERT_NE(own, addresses.end());
    EXPECT_EQ(own->prefix_length, f.address.bits());
    EXPECT_EQ(own->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED), 0U);

    const auto in_pod = netlink::DumpNeighbours(pod.socket(), family, eth0.index).value();
    const netlink::Neighbour gateway{eth0.index, f.gateway, spec.host_mac, NUD_PERMANENT};
    EXPECT_EQ(std::count(in_pod.begin(), in_pod.end(), gateway), 1);
    const auto on_node = netlink::DumpNeighbours(node_->socket(), family, host.index).value();
    const netlink::Neighbour in_the_pod{host.index, f.address, spec.pod_mac, NUD_PERMANENT};
    EXPECT_EQ(std::count(on_node.begin(), on_node.end(), in_the_pod), 1);

    const auto routes = netlink::DumpAllRoutes(pod.socket(), family).value();
    EXPECT_EQ(std::count_if(routes.begin(), routes.end(),
                            [&](const netlink::Route& r) {
                              return r.destination.length() == 0 && r.type == RTN_UNICAST &&
                                     r.gateway == f.gateway && r.link == eth0.index &&
                                     r.protocol == claims::kRouteProtocol;
                            }),
              1);
  }
  // The host end has no address of its own, of any kind.
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    EXPECT_TRUE(netlink::DumpAddresses(node_->socket(), family, host.index)->empty());
  }
  const std::string conf = "ipv4/conf/" + spec.host_link;
  EXPECT_EQ(Setting(conf + "/forwarding"), "1\n");
  EXPECT_EQ(Setting(conf + "/rp_filter"), "1\n");
  EXPECT_EQ(Setting(conf + "/proxy_arp"), "0\n");
  EXPECT_EQ(Setting(conf + "/accept_redirects"), "0\n");
}

TEST_F(KernelLinksTest, AForgedSourceAddressIsDropped) {
  PodNetns one;
  const PodNetns two;
  ASSERT_TRUE(Attach(*links_, Spec("one", {kFirstV4}), one.fd()).ok());
  ASSERT_TRUE(Attach(*links_, Spec("two", {kSecondV4}), two.fd()).ok());
  const auto eth0 = netlink::GetLink(one.socket(), "eth0").value();
  MustSend(one.socket(), {netlink::AddAddress(eth0.index, kUnassignedV4)});
  UdpSocket forger(one.netns(), kUnassignedV4);
  UdpSocket honest(one.netns(), kFirstV4);
  UdpSocket server(two.netns(), kSecondV4);
  forger.Connect(kSecondV4, server.port());
  honest.Connect(kSecondV4, server.port());
  EXPECT_EQ(forger.Send("forged"), 0);
  EXPECT_EQ(honest.Send("honest"), 0);
  EXPECT_EQ(server.Receive(), "honest");
}

TEST_F(KernelLinksTest, NothingIsLeftAfterDetach) {
  PodNetns pod;
  const std::vector<std::string> node_before = Snapshot(node_->socket());
  const std::vector<std::string> pod_before = Snapshot(pod.socket());
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(*links_, spec, pod.fd()).ok());
  EXPECT_NE(Snapshot(node_->socket()), node_before);
  ASSERT_TRUE(Detach(*links_, spec.host_link).ok());
  ASSERT_TRUE(links_->FinishDetaching().ok());
  EXPECT_EQ(Snapshot(node_->socket()), node_before);
  EXPECT_EQ(Snapshot(pod.socket()), pod_before);
}

TEST_F(KernelLinksTest, ARefusedAttachChangesNothingAnywhere) {
  PodNetns pod;
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(*links_, spec, pod.fd()).ok());
  AwaitLocal(pod.socket(), kFirstV6);
  const std::vector<std::string> node_before = Snapshot(node_->socket());
  const std::vector<std::string> pod_before = Snapshot(pod.socket());

  const absl::Status same_pod = Attach(*links_, Spec("other", {kSecondV4}), pod.fd());
  EXPECT_TRUE(absl::IsAlreadyExists(same_pod)) << same_pod;
  PodNetns other;
  const std::vector<std::string> other_before = Snapshot(other.socket());
  const absl::Status same_link = Attach(*links_, Spec("pod", {kSecondV4, kSecondV6}), other.fd());
  EXPECT_TRUE(absl::IsAlreadyExists(same_link)) << same_link;
  const absl::Status own = Attach(*links_, Spec("own", {kSecondV4}), node_->node().fd());
  EXPECT_TRUE(absl::IsFailedPrecondition(own)) << own;
  const testing_support::TempDir dir;
  const os::UniqueFd file(::open(dir.File("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const absl::Status not_one = Attach(*links_, Spec("file", {kSecondV4}), file.get());
  EXPECT_TRUE(absl::IsFailedPrecondition(not_one)) << not_one;

  EXPECT_EQ(Snapshot(node_->socket()), node_before);
  EXPECT_EQ(Snapshot(pod.socket()), pod_before);
  EXPECT_EQ(Snapshot(other.socket()), other_before);
}

TEST_F(KernelLinksTest, AFailureInThePodIsUndone) {
  PodNetns pod;
  // This is somebody's default route, but none for IPv4.
  MustSend(pod.socket(),
           {netlink::AddRoute(
               {.destination = ip::Prefix::Of(kNodeV6, 0).value(), .link = 1, .metric = 1024})});
  const std::vector<std::string> node_before = Snapshot(node_->socket());
  const std::vector<std::string> pod_before = Snapshot(pod.socket());
  const absl::Status status = Attach(*links_, Spec("pod", {kFirstV4, kFirstV6}), pod.fd());
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_NE(status.message().find("::/0"), absl::string_view::npos) << status;
  EXPECT_EQ(Snapshot(node_->socket()), node_before);
  EXPECT_EQ(Snapshot(pod.socket()), pod_before);
}

TEST_F(KernelLinksTest, AFailureOnTheNodeIsUndone) {
  Set("ipv6/conf/default/disable_ipv6", "1");
  PodNetns pod;
  const std::vector<std::string> node_before = Snapshot(node_->socket());
  const std::vector<std::string> pod_before = Snapshot(pod.socket());
  const absl::Status status = Attach(*links_, Spec("pod", {kFirstV4, kFirstV6}), pod.fd());
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_EQ(Snapshot(node_->socket()), node_before);
  EXPECT_EQ(Snapshot(pod.socket()), pod_before);
}

TEST_F(KernelLinksTest, AnIpv4PodNeedsNoIpv6) {
  Set("ipv6/conf/all/disable_ipv6", "1");
  Set("ipv6/conf/default/disable_ipv6", "1");
  const PodNetns one;
  const PodNetns two;
  for (const PodNetns* pod : {&one, &two}) {
    ASSERT_TRUE(pod->netns()
                    .Run([] {
                      Set("ipv6/conf/all/disable_ipv6", "1");
                      Set("ipv6/conf/default/disable_ipv6", "1");
                      return absl::OkStatus();
                    })
                    .ok());
  }
  ASSERT_TRUE(Attach(*links_, Spec("one", {kFirstV4}), one.fd()).ok());
  // Below 1280 bytes a device has no IPv6 part that could be configured.
  const absl::Status small = Attach(*links_, Spec("two", {kSecondV4}, 576), two.fd());
  ASSERT_TRUE(small.ok()) << small;
  UdpSocket client(one.netns(), kFirstV4);
  UdpSocket server(two.netns(), kSecondV4);
  EXPECT_TRUE(CanTalk(client, server, kSecondV4, 500));
}

TEST_F(KernelLinksTest, TheHostLinkHasIpv6OnlyForAPodThatHasIt) {
  const PodNetns one;
  const PodNetns two;
  const AttachSpec v4 = Spec("one", {kFirstV4});
  const AttachSpec both = Spec("two", {kSecondV4, kSecondV6});
  ASSERT_TRUE(Attach(*links_, v4, one.fd()).ok());
  ASSERT_TRUE(Attach(*links_, both, two.fd()).ok());
  const auto sides = links_->Read().value();
  EXPECT_EQ(sides.at(v4.host_link).disable_ipv6, 1U);
  EXPECT_EQ(sides.at(both.host_link).disable_ipv6, 0U);
  EXPECT_EQ(sides.at(both.host_link).accept_ra, 0U);
}

// The kernel looks for a namespace's number from the lowest on.
TEST_F(KernelLinksTest, EachPodHasALowerNumberThanThoseBefore) {
  const std::array<PodNetns, 3> pods;
  const std::array specs = {Spec("one", {kFirstV4}), Spec("two", {kSecondV4}),
                            Spec("three", {kUnassignedV4})};
  ASSERT_TRUE(Attach(*links_, specs[0], pods[0].fd()).ok());
  ASSERT_TRUE(Attach(*links_, specs[1], pods[1].fd()).ok());
  const auto next = KernelLinks::Create().value();  // As an agent that begins anew.
  ASSERT_TRUE(Attach(*next, specs[2], pods[2].fd()).ok());
  const auto sides = next->Read().value();
  const auto number = [&](size_t pod) {
    return sides.at(specs.at(pod).host_link).peer_netns.value();
  };
  EXPECT_LT(number(1), number(0));
  EXPECT_LT(number(2), number(1));
}

TEST_F(KernelLinksTest, APodKeepsTheNumberThatItHas) {
  const PodNetns pod;
  const netlink::Request given = netlink::NumberNetns(pod.fd(), 7);
  ASSERT_TRUE(netlink::SendBatch(node_->socket(), std::span(&given, 1)).status.ok());
  const AttachSpec spec = Spec("pod", {kFirstV4});
  ASSERT_TRUE(Attach(*links_, spec, pod.fd()).ok());
  EXPECT_EQ(links_->Read().value().at(spec.host_link).peer_netns, 7);
}

// As where /proc/sys is read-only.
TEST_F(KernelLinksTest, APodWhoseLinkCannotBeToldToHearNoRoutersIsAttachedAndThatIsFound) {
  const testing_support::TempDir empty;
  const auto links = KernelLinks::Create({.sysctl_root = empty.path()}).value();
  const PodNetns pod;
  const AttachSpec spec = Spec("pod", {kFirstV4});
  Set("ipv6/conf/default/accept_ra", "1");
  ASSERT_TRUE(Attach(*links, spec, pod.fd()).ok());
  const LinkOperations left = PlanLink(spec, {.host = links->Read()->at(spec.host_link)});
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].part, Part::kHostRouters);
  EXPECT_NE(left[0].found.find("disable_ipv6 is 0, not 1"), std::string::npos) << left[0].found;
  EXPECT_FALSE(links->Apply(spec, left, std::nullopt).ok());
  // An agent that can write it mends it.
  EXPECT_TRUE(links_->Apply(spec, left, std::nullopt).ok());
  EXPECT_TRUE(PlanLink(spec, {.host = links_->Read()->at(spec.host_link)}).empty());
}

TEST_F(KernelLinksTest, OnlyAPodWithAnIpv6AddressHasALinkLocalOne) {
  PodNetns with;
  PodNetns without;
  ASSERT_TRUE(Attach(*links_, Spec("one", {kFirstV4, kFirstV6}), with.fd()).ok());
  ASSERT_TRUE(Attach(*links_, Spec("two", {kSecondV4}), without.fd()).ok());
  const auto addresses = [](PodNetns& pod) {
    const netlink::Link link = netlink::GetLink(pod.socket(), "eth0").value();
    EXPECT_TRUE(link.up);
    return netlink::DumpAddresses(pod.socket(), ip::Family::kV6, link.index).value();
  };
  const auto of_first = addresses(with);
  EXPECT_TRUE(std::any_of(of_first.begin(), of_first.end(), [](const auto& own) {
    return ip::Prefix::Parse("fe80::/10").value().Contains(own.address);
  }));
  EXPECT_TRUE(addresses(without).empty());
}

TEST_F(KernelLinksTest, AHundredAttachmentsLeaveNoTrace) {
  PodNetns pod;
  const std::vector<std::string> node_before = Snapshot(node_->socket());
  const std::vector<std::string> pod_before = Snapshot(pod.socket());
  std::vector<absl::Duration> attach_times;
  for (int i = 0; i < 100; ++i) {
    const AttachSpec spec = Spec("pod" + std::to_string(i), {kFirstV4, kFirstV6});
    const absl::Time start = absl::Now();
    const absl::Status status = Attach(*links_, spec, pod.fd());
    attach_times.push_back(absl::Now() - start);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(Detach(*links_, spec.host_link).ok());
  }
  ASSERT_TRUE(links_->FinishDetaching().ok());
  EXPECT_EQ(Snapshot(node_->socket()), node_before);
  EXPECT_EQ(Snapshot(pod.socket()), pod_before);
  std::sort(attach_times.begin(), attach_times.end());
  RecordProperty("attach_microseconds_p50",
                 std::to_string(absl::ToInt64Microseconds(attach_times[50])));
  RecordProperty("attach_microseconds_p90",
                 std::to_string(absl::ToInt64Microseconds(attach_times[90])));
}

TEST_F(KernelLinksTest, AttachWorksInItsNodeWhereverTheThreadIs) {
  const PodNetns pod;
  const PodNetns elsewhere;
  const AttachSpec spec = Spec("pod", {kFirstV4});
  ASSERT_TRUE(elsewhere.netns().Run([&] { return Attach(*links_, spec, pod.fd()); }).ok());
  EXPECT_TRUE(netlink::GetLink(node_->socket(), spec.host_link).ok());
}

TEST_F(KernelLinksTest, AttachedLinksAreOnlyTheOnesWithOurNameAndRoutes) {
  const PodNetns pod;
  const AttachSpec spec = Spec("pod", {kFirstV4});
  ASSERT_TRUE(Attach(*links_, spec, pod.fd()).ok());
  // These are somebody else's: a name like ours that is none, and a route of theirs to our link.
  const auto host = netlink::GetLink(node_->socket(), spec.host_link).value();
  MustSend(node_->socket(),
           {netlink::CreateVeth({"spkx", 900, {{2, 0, 0, 0, 3, 1}}},
                                {"spkxp", 901, {{2, 0, 0, 0, 3, 2}}}, node_->node().fd(), 1500),
            netlink::AddRoute({.destination = ip::Prefix::Host(kSecondV4),
                               .protocol = RTPROT_STATIC,
                               .scope = RT_SCOPE_LINK,
                               .link = host.index})});
  EXPECT_EQ(ListAttached(*links_).value(),
            (std::vector<AttachedLink>{{spec.host_link, {kFirstV4}}}));
}

TEST_F(KernelLinksTest, ALinkThatWentDownIsListedWithoutAddresses) {
  const PodNetns pod;
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(*links_, spec, pod.fd()).ok());
  const auto host = netlink::GetLink(node_->socket(), spec.host_link).value();
  MustSend(node_->socket(), {netlink::SetLinkUp(host.index, false)});
  EXPECT_EQ(ListAttached(*links_).value(), (std::vector<AttachedLink>{{spec.host_link, {}}}));
}

// Sees what leaves the node for the fabric.
class FabricTap {
 public:
  explicit FabricTap(const netns::Netns& fabric) {
    const absl::Status status = fabric.Run([this] {
      fd_ = os::UniqueFd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(fd_.valid());
  }

  // Returns whether a packet to `address` has come since the last call.
  bool Saw(const ip::Address& address) {
    const std::string bytes = address.ToBytes();
    // The offset of the destination in the IP header.
    const size_t offset = address.is_v4() ? 16 : 24;
    std::array<char, 2048> packet{};
    bool saw = false;
    while (true) {
      const ssize_t got = ::recv(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
      if (got < 0) return saw;
      const std::string_view text(packet.data(), static_cast<size_t>(got));
      saw = saw || (text.size() > offset && text.substr(offset, bytes.size()) == bytes);
    }
  }

 private:
  os::UniqueFd fd_;
};

TEST_F(KernelLinksTest, AHeldAddressThatNobodyHasIsUnreachableAndNotForwarded) {
  PodNetns pod;
  ASSERT_TRUE(Attach(*links_, Spec("pod", {kFirstV4, kFirstV6}), pod.fd()).ok());
  AwaitLocal(pod.socket(), kFirstV6);
  FabricTap fabric(node_->fabric());
  struct Pair {
    ip::Address own, unassigned;
    int error;
  };
  // For IPv6 Linux answers with "no route" (RFC 4443, type 1, code 0) whichever kind of unreachable
  // route it is.
  for (const Pair& p :
       {Pair{kFirstV4, kUnassignedV4, EHOSTUNREACH}, Pair{kFirstV6, kUnassignedV6, ENETUNREACH}}) {
    SCOPED_TRACE(p.unassigned.ToString());
    // Without the route the packet leaves for the fabric, which would send it back.
    ASSERT_TRUE(links_->SetUnreachable({}).ok());
    UdpSocket before(pod.netns(), p.own);
    before.Connect(p.unassigned, 9);
    EXPECT_EQ(before.Send("x"), 0);
    EXPECT_TRUE(fabric.Saw(p.unassigned));

    ASSERT_TRUE(links_->SetUnreachable({p.own, p.unassigned}).ok());
    UdpSocket after(pod.netns(), p.own);
    after.Connect(p.unassigned, 9);
    EXPECT_EQ(after.Send("x"), 0);
    EXPECT_EQ(after.Receive(), "");
    EXPECT_EQ(errno, p.error);
    EXPECT_FALSE(fabric.Saw(p.unassigned));
  }
}

TEST_F(KernelLinksTest, AReleasedAddressIsUnreachableAtOnce) {
  const PodNetns one;
  const PodNetns two;
  ASSERT_TRUE(links_->SetUnreachable({kFirstV4, kSecondV4}).ok());
  ASSERT_TRUE(Attach(*links_, Spec("one", {kFirstV4}), one.fd()).ok());
  const AttachSpec leaving = Spec("two", {kSecondV4});
  ASSERT_TRUE(Attach(*links_, leaving, two.fd()).ok());
  UdpSocket client(one.netns(), kFirstV4);
  UdpSocket server(two.netns(), kSecondV4);
  EXPECT_TRUE(CanTalk(client, server, kSecondV4, 1));

  FabricTap fabric(node_->fabric());
  ASSERT_TRUE(Detach(*links_, leaving.host_link).ok());
  EXPECT_EQ(client.Send("x"), 0);
  EXPECT_EQ(client.Receive(), "");
  EXPECT_EQ(errno, EHOSTUNREACH);
  EXPECT_FALSE(fabric.Saw(kSecondV4));
}

TEST_F(KernelLinksTest, UnreachableRoutesOfOthersStay) {
  const netlink::Route theirs{.destination = ip::Prefix::Host(kUnassignedV4),
                              .protocol = RTPROT_STATIC,
                              .type = RTN_UNREACHABLE,
                              .metric = 77};
  MustSend(node_->socket(), {netlink::AddRoute(theirs)});
  ASSERT_TRUE(links_->SetUnreachable({kUnassignedV4}).ok());
  ASSERT_TRUE(links_->SetUnreachable({}).ok());
  const auto routes =
      netlink::DumpRoutes(node_->socket(), ip::Family::kV4, RT_TABLE_MAIN, RTPROT_STATIC).value();
  EXPECT_EQ(std::count(routes.begin(), routes.end(), theirs), 1);
}

TEST_F(KernelLinksTest, PrepareNodeWorksOnTheNamespaceItIsCalledIn) {
  const PodNetns fresh;
  const absl::Status status = fresh.netns().Run([] {
    const NodeSetupReport first = PrepareNode();
    EXPECT_TRUE(first.failed.empty());
    EXPECT_EQ(Setting("ipv4/ip_forward"), "1\n");
    EXPECT_EQ(Setting("ipv6/conf/all/forwarding"), "1\n");
    EXPECT_TRUE(PrepareNode().changed.empty());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace spoke::netagent
