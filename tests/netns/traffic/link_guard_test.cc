// Tests that what a pod has no right to send ends at its link, counted by its reason, though
// nothing is in nf_tables: as after somebody has flushed the rules. Both ways of a pod, fast and
// ordinary.
#include <arpa/inet.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include <algorithm>
#include <cstring>

#include "lib/netlink/network_layer.h"
#include "netagent/claims.h"
#include "tests/netns/traffic/hostile_world.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kLinkLocal = ip::Address::V6(0xFE80'0000'0000'0000, 0x77);
constexpr ip::Address kAllNodes = ip::Address::V6(0xFF02'0000'0000'0000, 1);

class LinkGuard : public HostileWorld, public testing::WithParamInterface<PodWay> {
 protected:
  void SetUp() override {
    HostileWorld::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(fast_->Change(one_->id, GetParam(), one_->pod.pod_mac).ok());
    // The pod's own frames are behind it.
    ExpectNothingHeard();
  }

  // Expects that all of them end at the link, for this reason.
  void IsRefused(const Frame& frame, std::string_view reason) {
    SCOPED_TRACE(reason);
    const uint64_t before = Refused(reason);
    Send(frame, kFrames);
    // A router solicitation of the pod's own kernel may be among them.
    EXPECT_GE(Refused(reason), before + kFrames);
    EXPECT_LE(Refused(reason), before + kFrames + 3);
    ExpectNothingHeard();
  }

  // Returns a frame of the first pod, from `from`, with a message of ICMPv6 of this type; `target`
  // is what stands in those of neighbours.
  Frame Icmp6(const ip::Address& from, uint8_t type, const ip::Address& target = kFirstV6) {
    Frame frame = Packet(kAllNodes);
    WriteSource(from, frame);
    frame.v6().ip6_hlim = 255;
    frame.v6().ip6_nxt = IPPROTO_ICMPV6;
    auto& message = frame.At<nd_neighbor_advert>(ETH_HLEN + sizeof(ip6_hdr));
    message.nd_na_hdr.icmp6_type = type;
    WriteTo(target, message.nd_na_target);
    return frame;
  }

  Frame Arp(uint16_t operation, const ip::Address& sender) {
    Frame frame = Ethernet(ETH_P_ARP, 28 + kMarker.size());
    std::fill_n(frame.ethernet().h_dest, ETH_ALEN, uint8_t{0xFF});
    auto& header = frame.At<arphdr>(ETH_HLEN);
    header.ar_hrd = htons(ARPHRD_ETHER);
    header.ar_pro = htons(ETH_P_IP);
    header.ar_hln = ETH_ALEN;
    header.ar_pln = 4;
    header.ar_op = htons(operation);
    const size_t at = ETH_HLEN + sizeof(arphdr);
    std::copy_n(frame.ethernet().h_source, ETH_ALEN, &frame.At<uint8_t>(at));
    const uint32_t address = htonl(static_cast<uint32_t>(sender.low()));
    std::memcpy(&frame.At<uint8_t>(at + ETH_ALEN), &address, sizeof(address));
    std::copy(kMarker.begin(), kMarker.end(), &frame.At<char>(ETH_HLEN + 28));
    return frame;
  }

  static void WriteSource(const ip::Address& from, Frame& frame) {
    WriteTo(from, frame.v6().ip6_src);
  }
  static void WriteTo(const ip::Address& address, in6_addr& to) {
    for (size_t i = 0; i < 8; ++i) {
      to.s6_addr[i] = static_cast<uint8_t>(address.high() >> (56 - 8 * i));
      to.s6_addr[8 + i] = static_cast<uint8_t>(address.low() >> (56 - 8 * i));
    }
  }
};

TEST_P(LinkGuard, AnotherMacOrAddressIsRefused) {
  for (const ip::Address& to : {kFabricV4, kSecondV4, kFabricV6, kSecondV6, kNodeV4, kNodeV6}) {
    SCOPED_TRACE(to.ToString());
    Frame mac = Packet(to);
    mac.ethernet().h_source[5] ^= 1;
    IsRefused(mac, "unknown-source");
    Frame address = Packet(to);
    if (to.is_v4()) {
      address.v4().saddr = htonl(static_cast<uint32_t>(kSecondV4.low()));
      SetSum(address);
    } else {
      WriteSource(kSecondV6, address);
    }
    IsRefused(address, "unknown-source");
  }
  // From a link-local address a pod has nothing to say to anybody beyond its link.
  Frame link_local = Packet(kFabricV6);
  WriteSource(kLinkLocal, link_local);
  IsRefused(link_local, "unknown-source");
}

TEST_P(LinkGuard, TagsAndOtherProtocolsAreRefused) {
  for (const uint16_t tag : {uint16_t{0xE000}, uint16_t{100}, uint16_t{4094}}) {
    Frame frame = Packet(kFabricV4);
    frame.Tag(tag);
    IsRefused(frame, "vlan-tag");
  }
  for (const int protocol : {0x88CC /* LLDP */, 0x8847 /* MPLS */, 0x888E /* EAPOL */, 60}) {
    Frame frame = Packet(kFabricV4);
    frame.ethernet().h_proto = htons(static_cast<uint16_t>(protocol));
    IsRefused(frame, "protocol");
  }
  Frame version = Packet(kFabricV4);
  version.v4().version = 6;
  IsRefused(version, "protocol");
}

TEST_P(LinkGuard, WhatOnlyARouterSaysIsRefused) {
  for (const int type : {130, 133, 134, 137, 151}) {
    IsRefused(Icmp6(kLinkLocal, static_cast<uint8_t>(type)), "router-message");
    IsRefused(Icmp6(kFirstV6, static_cast<uint8_t>(type)), "router-message");
  }
  for (const auto& [protocol, type] :
       {std::pair{IPPROTO_ICMP, 5}, {IPPROTO_ICMP, 9}, {IPPROTO_IGMP, 0x11}, {IPPROTO_PIM, 0}}) {
    Frame frame = Packet(ip::Address::V4(0xE0000001));  // 224.0.0.1
    frame.v4().protocol = static_cast<uint8_t>(protocol);
    frame.At<uint8_t>(ETH_HLEN + sizeof(iphdr)) = static_cast<uint8_t>(type);
    SetSum(frame);
    IsRefused(frame, "router-message");
  }
}

TEST_P(LinkGuard, NobodyElsesNeighbourMessagesPass) {
  const auto neighbours = [&] {
    const auto link = static_cast<int32_t>(one_->pod.host_index);
    auto all = netlink::DumpNeighbours(node_->socket(), ip::Family::kV4, link).value();
    const auto v6 = netlink::DumpNeighbours(node_->socket(), ip::Family::kV6, link).value();
    all.insert(all.end(), v6.begin(), v6.end());
    return all;
  };
  const auto before = neighbours();
  for (const ip::Address& other : {kSecondV4, kNodeV4, claims::kGatewayV4}) {
    IsRefused(Arp(ARPOP_REQUEST, other), "unknown-source");
    IsRefused(Arp(ARPOP_REPLY, other), "unknown-source");
  }
  Frame mac = Arp(ARPOP_REPLY, kFirstV4);
  mac.At<uint8_t>(ETH_HLEN + sizeof(arphdr)) ^= 1;
  IsRefused(mac, "unknown-source");
  IsRefused(Arp(8 /* InARP */, kFirstV4), "protocol");
  for (const ip::Address& from : {kLinkLocal, kFirstV6}) {
    IsRefused(Icmp6(from, ND_NEIGHBOR_ADVERT, kSecondV6), "unknown-source");
    IsRefused(Icmp6(from, ND_NEIGHBOR_ADVERT, kNodeV6), "unknown-source");
  }
  IsRefused(Icmp6(kSecondV6, ND_NEIGHBOR_SOLICIT), "unknown-source");
  EXPECT_EQ(neighbours(), before);
}

TEST_P(LinkGuard, WhatAPodHasToSayPasses) {
  const auto all = [&] {
    uint64_t sum = 0;
    const auto counts = fast_->ReadRefused().value();
    for (const RefusedCount& refused : counts) sum += refused.packets;
    return sum;
  };
  const uint64_t before = all();
  Send(Arp(ARPOP_REQUEST, kFirstV4), 3);
  Send(Arp(ARPOP_REQUEST, ip::Address::V4(0)), 3);
  Send(Icmp6(ip::Address::V6(0, 0), ND_NEIGHBOR_SOLICIT), 3);
  Send(Icmp6(kLinkLocal, ND_NEIGHBOR_SOLICIT), 3);
  Send(Icmp6(kFirstV6, ND_NEIGHBOR_ADVERT, kFirstV6), 3);
  Send(Icmp6(kLinkLocal, 143 /* A report of a listener. */), 3);
  EXPECT_EQ(all(), before);
  for (const ip::Address& to : {kFabricV4, kFabricV6, kSecondV4, kSecondV6}) {
    UdpSocket client(one_->netns.netns(), to.is_v4() ? kFirstV4 : kFirstV6);
    UdpSocket server(to == kSecondV4 || to == kSecondV6 ? two_->netns.netns() : node_->fabric(),
                     to);
    EXPECT_TRUE(CanTalk(client, server, to, 10)) << to.ToString();
  }
  EXPECT_EQ(all(), before);
}

// Two agents were killed on the way: the kernel's map has a pod of this link that has gone.
TEST_P(LinkGuard, TheEndOfAFormerPodOfTheSameLinkLeavesThePodAlone) {
  TrafficPod former = one_->pod;
  former.addresses = {ip::Address::V4(0x0A000163)};
  const uint64_t former_id = fast_->AddPod(former, GetParam()).value();
  one_->id = fast_->AddPod(one_->pod, GetParam()).value();
  ASSERT_TRUE(fast_->EndPod(former_id).ok());
  Begin();
  const auto pods = fast_->Read().value();
  for (const FastPodReading& pod : pods) {
    if (pod.id != one_->id && pod.id != two_->id) ASSERT_TRUE(fast_->EndPod(pod.id).ok());
  }
  UdpSocket client(one_->netns.netns(), kFirstV4);
  UdpSocket server(node_->fabric(), kFabricV4);
  EXPECT_TRUE(CanTalk(client, server, kFabricV4, 10));
}

TEST_P(LinkGuard, NothingComesFromAPodThatHasEnded) {
  ASSERT_TRUE(fast_->EndPod(one_->id).ok());
  IsRefused(Packet(kFabricV4), "unknown-source");
  IsRefused(Packet(kFabricV6), "unknown-source");
}

INSTANTIATE_TEST_SUITE_P(Way, LinkGuard, testing::Values(PodWay::kFast, PodWay::kOrdinary),
                         [](const auto& test) {
                           return test.param == PodWay::kFast ? "Fast" : "Ordinary";
                         });

}  // namespace
}  // namespace spoke::netagent
