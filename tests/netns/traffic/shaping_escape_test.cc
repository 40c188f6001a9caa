// Limits that a pod would like to get rid of, in a real kernel: with the rights to change its own
// namespace, and by way of a Service whose endpoint is outside.
#include <cstdio>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "netagent/claims.h"
#include "tests/netns/traffic/shaping_world.h"

namespace spoke::netagent {
namespace {

constexpr auto kIn = TrafficDirection::kIngress;
constexpr auto kOut = TrafficDirection::kEgress;
constexpr ip::Address kServiceV4 = ip::Address::V4(0x0A60000A);  // 10.96.0.10
constexpr ip::Address kServiceV6 = ip::Address::V6(0xFD00'0000'0000'0096, 10);
constexpr absl::Duration kWindow = absl::Milliseconds(500);
// The factor of what a window has beside its rate: a burst, a queue that was empty, and the
// machine's own time.
constexpr double kNoMoreThan = 1.8;
// The rate above which a limit of 20 Mbit/s shows that it does not hold.
constexpr double kUnlimited = 400;

class ShapingEscapeTest : public ShapingWorldTest {
 protected:
  void SetUp() override {
    ShapingWorldTest::SetUp();
    if (node_ == nullptr || HasFatalFailure()) return;
    pod_ = Attach(7);
  }
  int Run(const std::string& command) { return ShellStatus(node_->node(), command); }
  int RunInPod(const std::string& command) { return ShellStatus(pod_->netns.netns(), command); }

  // Adds a Service as kube-proxy does, with an endpoint outside of the cluster.
  void AddService(bool masquerade) {
    const std::string rules = fmt::format(
        "table inet services {{\n"
        "  chain before {{ type nat hook prerouting priority -100\n"
        "    ip daddr {0} dnat ip to {1}\n ip6 daddr {2} dnat ip6 to {3}\n  }}\n"
        "  chain after {{ type nat hook postrouting priority 100\n    {4}\n  }}\n}}\n",
        kServiceV4.ToString(), kInternetV4.ToString(), kServiceV6.ToString(),
        kInternetV6.ToString(), masquerade ? "oifname nic0 masquerade" : "");
    ASSERT_EQ(Run(fmt::format("nft -f - <<'EOF'\n{}EOF", rules)), 0);
  }

  double To(const ip::Address& target, Way way) {
    const ip::Address listen = target == kServiceV4   ? kInternetV4
                               : target == kServiceV6 ? kInternetV6
                                                      : target;
    return BulkMbit({.fabric = node_->fabric(),
                     .pod = pod_->netns.netns(),
                     .listen = listen,
                     .target = target,
                     .way = way,
                     .window = kWindow});
  }
  void ExpectHeld(const ip::Address& target, double mbit) {
    for (const Way way : {Way::kUpload, Way::kDownload}) {
      const double got = To(target, way);
      std::printf("%s %s: %.1f Mbit/s of %.0f\n", target.ToString().c_str(),
                  way == Way::kUpload ? "up" : "down", got, mbit);
      EXPECT_LT(got, mbit * kNoMoreThan) << target.ToString();
      EXPECT_GT(got, mbit * 0.3) << target.ToString();
    }
  }
  void ExpectFree(const ip::Address& target) {
    for (const Way way : {Way::kUpload, Way::kDownload}) {
      EXPECT_GT(To(target, way), kUnlimited) << target.ToString();
    }
  }

  // Limits all that the pod sends to `mbit`, beside what `tables` say.
  ShapingTables WholeLink(uint64_t mbit, ShapingTables tables = {}) {
    tables.trees[1].push_back(Leaf(0x20, 0, mbit));
    tables.flows.push_back(
        {.host_index = pod_->host_index, .scope = kWholeLink, .direction = kOut, .class_id = 0x20});
    return tables;
  }
  // Everything that a pod can do to the queues of its own namespace.
  void TamperInPod() {
    ASSERT_EQ(RunInPod("tc qdisc del dev eth0 root 2>/dev/null; tc qdisc del dev eth0 clsact "
                       "2>/dev/null; tc qdisc del dev lo root 2>/dev/null; "
                       "tc qdisc replace dev eth0 root pfifo limit 10000 && "
                       "tc qdisc add dev eth0 clsact && ip link set dev eth0 txqueuelen 10000"),
              0);
  }

  std::unique_ptr<ShapedPod> pod_;
};

TEST_F(ShapingEscapeTest, APodThatOwnsItsNetworkKeepsToTheRateOfItsLink) {
  ExpectFree(kClusterV4);
  MustApply(WholeLink(20));
  TamperInPod();
  for (const ip::Address& target : {kClusterV4, kClusterV6, kInternetV4}) {
    const double got = To(target, Way::kUpload);
    std::printf("%s up: %.1f Mbit/s of 20\n", target.ToString().c_str(), got);
    EXPECT_LT(got, 20 * kNoMoreThan);
    EXPECT_GT(got, 20 * 0.3);
  }
  EXPECT_GT(To(kClusterV4, Way::kDownload), 50) << "only what the pod sends is limited";
  const uint64_t before = ClassRead(kOut, 0x20).sent.count();
  // The causes are another rate, a repair, the next agent, and no limit any more.
  ASSERT_EQ(Run("tc class del dev spoke-out classid 5b0:20"), 0);
  EXPECT_GT(shaper_->Repair().value(), 0U);
  MustApply(WholeLink(60));
  EXPECT_LT(To(kClusterV4, Way::kUpload), 60 * kNoMoreThan);
  Begin();
  MustApply(WholeLink(60));
  EXPECT_EQ(shaper_->Repair().value(), 0U);
  EXPECT_LT(To(kClusterV4, Way::kUpload), 60 * kNoMoreThan);
  EXPECT_GT(before, 0U);
  ASSERT_TRUE(shaper_->Remove().ok());
  ExpectFree(kClusterV4);
}

TEST_F(ShapingEscapeTest, WhatAPodGetsIsLimitedAtTheNodesEnd) {
  AttachOptions options;
  options.bandwidth = {.ingress_rate = units::BitRate(20'000'000)};
  pod_ = Attach(8, options);
  TamperInPod();
  const double got = To(kClusterV4, Way::kDownload);
  EXPECT_LT(got, 20 * kNoMoreThan);
  EXPECT_GT(got, 20 * 0.3);
  EXPECT_GT(To(kClusterV4, Way::kUpload), 50);
}

TEST_F(ShapingEscapeTest, BothLimitsHoldAtOnce) {
  AddService(/*masquerade=*/true);
  MustApply(WholeLink(60, Limit(*pod_, 20)));
  for (const ip::Address& target : {kInternetV4, kServiceV4}) ExpectHeld(target, 20);
  const double cluster = To(kClusterV4, Way::kUpload);
  EXPECT_LT(cluster, 60 * kNoMoreThan);
  EXPECT_GT(cluster, 20 * kNoMoreThan);
  MustApply(WholeLink(20, Limit(*pod_, 60)));
  for (const ip::Address& target : {kInternetV4, kServiceV4, kClusterV4}) {
    EXPECT_LT(To(target, Way::kUpload), 20 * kNoMoreThan);
  }
}

TEST_F(ShapingEscapeTest, PodsWithoutALimitAreNotTouched) {
  const auto limited = Attach(8);
  AddService(/*masquerade=*/true);
  ShapingTables tables = Limit(*limited, 20);
  MustApply(tables);
  for (const ip::Address& target : {kInternetV4, kServiceV4, kClusterV4}) ExpectFree(target);
  EXPECT_NE(Run(fmt::format("tc filter show dev {} ingress | grep -q spoke_", pod_->host_link)), 0);
}

// One pod's packet to itself by way of a Service has the same link on both sides.
TEST_F(ShapingEscapeTest, APodThatTalksToItselfIsOfNoOtherClass) {
  const std::string rules = fmt::format(
      "table inet services {{\n"
      "  chain before {{ type nat hook prerouting priority -100\n ip daddr {0} dnat ip to {1}\n "
      "}}\n"
      "  chain after {{ type nat hook postrouting priority 100\n"
      "    ip saddr {1} ip daddr {1} masquerade\n }}\n}}\n",
      kServiceV4.ToString(), pod_->v4.ToString());
  ASSERT_EQ(Run(fmt::format("nft -f - <<'EOF'\n{}EOF", rules)), 0);
  ShapingTables tables = WholeLink(20, Limit(*pod_, 20));
  MustApply(tables);
  UdpSocket server(pod_->netns.netns(), pod_->v4);
  UdpSocket client(pod_->netns.netns(), pod_->v4);
  client.Connect(kServiceV4, server.port());
  ASSERT_EQ(client.Send("to myself"), 0);
  server.EchoOnce();
  EXPECT_EQ(client.Receive(), "to myself");
  EXPECT_EQ(ClassRead(kIn, 0x10).sent.count(), 0U);
  EXPECT_GT(ClassRead(kOut, 0x20).sent.count(), 0U);
}

TEST_F(ShapingEscapeTest, AServiceWithAnOutsideEndpointIsOfTheInternet) {
  for (const bool masquerade : {false, true}) {
    SCOPED_TRACE(masquerade);
    AddService(masquerade);
    ExpectFree(kServiceV4);
    MustApply(Limit(*pod_, 20));
    for (const ip::Address& target : {kServiceV4, kServiceV6, kInternetV4}) {
      ExpectHeld(target, 20);
    }
    ExpectFree(kClusterV4);
    MustApply(Limit(*pod_, 60));
    ExpectHeld(kServiceV4, 60);
    ASSERT_TRUE(shaper_->Remove().ok());
    ExpectFree(kServiceV4);
    ASSERT_EQ(Run("nft delete table inet services"), 0);
  }
}

// A filter of tc sets the field by which packets name their class here, and it crosses the link.
TEST_F(ShapingEscapeTest, AClassThatThePodHasChosenIsForgotten) {
  AddService(/*masquerade=*/true);
  MustApply(Limit(*pod_, 20));
  ASSERT_EQ(RunInPod("tc qdisc add dev eth0 clsact && "
                     "tc filter add dev eth0 egress protocol all u32 match u32 0 0 classid 5b0:10"),
            0);
  // One pod's choice is not charged to another, or taken for a note of what came from outside. This
  // comes first, while no transfer has left packets in the queues.
  const auto other = Attach(8);
  ASSERT_EQ(ShellStatus(other->netns.netns(),
                        "tc qdisc add dev eth0 clsact && "
                        "tc filter add dev eth0 egress protocol all u32 match u32 0 0 classid 1:7"),
            0);
  const uint64_t before = ClassRead(kIn, 0x10).sent.count();
  UdpSocket server(pod_->netns.netns(), pod_->v4);
  UdpSocket client(other->netns.netns(), other->v4);
  client.Connect(pod_->v4, server.port());
  ASSERT_EQ(client.Send("from a neighbour"), 0);
  EXPECT_EQ(server.Receive(), "from a neighbour");
  EXPECT_EQ(ClassRead(kIn, 0x10).sent.count(), before);
  for (const ip::Address& target : {kServiceV4, kInternetV4}) ExpectHeld(target, 20);
}

TEST_F(ShapingEscapeTest, WhatIsSentWithoutAnAnswerWaitsToo) {
  AddService(/*masquerade=*/true);
  MustApply(Limit(*pod_, 20));
  UdpSocket server(node_->fabric(), kInternetV4);
  UdpSocket client(pod_->netns.netns(), pod_->v4);
  client.Connect(kServiceV4, server.port());
  const std::string text(1400, 'x');
  const absl::Time end = absl::Now() + kWindow;
  while (absl::Now() < end) client.Send(text);
  const uint64_t sent = ClassRead(kOut, 0x10).sent.count();
  EXPECT_GT(sent, 400'000U);
  EXPECT_LT(sent, 2'500'000U);  // A rate of 20 Mbit/s would be 1.3 MB.
  EXPECT_GT(FlowRead(*pod_, kOut).offered.count(), 4 * sent);
}

TEST_F(ShapingEscapeTest, EachPacketIsCountedOnce) {
  AddService(/*masquerade=*/true);
  MustApply(Limit(*pod_, 50));
  constexpr uint64_t kPackets = 50;
  for (const ip::Address& target : {kServiceV4, kInternetV4}) {
    SCOPED_TRACE(target.ToString());
    const uint64_t out = FlowRead(*pod_, kOut).packets;
    const uint64_t in = FlowRead(*pod_, kIn).packets;
    UdpSocket server(node_->fabric(), kInternetV4);
    UdpSocket client(pod_->netns.netns(), pod_->v4);
    client.Connect(target, server.port());
    for (uint64_t i = 0; i < kPackets; ++i) {
      ASSERT_EQ(client.Send("there"), 0);
      server.EchoOnce();
      ASSERT_EQ(client.Receive(), "there");
    }
    EXPECT_EQ(FlowRead(*pod_, kOut).packets - out, kPackets);
    EXPECT_EQ(FlowRead(*pod_, kIn).packets - in, kPackets);
  }
}

TEST_F(ShapingEscapeTest, ConnectionsToAServiceAreOfTheBucket) {
  AddService(/*masquerade=*/false);
  ShapingTables tables = Limit(*pod_, 50);
  tables.buckets = {{.id = 3, .per_second = 0}};
  tables.flows[1].bucket = 3;
  MustApply(tables);
  EXPECT_NE(RunInPod("timeout 0.3 bash -c ': </dev/tcp/10.96.0.10/9' 2>/dev/null"), 0);
  EXPECT_EQ(FlowRead(*pod_, kOut).connections, 0U);
  EXPECT_GT(FlowRead(*pod_, kOut).refused_connections, 0U);
}

TEST_F(ShapingEscapeTest, TheWayOutOfTheNodeIsRepairedAndTakenOver) {
  AddService(/*masquerade=*/true);
  MustApply(Limit(*pod_, 20));
  ASSERT_EQ(Run("tc filter del dev nic0 egress prio 8330"), 0);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  ASSERT_EQ(Run("tc qdisc del dev nic0 clsact"), 0);
  ExpectFree(kServiceV4);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  EXPECT_EQ(shaper_->Repair().value(), 0U);
  const uint64_t before = ClassRead(kOut, 0x10).sent.count();
  Begin();
  MustApply(Limit(*pod_, 20));
  EXPECT_EQ(shaper_->Repair().value(), 0U);
  EXPECT_GE(ClassRead(kOut, 0x10).sent.count(), before);
  ExpectHeld(kServiceV4, 20);
  // This is a default route that leads elsewhere, and back.
  ASSERT_EQ(Run("ip link add other type veth peer name far && ip link set other up && ip link set "
                "far up && "
                "ip route add 0.0.0.0/1 dev other"),
            0);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  EXPECT_EQ(Run("tc filter show dev other egress | grep -q spoke_leaves_node"), 0);
  ASSERT_EQ(Run("ip route del 0.0.0.0/1 dev other"), 0);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  ASSERT_TRUE(shaper_->Remove().ok());
  EXPECT_NE(Run("tc filter show dev nic0 egress | grep -q spoke_"), 0);
}

}  // namespace
}  // namespace spoke::netagent
