// Counting, isolation and the fast path in a real kernel.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <sstream>
#include <thread>

#include "fmt/core.h"
#include "lib/os/file.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/nftables/nft_watch.h"
#include "tests/netns/traffic/traffic_world.h"

namespace spoke::netagent {
namespace {

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }

const ip::Address kPodV4 = A("10.0.1.7");
const ip::Address kPodV6 = A("fd00:0:0:1::7");
const ip::Address kOtherV4 = A("10.0.1.8");
const ip::Address kOtherV6 = A("fd00:0:0:1::8");

constexpr size_t kPayload = 100;
size_t Bytes(const ip::Address& address) { return kPayload + (address.is_v4() ? 28 : 48); }

Policy Example(std::initializer_list<std::string_view> cluster = {"10.0.0.0/16", "fd00::/32"}) {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main",
      .bytes = {},
      .value = policy::ClusterNetwork{.cluster = policy::Blocks(cluster),
                                      .hub = policy::Blocks({"10.200.0.0/16", "fd00:200::/32"}),
                                      .peer_spoke = policy::Blocks({"10.9.0.0/16", "fd00:9::/32"}),
                                      .storage = policy::Blocks({"20.60.0.0/16", "fd00:20::/32"}),
                                      .services = policy::Blocks({"10.0.96.0/20"})}};
  policy.entries["DestinationGroup/mirror"] = {
      .key = "DestinationGroup/mirror",
      .bytes = {},
      .value = policy::DestinationGroup{policy::Blocks({"151.101.0.0/16"})}};
  return policy;
}

struct Far {
  const char* address;
  const char* class_name;
};
constexpr Far kFar[] = {
    {"10.0.200.5", "cluster"}, {"fd00:0:5::5", "cluster"},  {"10.200.0.5", "hub"},
    {"fd00:200::5", "hub"},    {"20.60.0.5", "storage"},    {"fd00:20::5", "storage"},
    {"8.8.8.8", "internet"},   {"2001:db8::8", "internet"}, {"151.101.0.5", "group:mirror"},
};

class TrafficNetnsTest : public TrafficWorldTest, public testing::WithParamInterface<bool> {
 protected:
  void ExpectRepairAfter(const char* harm, absl::Duration pause,
                         const std::function<void()>& then = {});
};

TEST_P(TrafficNetnsTest, CountsEveryClassInBothDirectionsAndFamilies) {
  Begin(GetParam(), Example());
  PodNetns pod;
  AddPod(pod, "a", {kPodV4, kPodV6});
  for (const Far& far : kFar) {
    SCOPED_TRACE(far.address);
    const ip::Address remote = A(far.address);
    AddRemote(remote);
    const TrafficCount before = InClass(far.class_name);
    UdpSocket client(pod.netns(), remote.is_v4() ? kPodV4 : kPodV6);
    UdpSocket server(node_->fabric(), remote);
    ASSERT_TRUE(CanTalk(client, server, remote, kPayload));
    const TrafficCount after = InClass(far.class_name);
    EXPECT_EQ(after.sent - before.sent, Bytes(remote));
    EXPECT_EQ(after.received - before.received, Bytes(remote));
    EXPECT_EQ(after.sent_packets - before.sent_packets, 1U);
    EXPECT_EQ(after.received_packets - before.received_packets, 1U);
  }
  EXPECT_EQ(FastPackets(), GetParam() ? 2U : 0U);
  EXPECT_TRUE(Read().drops["unknown-source"].packets == 0);
}

TEST_P(TrafficNetnsTest, CountsBothPodsOfOneNodeAndTheNodeItself) {
  Begin(GetParam(), Example());
  PodNetns one;
  PodNetns two;
  AddPod(one, "a", {kPodV4, kPodV6});
  AddPod(two, "b", {kOtherV4, kOtherV6});
  for (const auto& [from, to] : {std::pair{kPodV4, kOtherV4}, std::pair{kPodV6, kOtherV6}}) {
    UdpSocket client(one.netns(), from);
    UdpSocket server(two.netns(), to);
    const TrafficCount before = InClass("cluster");
    ASSERT_TRUE(CanTalk(client, server, to, kPayload));
    // Each packet is sent by one and received by the other.
    EXPECT_EQ(InClass("cluster").sent - before.sent, 2 * Bytes(to));
    EXPECT_EQ(InClass("cluster").received - before.received, 2 * Bytes(to));
  }
  for (const auto& [from, to] : {std::pair{kPodV4, kNodeV4}, std::pair{kPodV6, kNodeV6}}) {
    UdpSocket client(one.netns(), from);
    UdpSocket server(node_->node(), to);
    const TrafficCount before = InClass("cluster");
    const TrafficCount node = Read().node["input"]["cluster"];
    ASSERT_TRUE(CanTalk(client, server, to, kPayload));
    EXPECT_EQ(InClass("cluster").sent - before.sent, Bytes(to));
    EXPECT_EQ(InClass("cluster").received - before.received, Bytes(to));
    EXPECT_EQ(Read().node["input"]["cluster"].received - node.received, Bytes(to));
  }
}

// Returns whether a packet passes. If nothing arrives, the sender's next call is the only one that
// waits.
bool Passes(UdpSocket& from, UdpSocket& to, const ip::Address& address) {
  from.Connect(address, to.port());
  EXPECT_EQ(from.Send(std::string(kPayload, 'x')), 0);
  return !to.Receive().empty();
}

TEST_P(TrafficNetnsTest, DropsWhatGoesToAPeerAndWhatComesFromOne) {
  Begin(GetParam(), Example());
  PodNetns pod;
  AddPod(pod, "a", {kPodV4, kPodV6});
  uint64_t dropped = 0;
  for (const auto& [own, text] : {std::pair{kPodV4, "10.9.0.5"}, std::pair{kPodV6, "fd00:9::5"}}) {
    SCOPED_TRACE(text);
    AddRemote(A(text));
    UdpSocket client(pod.netns(), own);
    UdpSocket server(node_->fabric(), A(text));
    EXPECT_FALSE(Passes(client, server, A(text)));
    UdpSocket inside(pod.netns(), own);
    EXPECT_FALSE(Passes(server, inside, own));
    ++dropped;
    EXPECT_EQ(Read().drops["peer-spoke-sent"].packets, dropped);
    EXPECT_EQ(Read().drops["peer-spoke-received"].packets, dropped);
  }
  EXPECT_EQ(FastPackets(), 0U);
}

TEST_P(TrafficNetnsTest, DropsASourceThatIsNotThePods) {
  Begin(GetParam(), Example());
  PodNetns pod;
  AddPod(pod, "a", {kPodV4, kPodV6});
  AddRemote(A("10.0.200.5"));
  AddRemote(A("fd00:0:5::5"));
  // IPv4 is stopped by the route back already; IPv6 has no such check in the kernel.
  Shell(pod.netns(), "ip address add fd00:0:0:1::66/128 dev eth0 nodad");
  UdpSocket liar(pod.netns(), A("fd00:0:0:1::66"));
  UdpSocket server(node_->fabric(), A("fd00:0:5::5"));
  EXPECT_FALSE(Passes(liar, server, A("fd00:0:5::5")));
  EXPECT_EQ(Read().drops["unknown-source"].packets, 1U);
  EXPECT_EQ(InClass("cluster").sent, 0U);
}

TEST_P(TrafficNetnsTest, CountersOnlyRiseWhateverHappensToPolicyAndAgent) {
  Begin(GetParam(), Example());
  PodNetns pod;
  AddPod(pod, "a", {kPodV4});
  const ip::Address remote = A("10.0.200.5");
  AddRemote(remote);
  UdpSocket server(node_->fabric(), remote);
  uint64_t talked = 0;
  const auto talk = [&] {
    UdpSocket client(pod.netns(), kPodV4);
    ASSERT_TRUE(CanTalk(client, server, remote, kPayload));
    ++talked;
  };
  const auto total = [&] {
    uint64_t sum = 0;
    const TrafficTotals totals = Read();
    for (const auto& [name, volume] : totals.namespaces.at("web")) sum += volume.sent;
    return sum;
  };
  const auto expect = [&] { EXPECT_EQ(total(), talked * Bytes(remote)); };
  talk();
  expect();
  // The same address becomes Internet, under way.
  ASSERT_TRUE(traffic_->OnPolicy(Example({"10.0.0.0/17"})).ok());
  talk();
  expect();
  EXPECT_EQ(InClass("internet").sent, Bytes(remote));
  ASSERT_TRUE(traffic_->OnPolicy(Example()).ok());
  talk();
  expect();
  // Another agent, with the fast path and without.
  for (const bool fast : {!GetParam(), GetParam()}) {
    Begin(fast, Example());
    expect();
    talk();
    expect();
  }
  // The agent is killed between reading and settling: the pod has gone, and the transaction fails.
  RemovePod("a");
  expect();
  expect();
  clock_.Advance(Traffic::kLook);
  tables_->broken = absl::UnavailableError("broken");
  traffic_->Tick();
  tables_->broken = absl::OkStatus();
  expect();
  Begin(GetParam(), Example());
  expect();
  EXPECT_TRUE(Read().pods.empty());
  PodNetns next;
  AddPod(next, "b", {kPodV4});
  expect();
}

// Expects that when somebody does `harm` and `then` happens, the traffic object repairs it once
// within `pause`.
void TrafficNetnsTest::ExpectRepairAfter(const char* harm, absl::Duration pause,
                                         const std::function<void()>& then) {
  SCOPED_TRACE(harm);
  const uint64_t before = Read().drift_repaired;
  Shell(node_->node(), harm);
  if (then) then();
  clock_.Advance(pause);
  traffic_->Tick();
  EXPECT_EQ(Read().drift_repaired, before + 1);
}

TEST_P(TrafficNetnsTest, PutsBackWhatSomebodyElseHasChanged) {
  Begin(GetParam(), Example());
  PodNetns pod;
  AddPod(pod, "a", {kPodV4});
  clock_.Advance(Traffic::kLook);
  traffic_->Tick();
  EXPECT_EQ(Read().drift_repaired, 0U) << testing::PrintToString(log_.lines());
  for (const char* harm :
       {"nft insert rule inet spoke forward accept", "nft flush chain inet spoke from4",
        "nft flush set inet spoke pods4", "nft delete table inet spoke"}) {
    ExpectRepairAfter(harm, Traffic::kLook);
  }
  const ip::Address remote = A("8.8.8.8");
  AddRemote(remote);
  UdpSocket client(pod.netns(), kPodV4);
  UdpSocket server(node_->fabric(), remote);
  EXPECT_TRUE(CanTalk(client, server, remote, kPayload));
}

TEST_P(TrafficNetnsTest, AFlushIsHeardAndPutBack) {
  Begin(GetParam(), Example());
  const auto watch = NftWatch::Open(tables_->port_id());
  ASSERT_TRUE(watch.ok()) << watch.status();
  PodNetns pod;
  AddPod(pod, "a", {kPodV4, kPodV6});
  EXPECT_FALSE((*watch)->Drain());  // The change was its own.
  Shell(node_->node(), "nft add table inet other; nft add chain inet other spoke");
  EXPECT_FALSE((*watch)->Drain());
  for (const char* harm :
       {"nft flush ruleset", "nft delete table inet spoke-names",
        "nft insert rule inet spoke forward accept", "nft flush set inet spoke pods4"}) {
    ExpectRepairAfter(harm, absl::Milliseconds(50), [&] {
      EXPECT_TRUE((*watch)->Drain());
      traffic_->OnTablesChanged();
    });
    EXPECT_FALSE((*watch)->Drain());
  }
}

INSTANTIATE_TEST_SUITE_P(Path, TrafficNetnsTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Fast" : "Slow"; });

class FastPathNetnsTest : public TrafficWorldTest {};

TEST_F(FastPathNetnsTest, EachNodeTakesOneHop) {
  Begin(/*fast=*/true, Example());
  PodNetns one;
  PodNetns two;
  AddPod(one, "a", {kPodV4, kPodV6});
  AddPod(two, "b", {kOtherV4, kOtherV6});
  // A packet with one hop left ends here, and its sender hears of it.
  Shell(one.netns(), "sysctl -qw net.ipv4.ip_default_ttl=1");
  UdpSocket client(one.netns(), kPodV4);
  UdpSocket server(two.netns(), kOtherV4);
  client.Connect(kOtherV4, server.port());
  EXPECT_EQ(client.Send("x"), 0);
  EXPECT_EQ(client.Receive(), "");
  EXPECT_EQ(errno, EHOSTUNREACH);  // The error is "time exceeded".
  EXPECT_EQ(FastPackets(), 0U);
  Shell(one.netns(), "sysctl -qw net.ipv4.ip_default_ttl=2");
  UdpSocket again(one.netns(), kPodV4);
  EXPECT_TRUE(Passes(again, server, kOtherV4));
  EXPECT_EQ(FastPackets(), 1U);
}

// Sends a router advertisement from the pod behind `link`, which the node is set to listen to.
// Returns whether the node has a default route by that link afterwards.
bool BecomesRouter(const PodNetns& pod, const netns::Netns& node, const std::string& link) {
  Shell(node, "sysctl -qw net.ipv6.conf." + link + ".accept_ra=2");
  const absl::Status sent = pod.netns().Run([] {
    const os::UniqueFd fd(::socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
    const int hops = 255;
    EXPECT_EQ(::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops)), 0);
    nd_router_advert message{};
    message.nd_ra_type = ND_ROUTER_ADVERT;
    message.nd_ra_curhoplimit = 64;
    message.nd_ra_router_lifetime = htons(1800);
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_scope_id = ::if_nametoindex("eth0");
    EXPECT_EQ(::inet_pton(AF_INET6, "ff02::1", &to.sin6_addr), 1);
    // A link-local address may still be tentative.
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(::sendto(fd.get(), &message, sizeof(message), 0,
                         reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
                static_cast<ssize_t>(sizeof(message)));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(sent.ok()) << sent;
  const absl::StatusOr<std::string> routes = os::ReadFile("/proc/thread-self/net/ipv6_route");
  EXPECT_TRUE(routes.ok()) << routes.status();
  std::istringstream lines(routes.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const bool is_default = line.rfind(std::string(32, '0') + " 00 ", 0) == 0;
    if (is_default && line.find(link) != std::string::npos) return true;
  }
  return false;
}

TEST_F(FastPathNetnsTest, NoPodBecomesTheNodesRouter) {
  for (const bool fast : {true, false}) {
    Begin(fast, Example());
    PodNetns pod;
    AddPod(pod, "a", {kPodV4, kPodV6});
    const auto tries = [&] { return BecomesRouter(pod, node_->node(), pods_.at("a").host_link); };
    EXPECT_FALSE(tries());
    EXPECT_GT(Read().drops.at("router-message").packets, 0U);
    if (!fast) {
      // It fails by our rules, by the guard of its link, and by nothing else.
      Shell(node_->node(), "nft delete table inet spoke");
      EXPECT_FALSE(tries());
      clock_.Advance(Traffic::kLook);
      traffic_->Tick();
      ASSERT_TRUE(fast_path_->Remove().ok());
      EXPECT_FALSE(tries());
      Shell(node_->node(), "nft delete table inet spoke");
      EXPECT_TRUE(tries());
    }
    RemovePod("a");
  }
}

TEST_F(FastPathNetnsTest, ALargePacketOfAJumboPodGetsItsAnswer) {
  Begin(/*fast=*/true, Example());
  PodNetns pod;
  AddPod(pod, "a", {kPodV4}, /*mtu=*/9000);
  const ip::Address remote = A("10.0.200.5");
  AddRemote(remote);
  UdpSocket client(pod.netns(), kPodV4);
  UdpSocket server(node_->fabric(), remote);
  client.Connect(remote, server.port());
  // Path MTU discovery is on by default: the packet must not be cut.
  EXPECT_EQ(client.Send(std::string(4000, 'x')), 0);
  EXPECT_EQ(client.Receive(), "");
  EXPECT_EQ(errno, EMSGSIZE);  // The error is "fragmentation needed".
  EXPECT_TRUE(CanTalk(client, server, remote, kPayload));
  EXPECT_EQ(FastPackets(), 0U);
}

// kube-proxy's part is played by one rule, and by the one that drops what the connection tracking
// calls invalid.
TEST_F(FastPathNetnsTest, WhatTheNodeSendsToAServiceIsCountedForThePodThatGetsIt) {
  Begin(/*fast=*/true, Example());
  PodNetns pod;
  AddPod(pod, "a", {kPodV4});
  const ip::Address service = A("10.0.96.10");
  Shell(node_->node(),
        "nft 'add table ip proxy; "
        "add chain ip proxy out { type nat hook output priority -100; }; "
        "add rule ip proxy out ip daddr 10.0.96.10 dnat to 10.0.1.7'");
  const TrafficCount before = InClass("cluster");
  UdpSocket client(node_->node(), kNodeV4);
  UdpSocket server(pod.netns(), kPodV4);
  client.Connect(service, server.port());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(client.Send(std::string(1000, 'x')), 0);
    server.EchoOnce();
    EXPECT_EQ(client.Receive().size(), 1000U);
  }
  const TrafficCount after = InClass("cluster");
  EXPECT_EQ(after.received - before.received, 10U * 1028);
  EXPECT_EQ(after.sent - before.sent, 10U * 1028);
}

TEST_F(FastPathNetnsTest, AServiceWorksBesideDirectConnectionsOfTheSamePair) {
  Begin(/*fast=*/true, Example());
  PodNetns pod;
  AddPod(pod, "a", {kPodV4});
  const ip::Address endpoint = A("10.0.200.5");
  const ip::Address service = A("10.0.96.10");
  AddRemote(endpoint);
  Shell(node_->node(),
        "nft 'add table ip proxy; "
        "add chain ip proxy pre { type nat hook prerouting priority -100; }; "
        "add rule ip proxy pre ip daddr 10.0.96.10 dnat to 10.0.200.5; "
        "add chain ip proxy guard { type filter hook forward priority 0; }; "
        "add rule ip proxy guard ct state invalid counter drop'");
  UdpSocket direct(pod.netns(), kPodV4);
  UdpSocket server(node_->fabric(), endpoint);
  ASSERT_TRUE(CanTalk(direct, server, endpoint, kPayload));
  EXPECT_EQ(FastPackets(), 1U);
  UdpSocket by_service(pod.netns(), kPodV4);
  ASSERT_TRUE(CanTalk(by_service, server, service, kPayload));
  // The pair goes the long way now, both directions, and all of it is counted.
  ASSERT_TRUE(CanTalk(direct, server, endpoint, kPayload));
  ASSERT_TRUE(CanTalk(by_service, server, service, kPayload));
  EXPECT_EQ(FastPackets(), 1U);
  EXPECT_EQ(InClass("cluster").sent_packets, 4U);
  EXPECT_EQ(InClass("cluster").received_packets, 4U);
  // Another pair still goes the short way.
  const ip::Address other = A("10.0.200.6");
  AddRemote(other);
  UdpSocket second(node_->fabric(), other);
  ASSERT_TRUE(CanTalk(direct, second, other, kPayload));
  EXPECT_EQ(FastPackets(), 2U);
}

}  // namespace
}  // namespace spoke::netagent
