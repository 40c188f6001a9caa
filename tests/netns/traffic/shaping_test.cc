// Tests of shaping in a real kernel: what passes, how fast, and what cannot be got round.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/core.h"
#include "lib/netlink/link.h"
#include "netagent/claims.h"
#include "netagent/shaping/shape_tree.h"
#include "netagent/shaping/shaping_plan.h"
#include "netagent/shaping/testing/shaper_contract.h"
#include "tests/netns/traffic/shaping_world.h"

namespace spoke::netagent {
namespace {

constexpr auto kIn = TrafficDirection::kIngress;
constexpr auto kOut = TrafficDirection::kEgress;

// Expects never more than the limit; much less only where the machine is busy with something else.
// scripts/bench.sh shaping measures how exact it is.
void ExpectAbout(double mbit, double wanted) {
  EXPECT_GT(mbit, wanted * 0.5);
  EXPECT_LT(mbit, wanted * 1.05);
}

class ShapingTest : public ShapingWorldTest {
 protected:
  void SetUp() override {
    ShapingWorldTest::SetUp();
    if (node_ == nullptr || HasFatalFailure()) return;
    pod_ = Attach(7);
  }
  // Runs a command in the node's namespace.
  int Run(const std::string& command) { return ShellStatus(node_->node(), command); }

  std::unique_ptr<ShapedPod> pod_;
};

TEST_F(ShapingTest, BothWaysAndFamiliesKeepToTheLimit) {
  MustApply(Limit(*pod_, 100));
  for (const ip::Address& far : {kInternetV4, kInternetV6}) {
    SCOPED_TRACE(far.ToString());
    ExpectAbout(Mbit(*pod_, far, Way::kDownload), 100);
    ExpectAbout(Mbit(*pod_, far, Way::kUpload), 100);
  }
}

TEST_F(ShapingTest, WhatIsOfferedIsCountedAsItIsOnTheWire) {
  MustApply(Limit(*pod_, 50));
  Mbit(*pod_, kInternetV4, Way::kUpload);
  const ShapedFlowReading flow = FlowRead(*pod_, kOut);
  const ShapeClassReading queue = ClassRead(kOut, 0x10);
  const uint64_t sent = queue.sent.count();
  ASSERT_GT(sent, 10'000'000U);
  // All that was sent was offered; what was not was dropped, or waits.
  EXPECT_GE(flow.offered.count(), sent);
  EXPECT_LE(flow.offered.count(), sent + sent / 5);
  EXPECT_GT(flow.packets, sent / 1514);
  // iperf3's connection for control, and the one for data; maybe one asked twice.
  EXPECT_GE(flow.connections, 2U);
  EXPECT_LE(flow.connections, 4U);
  EXPECT_EQ(flow.refused_connections, 0U);
  EXPECT_GT(queue.overlimits, 0U);
  EXPECT_EQ(FlowRead(*pod_, kIn).connections, 0U);
}

TEST_F(ShapingTest, ClusterTrafficSeesNothingOfIt) {
  MustApply(Limit(*pod_, 10));
  for (const ip::Address& far : {kClusterV4, kClusterV6}) {
    SCOPED_TRACE(far.ToString());
    EXPECT_GT(Mbit(*pod_, far, Way::kDownload), 100);
    EXPECT_GT(Mbit(*pod_, far, Way::kUpload), 100);
  }
  for (const TrafficDirection direction : kBothDirections) {
    EXPECT_EQ(ClassRead(direction, kTop), (ShapeClassReading{.direction = direction, .id = kTop}));
    EXPECT_EQ(FlowRead(*pod_, direction).packets, 0U);
  }
  for (const auto name : {claims::kIngressQueues, claims::kEgressQueues}) {
    EXPECT_EQ(Run(fmt::format("ip -s -j link show {} | grep -q '\"tx\":{{\"bytes\":0,'", name)), 0);
  }
}

TEST_F(ShapingTest, ANewRateIsInForceAtOnce) {
  MustApply(Limit(*pod_, 50));
  ExpectAbout(Mbit(*pod_, kInternetV4, Way::kDownload), 50);
  const uint64_t before = ClassRead(kIn, 0x10).sent.count();
  MustApply(Limit(*pod_, 20));
  EXPECT_GE(ClassRead(kIn, 0x10).sent.count(), before) << "the class is the same one";
  ExpectAbout(Mbit(*pod_, kInternetV4, Way::kDownload), 20);
}

TEST_F(ShapingTest, WhatSomebodyTakesOffComesBack) {
  MustApply(Limit(*pod_, 20));
  EXPECT_EQ(shaper_->Repair().value(), 0U);
  ASSERT_EQ(Run("tc class del dev spoke-in classid 5b0:10"), 0);
  EXPECT_EQ(shaper_->Repair().value(), 2U);  // The second one is its queue.
  ASSERT_EQ(Run("tc class change dev spoke-in parent 5b0:1 classid 5b0:10 htb rate 1gbit"), 0);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  ASSERT_EQ(Run("tc class add dev spoke-out parent 5b0:10 classid 5b0:99 htb rate 1gbit"), 0);
  EXPECT_GT(shaper_->Repair().value(), 0U);
  ASSERT_EQ(Run(fmt::format("tc filter del dev {} ingress prio 8331", pod_->host_link)), 0);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  ASSERT_EQ(Run(fmt::format("tc qdisc del dev {} clsact", pod_->host_link)), 0);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  ASSERT_EQ(Run("tc filter del dev spoke-in parent 5b0: prio 8330"), 0);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  ASSERT_EQ(Run("tc qdisc replace dev spoke-out root pfifo"), 0);
  EXPECT_GT(shaper_->Repair().value(), 3U);
  ASSERT_EQ(Run("ip link set spoke-out down"), 0);
  EXPECT_EQ(shaper_->Repair().value(), 1U);
  ASSERT_EQ(Run("ip link del spoke-in && ip link add spoke-in type veth peer name other"), 0);
  EXPECT_GT(shaper_->Repair().value(), 3U);
  EXPECT_EQ(shaper_->Repair().value(), 0U);
  ExpectAbout(Mbit(*pod_, kInternetV4, Way::kDownload), 20);
  ExpectAbout(Mbit(*pod_, kInternetV6, Way::kUpload), 20);
}

TEST_F(ShapingTest, ADeviceThatOnlyAnswersToTheNameOfTheQueuesIsLeftAlone) {
  MustApply(Limit(*pod_, 20));
  ASSERT_EQ(Run(fmt::format("ip link del spoke-in && ip link property add dev {} altname spoke-in",
                            pod_->host_link)),
            0);
  const auto refused = shaper_->Repair();
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("spoke-in is another name of device " + pod_->host_link));
  ASSERT_EQ(Run(fmt::format("ip link property del dev {} altname spoke-in", pod_->host_link)), 0)
      << "the device is there";
  EXPECT_GT(shaper_->Repair().value(), 3U);
  ExpectAbout(Mbit(*pod_, kInternetV4, Way::kDownload), 20);
}

TEST_F(ShapingTest, QueuesThatAreReadyWaitForTheFirstFlow) {
  MustApply({.ready = true});
  EXPECT_EQ(Run("ip link show spoke-in up && ip link show spoke-out up"), 0);
  EXPECT_EQ(shaper_->Repair().value(), 0U);
  ASSERT_EQ(Run("ip link del spoke-in"), 0);
  EXPECT_GT(shaper_->Repair().value(), 0U);
  MustApply(Limit(*pod_, 20));
  ExpectAbout(Mbit(*pod_, kInternetV4, Way::kDownload), 20);
  MustApply({.ready = true});
  EXPECT_EQ(Run("ip link show spoke-in up"), 0);
  MustApply({});
  ASSERT_TRUE(shaper_->Remove().ok());
  EXPECT_NE(Run("ip link show spoke-in"), 0);
}

TEST_F(ShapingTest, APodThatOwnsItsNetworkLiftsNothing) {
  MustApply(Limit(*pod_, 20));
  const auto in_pod = [this](const std::string& command) {
    ASSERT_EQ(ShellStatus(pod_->netns.netns(), command), 0) << command;
  };
  in_pod("tc qdisc replace dev eth0 root pfifo limit 10000");
  in_pod("tc qdisc add dev eth0 clsact");
  in_pod("ip link add spoke-out type ifb && ip link set spoke-out up");
  in_pod("tc qdisc add dev spoke-out root handle 5b0: htb default 0");
  ExpectAbout(Mbit(*pod_, kInternetV4, Way::kUpload), 20);
  ExpectAbout(Mbit(*pod_, kInternetV4, Way::kDownload), 20);
}

// Sends a datagram from `pod` to the Internet in a frame with so many tags of VLAN 0.
std::vector<uint8_t> Tagged(const ShapedPod& pod, const ip::MacAddress& node, uint16_t port,
                            size_t tags, const std::string& text) {
  std::vector<uint8_t> frame(node.octets.begin(), node.octets.end());
  const auto put = [&frame](std::initializer_list<unsigned> words) {
    for (const unsigned word : words) {
      frame.push_back(static_cast<uint8_t>(word >> 8U));
      frame.push_back(static_cast<uint8_t>(word));
    }
  };
  const auto from = static_cast<uint32_t>(pod.v4.low());
  const auto to = static_cast<uint32_t>(kInternetV4.low());
  const auto bytes = static_cast<unsigned>(28 + text.size());
  const std::array<unsigned, 10> header = {
      0x4500, bytes, 0, 0, 0x4011, 0, from >> 16U, from & 0xFFFFU, to >> 16U, to & 0xFFFFU};
  unsigned sum = 0;
  for (const unsigned word : header) sum += word;
  sum = (sum & 0xFFFFU) + (sum >> 16U);
  sum = (sum & 0xFFFFU) + (sum >> 16U);
  put({0x0200, 0, 1});
  for (size_t i = 0; i < tags; ++i) put({0x8100, 0});
  put({0x0800});
  for (size_t i = 0; i < header.size(); ++i) put({i == 5 ? ~sum & 0xFFFFU : header.at(i)});
  put({4000, port, bytes - 20, 0});
  frame.insert(frame.end(), text.begin(), text.end());
  return frame;
}

TEST_F(ShapingTest, APodDoesNotPassInVlansThatAreNone) {
  UdpSocket server(node_->fabric(), kInternetV4);
  const auto link = netlink::GetLink(node_->socket(), pod_->host_link);
  ASSERT_TRUE(link.ok()) << link.status();
  const auto send = [&](size_t tags, const std::string& text) {
    const absl::Status status = pod_->netns.netns().Run([&] {
      const os::UniqueFd raw(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
      sockaddr_ll to{};
      to.sll_family = AF_PACKET;
      to.sll_ifindex = static_cast<int>(::if_nametoindex("eth0"));
      const auto frame = Tagged(*pod_, link->mac, server.port(), tags, text);
      EXPECT_EQ(::sendto(raw.get(), frame.data(), frame.size(), 0,
                         reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
                static_cast<ssize_t>(frame.size()));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  };
  // That is how the kernel is.
  send(2, "as ever");
  EXPECT_EQ(server.Receive(), "as ever");
  MustApply(Limit(*pod_, 20));
  send(2, "past the queues");
  send(1, "by way of them");
  EXPECT_EQ(server.Receive(), "by way of them");
  EXPECT_EQ(FlowRead(*pod_, kOut).packets, 1U);
}

TEST_F(ShapingTest, TheNextAgentTakesOverWithoutTouchingCounters) {
  MustApply(Limit(*pod_, 50));
  Stream stream(node_->fabric(), *pod_, kInternetV4, Way::kDownload);
  while (ClassRead(kIn, 0x10).sent.count() < 1'000'000) {
  }
  const ShapedFlowReading flow = FlowRead(*pod_, kIn);
  Begin();
  EXPECT_GE(ClassRead(kIn, 0x10).sent.count(), 1'000'000U);
  EXPECT_GE(FlowRead(*pod_, kIn).offered.count(), flow.offered.count());
  MustApply(Limit(*pod_, 50));
  EXPECT_GE(ClassRead(kIn, 0x10).sent.count(), 1'000'000U);
  EXPECT_GE(FlowRead(*pod_, kIn).offered.count(), flow.offered.count());
  ExpectAbout(stream.Mbit(), 50);
}

TEST_F(ShapingTest, NewConnectionsBeyondTheBucketAreRefused) {
  ShapingTables tables = Limit(*pod_, 50);
  tables.buckets = {{.id = 3, .per_second = 5}};
  tables.flows[1].bucket = 3;
  MustApply(tables);
  std::vector<os::UniqueFd> sockets;
  const absl::Status status = pod_->netns.netns().Run([&] {
    for (const bool is_v4 : {true, false}) {
      for (int i = 0; i < 20; ++i) {
        sockets.emplace_back(
            ::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(9);
        v4.sin_addr.s_addr = htonl(0x08080808);
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(9);
        ::inet_pton(AF_INET6, kInternetV6.ToString().c_str(), &v6.sin6_addr);
        static_cast<void>(is_v4 ? ::connect(sockets.back().get(),
                                            reinterpret_cast<const sockaddr*>(&v4), sizeof(v4))
                                : ::connect(sockets.back().get(),
                                            reinterpret_cast<const sockaddr*>(&v6), sizeof(v6)));
      }
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  const ShapedFlowReading flow = FlowRead(*pod_, kOut);
  EXPECT_GE(flow.connections, 5U);
  EXPECT_LE(flow.connections, 10U);
  EXPECT_GE(flow.connections + flow.refused_connections, 40U);
  // The limit is none at all.
  tables.buckets[0].per_second = 0;
  MustApply(tables);
  const uint64_t before = FlowRead(*pod_, kOut).connections;
  EXPECT_NE(ShellStatus(pod_->netns.netns(), "timeout 0.3 bash -c ': </dev/tcp/8.8.8.8/9' 2>&1"),
            0);
  EXPECT_EQ(FlowRead(*pod_, kOut).connections, before);
}

TEST_F(ShapingTest, TwoPodsShareATotalByWeight) {
  const auto other = Attach(8);
  ShapingTables tables = Scopes(40);
  for (auto& tree : tables.trees) {
    for (const auto& [id, mbit] : {std::pair<ShapeClassId, uint64_t>{0x10, 30}, {0x11, 10}}) {
      ShapeClass leaf = Leaf(id, kTop, mbit);
      leaf.ceil = tree.front().ceil;
      leaf.quantum = units::ByteCount(mbit * 10'000);
      tree.push_back(leaf);
    }
  }
  AddFlows(*pod_, 0x10, tables);
  AddFlows(*other, 0x11, tables);
  MustApply(tables);
  for (const Way way : {Way::kDownload, Way::kUpload}) {
    Stream many(node_->fabric(), *pod_, kInternetV4, way, 5201);
    Stream few(node_->fabric(), *other, kInternetV4, way, 5202);
    const double much = many.Mbit();
    const double little = few.Mbit();
    ExpectAbout(much + little, 40);
    EXPECT_GT(much, little * 1.5);
  }
  // Alone it has all.
  ExpectAbout(Mbit(*other, kInternetV4, Way::kDownload), 40);
}

// Rates classes as a plan has it: what the pods want, of a total of 10 Mbit/s.
std::vector<RatedClass> Rated(std::array<bool, 2> wants) {
  const units::ByteRate all = FrameRate(units::BitRate(10'000'000));
  std::vector<ShapeNode> nodes = {{.name = "all", .limit = all}};
  for (size_t i = 0; i < wants.size(); ++i) {
    nodes.push_back({.name = fmt::format("{}", i),
                     .parent = 1,
                     .leaf = true,
                     .demand = wants.at(i) ? all : units::ByteRate()});
  }
  return RateTree(nodes, {});
}

// The kernel lets a class that has sent a long packet at a small rate of its own wait for as long
// as that takes, also when the rate has been raised meanwhile.
TEST_F(ShapingTest, WhoWasIdleHasItsShareOnceItsRateIsRaised) {
  const auto other = Attach(8);
  const auto tables_for = [&](std::array<bool, 2> wants) {
    ShapingTables tables = Scopes(10);
    const std::vector<RatedClass> rated = Rated(wants);
    for (auto& tree : tables.trees) {
      for (size_t i = 1; i < rated.size(); ++i) {
        ShapeClass leaf = rated[i].shape;
        leaf.id = static_cast<ShapeClassId>(0x10 + i);
        leaf.parent = kTop;
        leaf.ceil = tree.front().ceil;
        tree.push_back(leaf);
      }
    }
    AddFlows(*pod_, 0x11, tables);
    AddFlows(*other, 0x12, tables);
    return tables;
  };
  MustApply(tables_for({true, false}));
  Stream busy(node_->fabric(), *pod_, kInternetV4, Way::kDownload, 5201);
  Stream idle(node_->fabric(), *other, kInternetV4, Way::kDownload, 5202);
  const uint64_t before = ClassRead(kIn, 0x12).sent.count();
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (ClassRead(kIn, 0x12).sent.count() - before < 20'000) {
    ASSERT_LT(absl::Now(), deadline) << "the stream does not begin";
    absl::SleepFor(absl::Milliseconds(1));
  }
  MustApply(tables_for({true, true}));
  const double much = busy.Mbit();
  const double little = idle.Mbit();
  EXPECT_GT(little, much * 0.6);
}

class KernelWorld final : public ShaperWorld {
 public:
  static std::unique_ptr<ShaperWorld> Make() {
    auto world = std::make_unique<KernelWorld>();
    world->node_ = NodeWorld::Make();
    if (world->node_ == nullptr) return nullptr;
    return world;
  }
  Shaper& Begin() override {
    shaper_.reset();
    shaper_ = TcShaper::Create().value();
    return *shaper_;
  }
  uint32_t AddLink() override {
    const auto number = ++links_;
    const auto last = static_cast<uint8_t>(number);
    const int32_t index = 1000 + static_cast<int32_t>(number);
    MustSend(
        node_->socket(),
        {netlink::CreateVeth({fmt::format("peer{}", number), index + 1000, {{2, 0, 0, 0, 1, last}}},
                             {fmt::format("spk{:012x}", number), index, {{2, 0, 0, 0, 2, last}}},
                             node_->node().fd(), 1500)});
    return static_cast<uint32_t>(index);
  }
  void RemoveLink(uint32_t host_index) override {
    MustSend(node_->socket(), {netlink::DeleteLink(static_cast<int32_t>(host_index))});
  }
  void Disturb(TrafficDirection direction, ShapeClassId id) override {
    ASSERT_EQ(ShellStatus(node_->node(), fmt::format("tc class del dev {} classid 5b0:{:x}",
                                                     NameOfQueues(direction), id)),
              0);
  }

 private:
  std::unique_ptr<NodeWorld> node_;
  std::unique_ptr<TcShaper> shaper_;
  uint32_t links_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kernel, ShaperContract, ::testing::Values(&KernelWorld::Make));

// Prints what a full node costs, and holds it to bounds that a busy machine keeps.
TEST(ShapingCost, OfAFullNode) {
  const auto world = KernelWorld::Make();
  ASSERT_NE(world, nullptr);
  Shaper& shaper = world->Begin();
  ShapingTables tables;
  for (uint32_t i = 0; i < 32'000; ++i) {
    const auto address = ip::Address::V4(0x01000000 + 2 * i);
    tables.scopes.push_back({address, address, kInternet});
  }
  for (auto& tree : tables.trees) {
    tree.push_back({.id = 1,
                    .rate = units::ByteRate(12'500'000'000),
                    .ceil = units::ByteRate(12'500'000'000),
                    .burst = units::ByteCount(125'000)});
  }
  for (ShapeClassId pod = 0; pod < 110; ++pod) {
    const uint32_t link = world->AddLink();
    const auto id = static_cast<ShapeClassId>(0x10 + pod);
    for (const TrafficDirection direction : kBothDirections) {
      tables.trees.at(static_cast<size_t>(direction))
          .push_back({.id = id,
                      .parent = 1,
                      .rate = units::ByteRate(12'500'000),
                      .ceil = units::ByteRate(12'500'000),
                      .burst = units::ByteCount(65'536),
                      .quantum = units::ByteCount(65'536),
                      .queue = units::ByteCount(625'000)});
      tables.flows.push_back({.host_index = link, .direction = direction, .class_id = id});
    }
  }
  const auto timed = [](const char* what, auto&& run) {
    const absl::Time before = absl::Now();
    const absl::Status status = run();
    EXPECT_TRUE(status.ok()) << status;
    const double ms = absl::ToDoubleMilliseconds(absl::Now() - before);
    std::printf("%-40s %8.2f ms\n", what, ms);
    EXPECT_LT(ms, 2'000) << what;
  };
  ShapingTables few = tables;
  few.scopes.resize(1);
  timed("devices and programs", [&] {
    ShapingTables none;
    for (size_t i = 0; i < 2; ++i) none.trees.at(i) = {few.trees.at(i).front()};
    none.trees[0][0].queue = none.trees[1][0].queue = units::ByteCount(10'000);
    return shaper.Apply(none);
  });
  timed("110 pods", [&] { return shaper.Apply(few); });
  timed("the same", [&] { return shaper.Apply(few); });
  for (auto& tree : few.trees) {
    for (size_t i = 1; i < tree.size(); ++i) tree[i].rate = tree[i].rate / 2;
  }
  timed("220 new rates", [&] { return shaper.Apply(few); });
  timed("32,000 blocks", [&] { return shaper.Apply(tables); });
  timed("read", [&] { return shaper.Read().status(); });
  timed("repair", [&] { return shaper.Repair().status(); });
  Shaper& next = world->Begin();
  timed("taken over", [&] { return next.Apply(tables); });
  for (auto& range : tables.scopes) {
    range.first = range.last = ip::Address::V4(static_cast<uint32_t>(range.first.low()) + 1);
  }
  timed("32,000 other blocks", [&] { return next.Apply(tables); });
  timed("remove", [&] { return next.Remove(); });
}

}  // namespace
}  // namespace spoke::netagent
