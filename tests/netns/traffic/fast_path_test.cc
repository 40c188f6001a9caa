// The fast path's programs in a real kernel: which packets they take, and which not.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "lib/netlink/link.h"
#include "lib/netlink/queueing/filter.h"
#include "netagent/claims.h"
#include "netagent/fastpath/testing/fast_path_contract.h"
#include "tests/netns/traffic/fast_path_world.h"

namespace spoke::netagent {
namespace {

constexpr size_t kPayload = 100;

// The bytes of IP and UDP.
size_t HeadersOf(const ip::Address& address) { return address.is_v4() ? 28 : 48; }

// Runs nft(8) with `rules`, in the calling thread's namespace.
void Nft(const std::string& rules) {
  std::FILE* const pipe = ::popen("nft -f -", "w");  // NOLINT(cert-env33-c): a fixed command.
  ASSERT_NE(pipe, nullptr);
  std::fputs(rules.c_str(), pipe);
  ASSERT_EQ(::pclose(pipe), 0);
}

FastCounts OnePacketEachWay(const ip::Address& address) {
  const uint64_t bytes = kPayload + HeadersOf(address);
  return {.sent_packets = 1, .sent_bytes = bytes, .received_packets = 1, .received_bytes = bytes};
}

FastCounts Sum(const FastCounts& a, const FastCounts& b) {
  return {.sent_packets = a.sent_packets + b.sent_packets,
          .sent_bytes = a.sent_bytes + b.sent_bytes,
          .received_packets = a.received_packets + b.received_packets,
          .received_bytes = a.received_bytes + b.received_bytes};
}

TEST_F(FastPathTest, ClusterTrafficPassesByAndIsCounted) {
  FastCounts expected;
  for (const auto& [mine, far] : {std::pair{kFirstV4, kFabricV4}, std::pair{kFirstV6, kFabricV6}}) {
    SCOPED_TRACE(far.ToString());
    UdpSocket client(one_->netns.netns(), mine);
    UdpSocket server(node_->fabric(), far);
    const uint64_t before = Forwarded();
    EXPECT_TRUE(CanTalk(client, server, far, kPayload));
    EXPECT_EQ(Forwarded(), before);
    expected = Sum(expected, OnePacketEachWay(mine));
    EXPECT_EQ(CountsOf(one_->id), expected);
  }
  EXPECT_EQ(CountsOf(two_->id), FastCounts());
}

TEST_F(FastPathTest, PodsOfOneNodeReachEachOther) {
  FastCounts expected;
  for (const auto& [mine, far] : {std::pair{kFirstV4, kSecondV4}, std::pair{kFirstV6, kSecondV6}}) {
    SCOPED_TRACE(far.ToString());
    UdpSocket client(one_->netns.netns(), mine);
    UdpSocket server(two_->netns.netns(), far);
    const uint64_t before = Forwarded();
    EXPECT_TRUE(CanTalk(client, server, far, kPayload));
    EXPECT_EQ(Forwarded(), before);
    expected = Sum(expected, OnePacketEachWay(mine));
    EXPECT_EQ(CountsOf(one_->id), expected);
    EXPECT_EQ(CountsOf(two_->id), expected);
  }
}

TEST_F(FastPathTest, TheNodeItselfAndWhatIsInNoHopGoTheOrdinaryWay) {
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket server(node_->node(), kNodeV4);
  EXPECT_TRUE(CanTalk(client, server, kNodeV4, kPayload));
  ASSERT_TRUE(fast_->Configure({.uplink = kNodeDevice, .hops = {}}).ok());
  UdpSocket far(node_->fabric(), kFabricV4);
  const uint64_t before = Forwarded();
  EXPECT_TRUE(CanTalk(client, far, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before + 2);
  EXPECT_EQ(CountsOf(one_->id), FastCounts());
}

TEST_F(FastPathTest, ThePacketsOfAHopWithAGatewayGoThere) {
  const absl::Status configured = fast_->Configure(
      {.uplink = kNodeDevice,
       .hops = {{ip::Address::V4(0x0A000000), ip::Address::V4(0x0AFFFFFF), kFabricV4}}});
  ASSERT_TRUE(configured.ok()) << configured;
  const absl::Status added = node_->fabric().Run([] {
    EXPECT_EQ(std::system("ip address add 10.77.0.9/32 dev fabric"), 0);  // NOLINT(cert-env33-c)
    return absl::OkStatus();
  });
  ASSERT_TRUE(added.ok()) << added;
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket far(node_->fabric(), ip::Address::V4(0x0A4D0009));
  const uint64_t before = Forwarded();
  EXPECT_TRUE(CanTalk(client, far, ip::Address::V4(0x0A4D0009), kPayload));
  EXPECT_EQ(Forwarded(), before);
}

TEST_F(FastPathTest, AnotherSourceThanThePodsIsNotTaken) {
  one_->netns.netns()
      .Run([] {
        EXPECT_EQ(std::system("ip address add 10.0.1.77/32 dev eth0"), 0);
        return absl::OkStatus();
      })
      .IgnoreError();
  UdpSocket liar(one_->netns.netns(), ip::Address::V4(0x0A00014D));
  liar.Connect(kSecondV4, 9);
  liar.Send("x");
  EXPECT_EQ(CountsOf(one_->id), FastCounts());
  EXPECT_EQ(CountsOf(two_->id), FastCounts());
}

TEST_F(FastPathTest, APacketWithoutHopsLeftGetsItsAnswerFromTheNode) {
  UdpSocket client(one_->netns.netns(), kFirstV4);
  client.Connect(kFabricV4, 9);
  const int ttl = 1;
  ASSERT_EQ(::setsockopt(client.fd(), IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)), 0);
  client.Send("x");
  EXPECT_EQ(client.Receive(), "");
  EXPECT_EQ(errno, EHOSTUNREACH);
  EXPECT_EQ(CountsOf(one_->id), FastCounts());
}

TEST_F(FastPathTest, OfTwoHopsOneIsLeft) {
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket server(node_->fabric(), kFabricV4);
  client.Connect(kFabricV4, server.port());
  const int ttl = 2;
  const int on = 1;
  ASSERT_EQ(::setsockopt(client.fd(), IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)), 0);
  ASSERT_EQ(::setsockopt(server.fd(), IPPROTO_IP, IP_RECVTTL, &on, sizeof(on)), 0);
  client.Send("x");
  char data[8];
  char control[64];
  iovec part{data, sizeof(data)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  // The checksum is right as well, or nothing would arrive.
  ASSERT_EQ(::recvmsg(server.fd(), &message, 0), 1);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  ASSERT_NE(header, nullptr);
  EXPECT_EQ(*reinterpret_cast<const int*>(CMSG_DATA(header)), 1);
  EXPECT_EQ(CountsOf(one_->id).sent_packets, 1U);
}

// This is as kube-proxy does it: a Service's address becomes an endpoint's, and whatever belongs to
// no connection is dropped.
TEST_F(FastPathTest, ConnectionsThatAreTranslatedWorkAndSoDoOthersOfTheSamePair) {
  UdpSocket server(two_->netns.netns(), kSecondV4);
  Nft(fmt::format(R"(
table ip services {{
  chain prerouting {{ type nat hook prerouting priority dstnat;
    ip daddr 10.99.0.1 udp dport 53 dnat to {}:{}
  }}
  chain forward {{ type filter hook forward priority filter;
    ct status dnat meta mark set meta mark or {:#x}
    ct state invalid drop
  }}
}})",
                  kSecondV4.ToString(), server.port(), claims::kTranslatedMark));
  const ip::Address service = ip::Address::V4(0x0A630001);
  UdpSocket client(one_->netns.netns(), kFirstV4);
  client.Connect(service, 53);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(client.Send("question"), 0);
    server.EchoOnce();
    EXPECT_EQ(client.Receive(), "question");
  }
  // Directly, between the same two, packets go the ordinary way, both ways.
  UdpSocket direct(one_->netns.netns(), kFirstV4);
  EXPECT_TRUE(CanTalk(direct, server, kSecondV4, kPayload));
  EXPECT_EQ(CountsOf(one_->id), FastCounts());
  EXPECT_EQ(CountsOf(two_->id), FastCounts());
  // Other connections of theirs go fast as before.
  UdpSocket far(node_->fabric(), kFabricV4);
  EXPECT_TRUE(CanTalk(direct, far, kFabricV4, kPayload));
  EXPECT_EQ(CountsOf(one_->id), OnePacketEachWay(kFirstV4));
  EXPECT_TRUE(fast_->SweepTranslated().ok());
}

// What the first pod's address sends to 10.1.0.0/16 counts as translated, as the rules of the node
// mark the first direction of such a connection. No host has these addresses: that packets leave is
// enough.
class TranslatedPairsTest : public FastPathTest {
 protected:
  void SetUp() override {
    FastPathTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(fast_->Configure({.uplink = kNodeDevice, .hops = {}}).ok());
    Nft(fmt::format(R"(
table ip marks {{
  chain forward {{ type filter hook forward priority filter;
    ip saddr {} ip daddr 10.1.0.0/16 meta mark set meta mark or {:#x}
  }}
}})",
                    kFirstV4.ToString(), claims::kTranslatedMark));
    const auto in = [](const netns::Netns& netns, const char* command) {
      const absl::Status status = netns.Run([&] {
        EXPECT_EQ(std::system(command), 0) << command;  // NOLINT(cert-env33-c): fixed commands.
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
    };
    in(node_->node(), "ip route add 10.1.0.0/16 via 10.0.1.1 dev nic0");
    in(node_->fabric(), "ip route add blackhole 10.1.0.0/16");
    in(node_->fabric(), "ip route add 10.0.1.8 via 10.0.1.4");
  }

  // Makes the pairs of the pod that has the first address now with these of 10.1.0.0/16.
  void Reach(uint32_t from, uint32_t to) {
    UdpSocket client(one_->netns.netns(), kFirstV4);
    for (uint32_t i = from; i < to; ++i) {
      client.Connect(ip::Address::V4(0x0A010000 + i), 9);
      ASSERT_EQ(client.Send("x"), 0);
    }
  }
};

TEST_F(TranslatedPairsTest, APodIsNotChargedForThePairsOfThePodBeforeItOnItsAddress) {
  Reach(0, SPOKE_MAX_PAIRS_OF_POD);
  EXPECT_THAT(OverShare(), ::testing::IsEmpty());
  ASSERT_TRUE(fast_->EndPod(one_->id).ok());
  one_ = Attach("next", {kFirstV4, kFirstV6});
  ASSERT_TRUE(fast_->SweepTranslated().ok());
  Reach(SPOKE_MAX_PAIRS_OF_POD, SPOKE_MAX_PAIRS_OF_POD + 1);
  EXPECT_THAT(OverShare(), ::testing::IsEmpty());
  ASSERT_TRUE(fast_->SweepTranslated().ok());
  Reach(SPOKE_MAX_PAIRS_OF_POD + 1, SPOKE_MAX_PAIRS_OF_POD * 3 / 2);
  EXPECT_THAT(OverShare(), ::testing::IsEmpty());
}

TEST_F(TranslatedPairsTest, APodWithTooManyTranslatedPairsLeavesTheFastPathAlone) {
  Reach(0, SPOKE_MAX_PAIRS_OF_POD);
  Reach(0, SPOKE_MAX_PAIRS_OF_POD);  // There are no more of them than there can be.
  EXPECT_THAT(OverShare(), ::testing::IsEmpty());
  Reach(SPOKE_MAX_PAIRS_OF_POD, SPOKE_MAX_PAIRS_OF_POD + 1);
  EXPECT_THAT(OverShare(), ::testing::ElementsAre(one_->id));

  // Both directions of both families go the ordinary way, under the next agent as well.
  for (const bool anew : {false, true}) {
    if (anew) Begin();
    ASSERT_TRUE(fast_->Configure({.uplink = kNodeDevice, .hops = Hops()}).ok());
    ASSERT_TRUE(fast_->SweepTranslated().ok());
    ASSERT_TRUE(fast_->Change(one_->id, PodWay::kFast, one_->pod.pod_mac).ok());
    EXPECT_THAT(OverShare(), ::testing::ElementsAre(one_->id));
    for (const auto& [mine, far] :
         {std::pair{kFirstV4, kFabricV4}, std::pair{kFirstV6, kFabricV6}}) {
      SCOPED_TRACE(far.ToString());
      UdpSocket pod(one_->netns.netns(), mine);
      UdpSocket server(node_->fabric(), far);
      const uint64_t before = Forwarded();
      EXPECT_TRUE(CanTalk(pod, server, far, kPayload));
      EXPECT_EQ(Forwarded(), before + 2);
    }
  }
  UdpSocket other(two_->netns.netns(), kSecondV4);
  UdpSocket server(node_->fabric(), kFabricV4);
  const uint64_t before = Forwarded();
  EXPECT_TRUE(CanTalk(other, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before);

  // The pod that has its slot next begins anew.
  ASSERT_TRUE(fast_->ForgetPod(one_->id).ok());
  one_ = Attach("next", {kFirstV4, kFirstV6});
  EXPECT_THAT(OverShare(), ::testing::IsEmpty());
}

TEST_F(FastPathTest, WhoIsNoLongerFastGoesOnTheOrdinaryWay) {
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket server(node_->fabric(), kFabricV4);
  ASSERT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  ASSERT_TRUE(fast_->Change(one_->id, PodWay::kOrdinary, one_->pod.pod_mac).ok());
  const uint64_t before = Forwarded();
  EXPECT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before + 2);
  EXPECT_EQ(CountsOf(one_->id), OnePacketEachWay(kFirstV4));
}

// The causes are a limit, an MTU of its own, an egress policy, or rules of others that were there
// for a while.
TEST_F(FastPathTest, AFastPodReachesPodsHereThatAreNot) {
  ASSERT_TRUE(fast_->Change(two_->id, PodWay::kOrdinary, two_->pod.pod_mac).ok());
  for (const bool anew : {false, true}) {
    if (anew) {
      // The next agent is told so.
      Begin();
      ASSERT_TRUE(fast_->SetLocal({kNodeV4}).ok());
    }
    for (const auto& [mine, near] :
         {std::pair{kFirstV4, kSecondV4}, std::pair{kFirstV6, kSecondV6}}) {
      SCOPED_TRACE(near.ToString());
      UdpSocket client(one_->netns.netns(), mine);
      UdpSocket server(two_->netns.netns(), near);
      const uint64_t before = Forwarded();
      EXPECT_TRUE(CanTalk(client, server, near, kPayload));
      EXPECT_EQ(Forwarded(), before + 2);
    }
  }
  EXPECT_EQ(CountsOf(one_->id), FastCounts());
}

TEST_F(FastPathTest, AnAddressThatIsNoLongerThisNodesIsReachedByTheHop) {
  // It is not local in truth, so that the answer comes from the wire, and fast.
  ASSERT_TRUE(fast_->SetLocal({kFabricV4}).ok());
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket server(node_->fabric(), kFabricV4);
  const uint64_t before = Forwarded();
  ASSERT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before + 1);
  EXPECT_EQ(CountsOf(one_->id).sent_packets, 0U);
  ASSERT_TRUE(fast_->SetLocal({}).ok());
  ASSERT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before + 1);
  EXPECT_EQ(CountsOf(one_->id).sent_packets, 1U);
}

TEST_F(FastPathTest, ItGoesOnWithoutAnAgentAndWithTheNext) {
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket server(node_->fabric(), kFabricV4);
  ASSERT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  fast_.reset();
  const uint64_t before = Forwarded();
  EXPECT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before);
  Begin();
  EXPECT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before);
  const FastCounts once = OnePacketEachWay(kFirstV4);
  EXPECT_EQ(CountsOf(one_->id), Sum(once, Sum(once, once)));
}

TEST_F(FastPathTest, TakenOffItLeavesTheOrdinaryWay) {
  ASSERT_TRUE(fast_->Remove().ok());
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket server(node_->fabric(), kFabricV4);
  const uint64_t before = Forwarded();
  EXPECT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before + 2);
}

TEST_F(FastPathTest, WhatSomebodyTakesOffComesBack) {
  EXPECT_EQ(fast_->Repair().value(), 0U);
  // NOLINTNEXTLINE(cert-env33-c): fixed commands.
  ASSERT_EQ(std::system("tc qdisc del dev nic0 clsact"), 0);
  const std::string pod = "tc filter del dev " + one_->pod.host_link + " egress";
  ASSERT_EQ(std::system(pod.c_str()), 0);  // NOLINT(cert-env33-c)
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket server(node_->fabric(), kFabricV4);
  const uint64_t before = Forwarded();
  EXPECT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before + 1);
  EXPECT_EQ(fast_->Repair().value(), 2U);
  EXPECT_TRUE(CanTalk(client, server, kFabricV4, kPayload));
  EXPECT_EQ(Forwarded(), before + 1);
  EXPECT_EQ(fast_->Repair().value(), 0U);
}

// Without an uplink no pod can become fast, and nobody has to know whose connections are
// translated.
TEST_F(FastPathTest, ProgramsLearnWhereThereIsAnUplinkAndGuardEverywhere) {
  const auto programs = [&](netlink::Direction direction) {
    const auto link = static_cast<int32_t>(one_->pod.host_index);
    return netlink::DumpFilters(node_->socket(), link, netlink::HookOf(direction)).value().size();
  };
  for (const bool has_uplink : {true, false, true}) {
    SCOPED_TRACE(has_uplink);
    const std::string uplink = has_uplink ? kNodeDevice : "";
    ASSERT_TRUE(fast_->Configure({.uplink = uplink, .hops = {}}).ok());
    EXPECT_EQ(programs(netlink::Direction::kIngress), 1U);
    EXPECT_EQ(programs(netlink::Direction::kEgress), has_uplink ? 1U : 0U);
    EXPECT_EQ(fast_->Repair().value(), 0U);
  }
}

class KernelWorld final : public FastPathWorld {
 public:
  static std::unique_ptr<FastPathWorld> Make() {
    auto world = std::make_unique<KernelWorld>();
    world->node_ = NodeWorld::Make();
    if (world->node_ == nullptr) return nullptr;
    return world;
  }
  FastPath& Begin() override {
    fast_.reset();
    fast_ = BpfFastPath::Create().value();
    return *fast_;
  }
  std::string uplink() const override { return kNodeDevice; }
  TrafficPod Pod(std::vector<ip::Address> addresses) override {
    const std::string name = fmt::format("spk{:012x}", ++links_);
    const auto last = static_cast<uint8_t>(links_);
    const int32_t index = 1000 + static_cast<int32_t>(links_);
    MustSend(
        node_->socket(),
        {netlink::CreateVeth({fmt::format("peer{}", links_), index + 1000, {{2, 0, 0, 0, 1, last}}},
                             {name, index, {{2, 0, 0, 0, 2, last}}}, node_->node().fd(), 1500)});
    return {.host_link = name,
            .host_index = static_cast<uint32_t>(index),
            .addresses = std::move(addresses)};
  }

 private:
  std::unique_ptr<NodeWorld> node_;
  std::unique_ptr<BpfFastPath> fast_;
  uint32_t links_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kernel, FastPathContract, ::testing::Values(&KernelWorld::Make));

}  // namespace
}  // namespace spoke::netagent
