// Tests of addresses of a NIC beside the node's first: by which device their packets leave.
#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/links/kernel_links.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

constexpr int32_t kSecondNic = 200;
constexpr ip::MacAddress kSecondMac{{2, 0, 0, 0, 2, 4}};
constexpr ip::MacAddress kSecondFabricMac{{2, 0, 0, 0, 2, 1}};
constexpr ip::Address kSecondNicV4 = ip::Address::V4(0x0A000204);    // 10.0.2.4
constexpr ip::Address kSecondGateway = ip::Address::V4(0x0A000201);  // 10.0.2.1
constexpr ip::Address kFirstPod = ip::Address::V4(0x0A000107);       // 10.0.1.7
constexpr ip::Address kSecondPod = ip::Address::V4(0x0A000207);      // 10.0.2.7
constexpr ip::Address kFarAway = ip::Address::V4(0x08080808);

// Sees what arrives in a namespace.
class Tap {
 public:
  explicit Tap(const netns::Netns& netns) {
    const absl::Status status = netns.Run([this] {
      fd_ = os::UniqueFd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP)));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok() && fd_.valid()) << status;
  }

  // Returns whether a packet from `source` has come since the last call.
  bool Saw(const ip::Address& source) {
    constexpr size_t kSourceOffset = 12;  // The offset in the IPv4 header.
    const std::string bytes = source.ToBytes();
    std::array<char, 2048> packet{};
    bool saw = false;
    while (true) {
      const ssize_t got = ::recv(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
      if (got < 0) return saw;
      const std::string_view text(packet.data(), static_cast<size_t>(got));
      saw = saw || (text.size() > kSourceOffset && text.substr(kSourceOffset, 4) == bytes);
    }
  }

 private:
  os::UniqueFd fd_;
};

class NicTableTest : public NodeLinksTest {
 protected:
  void SetUp() override {
    NodeLinksTest::SetUp();
    if (node_ == nullptr) return;
    fabric_ = std::make_unique<PodNetns>();
    MustSend(fabric_->socket(),
             {netlink::CreateVeth({"fabric", 201, kSecondFabricMac},
                                  {"nic1", kSecondNic, kSecondMac}, node_->node().fd(), 1500)});
    MustSend(node_->socket(),
             {netlink::SetLinkUp(kSecondNic, true),
              netlink::SetPermanentNeighbour(kSecondNic, kSecondGateway, kSecondFabricMac)});
    // A veth has its carrier, and sends, some time after both ends are up.
    ASSERT_TRUE(netlink::GetLink(node_->socket(), "nic1").ok());
  }

  // Adds 10.0.2.4/24, with the subnet's route.
  void AddSubnet() {
    ifaddrmsg fixed{};
    fixed.ifa_family = AF_INET;
    fixed.ifa_prefixlen = 24;
    fixed.ifa_index = kSecondNic;
    netlink::Request request("add a subnet", RTM_NEWADDR, NLM_F_CREATE, fixed);
    request.PutAddress(IFA_LOCAL, kSecondNicV4).PutAddress(IFA_ADDRESS, kSecondNicV4);
    MustSend(node_->socket(), {request});
  }

  std::vector<netlink::Route> RoutesIn(uint32_t table) {
    return netlink::DumpRoutes(node_->socket(), ip::Family::kV4, table, claims::kRouteProtocol)
        .value();
  }

  static AttachSpec Spec(const std::string& container, const ip::Address& address) {
    return PlanAttach({container, "eth0"}, {address}, 1450).value();
  }

  std::unique_ptr<PodNetns> fabric_;
};

TEST_F(NicTableTest, WithoutAGatewayTheNicIsNamed) {
  const absl::Status status = links_->SetNicTable(kSecondMac).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("nic1"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("02:00:00:00:02:04"), absl::string_view::npos) << status;
}

TEST_F(NicTableTest, TheGatewayIsTheFirstHostOfTheSubnetUnlessTheMainTableKnowsBetter) {
  AddSubnet();
  const uint32_t table = links_->SetNicTable(kSecondMac).value();
  ASSERT_EQ(RoutesIn(table).size(), 1U);
  EXPECT_EQ(RoutesIn(table).front().gateway, kSecondGateway);
  EXPECT_EQ(RoutesIn(table).front().link, kSecondNic);

  const ip::Address other = ip::Address::V4(0x0A0002FE);  // 10.0.2.254
  MustSend(node_->socket(), {netlink::AddRoute({.destination = ip::Prefix::Of(kFarAway, 0).value(),
                                                .link = kSecondNic,
                                                .gateway = other,
                                                .metric = 200})});
  EXPECT_EQ(links_->SetNicTable(kSecondMac).value(), table);
  ASSERT_EQ(RoutesIn(table).size(), 1U);
  EXPECT_EQ(RoutesIn(table).front().gateway, other);
}

TEST_F(NicTableTest, WhatComesFromAnAddressLeavesByItsNicAndPodsStillReachEachOther) {
  AddSubnet();
  AttachSpec second = Spec("second", kSecondPod);
  second.source_tables = {{kSecondPod, links_->SetNicTable(kSecondMac).value()}};
  PodNetns one;
  PodNetns two;
  ASSERT_TRUE(Attach(*links_, Spec("first", kFirstPod), one.fd()).ok());
  ASSERT_TRUE(Attach(*links_, second, two.fd()).ok());

  Tap first_fabric(node_->fabric());
  Tap second_fabric(fabric_->netns());
  UdpSocket from_first(one.netns(), kFirstPod);
  UdpSocket from_second(two.netns(), kSecondPod);
  from_first.Connect(kFarAway, 9);
  from_second.Connect(kFarAway, 9);
  EXPECT_EQ(from_first.Send("x"), 0);
  EXPECT_EQ(from_second.Send("x"), 0);
  EXPECT_TRUE(first_fabric.Saw(kFirstPod));
  EXPECT_TRUE(second_fabric.Saw(kSecondPod));
  EXPECT_FALSE(second_fabric.Saw(kFirstPod));
  EXPECT_FALSE(first_fabric.Saw(kSecondPod));

  UdpSocket client(two.netns(), kSecondPod);
  UdpSocket server(one.netns(), kFirstPod);
  EXPECT_TRUE(CanTalk(client, server, kFirstPod, 100));
  UdpSocket to_node(two.netns(), kSecondPod);
  UdpSocket node(node_->node(), kNodeV4);
  EXPECT_TRUE(CanTalk(to_node, node, kNodeV4, 100));
}

TEST_F(NicTableTest, RulesWhoseAddressHasNoLinkAreRemovedWhenAnAgentStarts) {
  AddSubnet();
  AttachSpec second = Spec("second", kSecondPod);
  const uint32_t table = links_->SetNicTable(kSecondMac).value();
  second.source_tables = {{kSecondPod, table}};
  const PodNetns pod;
  ASSERT_TRUE(Attach(*links_, second, pod.fd()).ok());
  const std::vector<std::string> before = Snapshot(node_->socket());
  // There are more than go into one batch.
  for (uint64_t i = 0; i <= netlink::kMaxBatch; ++i) {
    const ip::Address address = ip::Advance(ip::Address::V4(0x0A000300), i);  // 10.0.3.0
    const netlink::Rule orphan{.family = ip::Family::kV4,
                               .priority = claims::kSourcePriority,
                               .from = ip::Prefix::Host(address),
                               .table = table,
                               .protocol = claims::kRouteProtocol,
                               .suppress_prefix_length = {}};
    MustSend(node_->socket(), {netlink::AddRule(orphan)});
  }
  links_ = KernelLinks::Create().value();
  EXPECT_EQ(Snapshot(node_->socket()), before);
  // The links know the rule that is in use.
  EXPECT_TRUE(Detach(*links_, second.host_link).ok());
  const auto rules =
      netlink::DumpRules(node_->socket(), ip::Family::kV4, claims::kRouteProtocol).value();
  EXPECT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules.front().priority, claims::kMainFirstPriority);
}

}  // namespace
}  // namespace spoke::netagent
