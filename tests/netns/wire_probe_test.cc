// The wire probe against a real kernel: the far end is a host that answers echo requests.
#include <fcntl.h>
#include <sys/socket.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "netagent/verification/packet_wire_probe.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr ip::Address kFarEnd = ip::Address::V4(0x0A000163);     // 10.0.1.99
constexpr ip::Address kDelivered = ip::Address::V4(0x0A00010A);  // 10.0.1.10
constexpr ip::Address kAlsoDelivered = ip::Address::V4(0x0A00010B);
constexpr ip::Address kUnknown = ip::Address::V4(0x0A00010C);  // The fabric has never heard of it.
constexpr absl::Duration kPatience = absl::Seconds(5);

class WireProbeTest : public NodeWorldTest {
 protected:
  void SetUp() override {
    NodeWorldTest::SetUp();
    if (node_ == nullptr) return;
    const absl::Status status = node_->fabric().Run([this] {
      fabric_ = std::make_unique<netlink::Socket>(netlink::Socket::Open().value());
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    const netlink::Link link = netlink::GetLink(*fabric_, "fabric").value();
    link_ = link.index;
    MustSend(*fabric_, {netlink::SetLinkUp(link_, true), netlink::AddAddress(link_, kFarEnd)});
    for (const ip::Address& address : {kDelivered, kAlsoDelivered, kNodeV4}) Deliver(address);
    // A veth has its carrier, and sends, some time after both ends are up.
    ASSERT_TRUE(netlink::GetLink(node_->socket(), kNodeDevice).ok());
  }

  // Makes the fabric deliver for the address from now on.
  void Deliver(const ip::Address& address) {
    MustSend(*fabric_, {netlink::AddRoute({.destination = ip::Prefix::Host(address),
                                           .scope = RT_SCOPE_LINK,
                                           .link = link_}),
                        netlink::SetPermanentNeighbour(link_, address, node_->nic().mac)});
  }

  PacketWireProbe::Settings Settings() const {
    return {.device = kNodeDevice,
            .mac = node_->nic().mac,
            .address = kNodeV4,
            .answerer = kFarEnd,
            .next_hop = kFarEnd,
            .identifier = 77,
            .nonce = 0x1122334455667788};
  }

  // Returns what has been answered when there are `count`, or when patience ends.
  static std::vector<ip::Address> Await(WireProbe& probe, size_t count,
                                        absl::Duration patience = kPatience) {
    std::vector<ip::Address> answered;
    const absl::Time deadline = absl::Now() + patience;
    while (answered.size() < count && absl::Now() < deadline) {
      const auto more = probe.TakeAnswered();
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok()) break;
      answered.insert(answered.end(), more->begin(), more->end());
      std::this_thread::yield();
    }
    return answered;
  }

  std::unique_ptr<netlink::Socket> fabric_;
  int32_t link_ = 0;
};

TEST_F(WireProbeTest, WhatTheFabricDeliversForIsAnswered) {
  PacketWireProbe probe(Settings());
  for (const ip::Address& address : {kDelivered, kAlsoDelivered, kUnknown}) {
    ASSERT_TRUE(probe.Send(address).ok());
  }
  EXPECT_THAT(Await(probe, 2), UnorderedElementsAre(kDelivered, kAlsoDelivered));
  // The next hop is known by now: this one goes out at once.
  ASSERT_TRUE(probe.Send(kDelivered).ok());
  EXPECT_THAT(Await(probe, 1), ElementsAre(kDelivered));
  EXPECT_THAT(Await(probe, 1, absl::Milliseconds(50)), IsEmpty());
}

TEST_F(WireProbeTest, TheNodeIsLeftAsItWas) {
  const std::vector<std::string> before = Snapshot(node_->socket());
  PacketWireProbe probe(Settings());
  ASSERT_TRUE(probe.Send(kDelivered).ok());
  ASSERT_THAT(Await(probe, 1), ElementsAre(kDelivered));
  EXPECT_EQ(Snapshot(node_->socket()), before);
}

TEST_F(WireProbeTest, ItRestsAndBeginsAnew) {
  PacketWireProbe probe(Settings());
  ASSERT_TRUE(probe.Send(kDelivered).ok());
  ASSERT_THAT(Await(probe, 1), ElementsAre(kDelivered));
  probe.Rest();
  EXPECT_THAT(*probe.TakeAnswered(), IsEmpty());
  ASSERT_TRUE(probe.Send(kAlsoDelivered).ok());
  EXPECT_THAT(Await(probe, 1), ElementsAre(kAlsoDelivered));
}

TEST_F(WireProbeTest, AnswersToAnotherProbeAreNotTaken) {
  PacketWireProbe::Settings other = Settings();
  PacketWireProbe::Settings same_identifier = Settings();
  other.identifier = 78;
  same_identifier.nonce = 1;
  PacketWireProbe first(Settings());
  PacketWireProbe second(other);
  PacketWireProbe third(same_identifier);
  for (PacketWireProbe* probe : {&second, &third}) ASSERT_TRUE(probe->Send(kDelivered).ok());
  ASSERT_TRUE(first.Send(kAlsoDelivered).ok());
  EXPECT_THAT(Await(first, 1), ElementsAre(kAlsoDelivered));
  EXPECT_THAT(Await(second, 1), ElementsAre(kDelivered));
  EXPECT_THAT(Await(third, 1), ElementsAre(kDelivered));
  EXPECT_THAT(Await(first, 1, absl::Milliseconds(50)), IsEmpty());
}

TEST_F(WireProbeTest, AnAnswererBehindTheGatewayIsReachedByTheGatewaysMac) {
  constexpr ip::Address kGateway = ip::Address::V4(0x0A000101);  // 10.0.1.1
  constexpr ip::Address kRemote = ip::Address::V4(0x0A090909);   // 10.9.9.9
  MustSend(*fabric_, {netlink::AddAddress(link_, kGateway), netlink::AddAddress(link_, kRemote)});
  PacketWireProbe::Settings settings = Settings();
  settings.answerer = kRemote;
  settings.next_hop = NextHopTo(kRemote, {ip::Prefix::Parse("10.0.1.0/24").value()});
  EXPECT_EQ(settings.next_hop, kGateway);
  PacketWireProbe probe(settings);
  ASSERT_TRUE(probe.Send(kDelivered).ok());
  EXPECT_THAT(Await(probe, 1), ElementsAre(kDelivered));
}

TEST_F(WireProbeTest, ADeviceThatIsDownOrGoneIsAnErrorThatPasses) {
  PacketWireProbe probe(Settings());
  const int32_t nic = netlink::GetLink(node_->socket(), kNodeDevice).value().index;
  MustSend(node_->socket(), {netlink::SetLinkUp(nic, false)});
  EXPECT_EQ(probe.Send(kDelivered).code(), absl::StatusCode::kUnavailable);
  MustSend(node_->socket(), {netlink::SetLinkUp(nic, true)});
  probe.Rest();
  ASSERT_TRUE(probe.Send(kDelivered).ok());
  EXPECT_THAT(Await(probe, 1), ElementsAre(kDelivered));

  PacketWireProbe::Settings settings = Settings();
  settings.device = "none0";
  EXPECT_EQ(PacketWireProbe(settings).Send(kDelivered).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(probe.Send(kNodeV6).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace spoke::netagent
