// The neighbour watch against a real kernel: the other machine is the far end of the node's NIC.
#include <linux/if_ether.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/check.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "netagent/packets/frame_bytes.h"
#include "netagent/packets/packet_socket.h"
#include "netagent/verification/packet_neighbour_watch.h"
#include "netagent/verification/testing/neighbour_watch_contract.h"
#include "tests/netns/links/local_address.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

using testing::IsEmpty;

// An advertisement to all nodes that `address` is at `mac` (RFC 4861 section 4.4).
std::vector<uint8_t> Advertisement(const ip::Address& address, const ip::MacAddress& mac) {
  std::vector<uint8_t> out;
  AppendEthernet(out, {{0x33, 0x33, 0, 0, 0, 1}}, mac, kEthertypeIpv6);
  out.insert(out.end(), {0x60, 0, 0, 0, 0, 32, 58, 255});
  AppendAddress(out, address);
  AppendAddress(out, ip::Address::V6(0xFF02ULL << 48U, 1));
  out.insert(out.end(), {136, 0, 0, 0, 0x20, 0, 0, 0});
  AppendAddress(out, address);
  out.insert(out.end(), {2, 1});
  AppendMac(out, mac);
  const Bytes packet = Bytes(out).subspan(kEthernetBytes);
  uint32_t sum = 58 + 32;
  for (size_t at = 8; at < 40; at += 2) sum += Load16(packet, at);
  Store16(out, kEthernetBytes + 42, InternetChecksum(packet.subspan(40), sum));
  return out;
}

// An IPv6 datagram of a pod's traffic.
std::vector<uint8_t> Datagram(const ip::MacAddress& to, const ip::MacAddress& from) {
  constexpr uint16_t kBytes = 1'400;
  std::vector<uint8_t> out;
  AppendEthernet(out, to, from, kEthertypeIpv6);
  out.insert(out.end(), {0x60, 0, 0, 0});
  Append16(out, kBytes);
  out.insert(out.end(), {17, 255});
  AppendAddress(out, NeighbourWatchWorld::kHeld6);
  AppendAddress(out, kNodeV6);
  out.resize(out.size() + kBytes, 136);
  return out;
}

class KernelWorld final : public NeighbourWatchWorld {
 public:
  static std::unique_ptr<KernelWorld> Make() {
    auto node = NodeWorld::Make();
    if (node == nullptr) return nullptr;
    return std::unique_ptr<KernelWorld>(new KernelWorld(std::move(node)));
  }

  NeighbourWatch& watch() override { return watch_; }
  ip::MacAddress other_mac() const override { return link_.mac; }
  void Hold(const ip::Address& address) override {
    MustSend(*fabric_, {netlink::AddAddress(link_.index, address)});
    AwaitLocal(*fabric_, address);
  }
  void Announce(const ip::Address& address) override { Say(address, link_.mac); }
  void Probe(const ip::Address& address) override {
    Send(BuildNeighbourQuestion(link_.mac, address));
  }
  void Reflect(const ip::Address& address) override { Say(address, node_->nic().mac); }
  bool WasTold(const ip::Address& address) override {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    std::array<uint8_t, 256> buffer{};
    while (absl::Now() < deadline) {
      const ssize_t got = ::recv(arp_.get(), buffer.data(), buffer.size(), 0);
      if (got < 0) {
        absl::SleepFor(absl::Milliseconds(1));
        continue;
      }
      const auto frame = std::span<const uint8_t>(buffer).first(static_cast<size_t>(got));
      const auto claim = ParseNeighbourClaim(frame);
      if (claim && claim->kind == NeighbourClaim::Kind::kHas && claim->address == address) {
        return claim->mac == node_->nic().mac && LoadMac(frame, 0) == link_.mac;
      }
    }
    return false;
  }

  void Send(const std::vector<uint8_t>& frame) const {
    const absl::Status status = SendFrame(arp_, frame, "send as the other machine");
    EXPECT_TRUE(status.ok()) << status;
  }
  NodeWorld& node() { return *node_; }

 private:
  explicit KernelWorld(std::unique_ptr<NodeWorld> node) : node_(std::move(node)) {
    const absl::Status status = node_->fabric().Run([this]() -> absl::Status {
      fabric_ = std::make_unique<netlink::Socket>(netlink::Socket::Open().value());
      arp_ = OpenPacketSocket("fabric", ETH_P_ARP, {}).value();
      return absl::OkStatus();
    });
    CHECK(status.ok(), "a test opens sockets in its namespace");
    link_ = netlink::GetLink(*fabric_, "fabric").value();
    // A veth has its carrier, and sends, some time after both ends are up.
    CHECK(netlink::GetLink(node_->socket(), kNodeDevice).ok(), "the node has its NIC");
  }
  void Say(const ip::Address& address, const ip::MacAddress& mac) {
    Send(address.is_v4()
             ? BuildArp(kBroadcastMac, {.from = mac, .sender = address, .target = address})
             : Advertisement(address, mac));
  }

  std::unique_ptr<NodeWorld> node_;
  std::unique_ptr<netlink::Socket> fabric_;
  os::UniqueFd arp_;
  netlink::Link link_;
  PacketNeighbourWatch watch_{kNodeDevice};
};

INSTANTIATE_TEST_SUITE_P(Kernel, NeighbourWatchContract,
                         testing::Values(NeighbourWatchWorldFactory{"Kernel", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

class NeighbourWatchTest : public testing::Test {
 protected:
  using World = NeighbourWatchWorld;

  void SetUp() override {
    world_ = KernelWorld::Make();
    if (world_ != nullptr) return;
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
    GTEST_SKIP() << "cannot make network namespaces";
  }
  std::vector<NeighbourClaim> Hear(size_t count) {
    std::vector<NeighbourClaim> heard;
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (heard.size() < count && absl::Now() < deadline) {
      const auto more = world_->watch().Take();
      if (more.ok()) heard.insert(heard.end(), more->begin(), more->end());
      absl::SleepFor(absl::Milliseconds(1));
    }
    return heard;
  }

  std::unique_ptr<KernelWorld> world_;
};

TEST_F(NeighbourWatchTest, TheNodeIsLeftAsItWas) {
  const std::vector<std::string> before = Snapshot(world_->node().socket());
  world_->Hold(World::kHeld4);
  ASSERT_TRUE(world_->watch().Ask({World::kHeld4, std::nullopt}).ok());
  ASSERT_TRUE(world_->watch().Ask({World::kFree6, std::nullopt}).ok());
  EXPECT_EQ(Hear(1).size(), 1U);
  EXPECT_EQ(Snapshot(world_->node().socket()), before);
}

// Were they heard, they would fill the queue many times over, and what follows them would be lost.
TEST_F(NeighbourWatchTest, WhatPodsReceiveIsNotHeard) {
  ASSERT_TRUE(world_->watch().Ask({World::kFree6, std::nullopt}).ok());
  const std::vector<uint8_t> datagram = Datagram(world_->node().nic().mac, world_->other_mac());
  for (int i = 0; i < 500; ++i) world_->Send(datagram);
  world_->Announce(World::kHeld6);
  const auto heard = Hear(1);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].address, World::kHeld6);
}

TEST_F(NeighbourWatchTest, AFloodIsLookedAtInParts) {
  ASSERT_TRUE(world_->watch().Ask({World::kFree4, std::nullopt}).ok());
  for (int i = 0; i < 2'000; ++i) world_->Announce(World::kHeld4);
  const auto heard = world_->watch().Take();
  ASSERT_TRUE(heard.ok()) << heard.status();
  EXPECT_LE(heard->size(), NeighbourWatch::kMaxFramesACall);
  EXPECT_GT(heard->size(), 0U);
}

TEST_F(NeighbourWatchTest, ANicIsFoundByItsMac) {
  world_->Hold(World::kHeld4);
  const ip::MacAddress nic = world_->node().nic().mac;
  ASSERT_TRUE(world_->watch().Ask({World::kHeld4, nic}).ok());
  EXPECT_EQ(Hear(1).size(), 1U);
  const ip::MacAddress none{{2, 0, 0, 0, 0, 0x77}};
  EXPECT_EQ(world_->watch().Ask({World::kHeld4, none}).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(world_->watch().Take().ok());
}

TEST_F(NeighbourWatchTest, ADeviceThatWasDownIsHeardAgain) {
  ASSERT_TRUE(world_->watch().Ask({World::kFree4, std::nullopt}).ok());
  netlink::Socket& socket = world_->node().socket();
  const int32_t nic = netlink::GetLink(socket, kNodeDevice).value().index;
  MustSend(socket, {netlink::SetLinkUp(nic, false)});
  EXPECT_EQ(world_->watch().Take().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(world_->watch().Ask({World::kFree4, std::nullopt}).code(),
            absl::StatusCode::kUnavailable);
  MustSend(socket, {netlink::SetLinkUp(nic, true)});
  EXPECT_THAT(world_->watch().Take().value_or(std::vector<NeighbourClaim>()), IsEmpty());
  ASSERT_TRUE(world_->watch().Ask({World::kFree4, std::nullopt}).ok());
  // The far end sends some time after it has its carrier again.
  std::vector<NeighbourClaim> heard;
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (heard.empty() && absl::Now() < deadline) {
    world_->Announce(World::kHeld4);
    heard = world_->watch().Take().value_or(std::vector<NeighbourClaim>());
  }
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard[0].address, World::kHeld4);

  PacketNeighbourWatch none("none0");
  EXPECT_EQ(none.Ask({World::kFree4, std::nullopt}).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace spoke::netagent
