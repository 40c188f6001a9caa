// Probes of full size against a real kernel: what a path takes arrives, what it does not is lost.
#include "netagent/policy/policy_prober.h"

#include <atomic>
#include <fstream>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kFarEnd = ip::Address::V4(0x0A000163);  // 10.0.1.99
constexpr ip::Address kBeyond = ip::Address::V4(0x0A630001);  // 10.99.0.1, behind a router.
constexpr uint16_t kMtu = 1500;                               // That of the node's link.

class FullSizeProbeTest : public NodeWorldTest {
 protected:
  void SetUp() override {
    NodeWorldTest::SetUp();
    if (node_ == nullptr) return;
    const absl::Status status = node_->fabric().Run([this] {
      fabric_ = std::make_unique<netlink::Socket>(netlink::Socket::Open().value());
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    link_ = netlink::GetLink(*fabric_, "fabric").value().index;
    MustSend(*fabric_, {netlink::SetLinkUp(link_, true), netlink::AddAddress(link_, kFarEnd),
                        netlink::AddRoute({.destination = ip::Prefix::Host(kNodeV4),
                                           .scope = RT_SCOPE_LINK,
                                           .link = link_}),
                        netlink::SetPermanentNeighbour(link_, kNodeV4, node_->nic().mac)});
  }

  // Probes with so many bytes; those of 0 are the shortest there are.
  node_api::ProbeOutcome Probe(uint16_t bytes, const ip::Address& to = kFarEnd) {
    const std::atomic<bool> stop = false;
    return ProbeAll({{.address = to, .bytes = bytes}}, absl::Seconds(5), stop).at(0).outcome;
  }

  std::unique_ptr<netlink::Socket> fabric_;
  int32_t link_ = 0;
};

TEST_F(FullSizeProbeTest, WhatTheLinkTakesArrives) {
  EXPECT_EQ(Probe(0), node_api::ProbeOutcome::kReached);
  EXPECT_EQ(Probe(kMtu), node_api::ProbeOutcome::kReached);
  EXPECT_EQ(Probe(kMtu - 1), node_api::ProbeOutcome::kReached) << "an odd number of bytes";
  EXPECT_EQ(Probe(kMtu + 1), node_api::ProbeOutcome::kNotTried) << "more than the node's own link";
}

TEST_F(FullSizeProbeTest, WhatALinkDropsIsLost) {
  MustSend(*fabric_, {netlink::SetLinkMtu(link_, kMtu - 100)});
  EXPECT_EQ(Probe(kMtu - 100), node_api::ProbeOutcome::kReached);
  EXPECT_EQ(Probe(kMtu), node_api::ProbeOutcome::kUnreachable);
  EXPECT_EQ(Probe(0), node_api::ProbeOutcome::kReached);
}

TEST_F(FullSizeProbeTest, WhatARouterRefusesIsLostEachTime) {
  const absl::Status status = node_->fabric().Run([] {
    std::ofstream("/proc/sys/net/ipv4/ip_forward") << "1\n";
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  constexpr int32_t kOut = 71;
  MustSend(*fabric_,
           {netlink::CreateVeth({.name = "out0",
                                 .index = kOut,
                                 .mac = ip::MacAddress::Parse("02:00:00:00:00:71").value()},
                                {.name = "out1",
                                 .index = kOut + 1,
                                 .mac = ip::MacAddress::Parse("02:00:00:00:00:72").value()},
                                node_->fabric().fd(), kMtu - 100)});
  MustSend(*fabric_,
           {netlink::SetLinkUp(kOut + 1, true),
            netlink::AddRoute(
                {.destination = ip::Prefix::Host(kBeyond), .scope = RT_SCOPE_LINK, .link = kOut})});
  // The kernel remembers what the router has said of the path, and sends it whole all the same.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Probe(kMtu, kBeyond), node_api::ProbeOutcome::kUnreachable) << i;
  }
}

}  // namespace
}  // namespace spoke::netagent
