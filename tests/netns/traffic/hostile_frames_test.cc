// Frames that a pod with NET_RAW makes by itself: those that routing would not forward do not leave
// by the fast path either, and what it forwards only after a look goes the ordinary way.
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include "tests/netns/traffic/hostile_world.h"

namespace spoke::netagent {
namespace {

class HostileFrames : public HostileWorld {
 protected:
  // Sends to a host beyond the fabric, and to a fast pod here, in both families, and expects that
  // nothing arrives.
  void NothingArrives(const std::string& kind, const std::function<void(Frame&)>& spoil,
                      bool v4 = true, bool v6 = true) {
    for (const ip::Address& to : {kFabricV4, kSecondV4, kFabricV6, kSecondV6}) {
      if (!(to.is_v4() ? v4 : v6)) continue;
      SCOPED_TRACE(kind + " to " + to.ToString());
      Frame frame = Packet(to);
      spoil(frame);
      Send(frame, kFrames);
      ExpectNothingHeard();
    }
  }

  // Expects that it arrives, but by routing, which connection tracking looks at.
  void GoesTheOrdinaryWay(const std::string& kind, const ip::Address& to,
                          const std::function<void(Frame&)>& change) {
    SCOPED_TRACE(kind);
    Frame frame = Packet(to);
    change(frame);
    Send(frame, 3);
    EXPECT_EQ(fabric_->Hear().frames, 3);
    EXPECT_EQ(CountsOf(one_->id), FastCounts());
  }
};

TEST_F(HostileFrames, PlainOnesArrive) {
  for (const ip::Address& to : {kFabricV4, kFabricV6}) {
    SCOPED_TRACE(to.ToString());
    // The first ones ask for the neighbour.
    UdpSocket client(one_->netns.netns(), to.is_v4() ? kFirstV4 : kFirstV6);
    UdpSocket server(node_->fabric(), to);
    ASSERT_TRUE(CanTalk(client, server, to, 10));
    const uint64_t before = CountsOf(one_->id).sent_packets;
    Send(Packet(to), kFrames);
    EXPECT_EQ(fabric_->Hear().frames, kFrames);
    EXPECT_EQ(CountsOf(one_->id).sent_packets, before + kFrames);
  }
}

TEST_F(HostileFrames, NoVlanTagLeaves) {
  NothingArrives("tag 100", [](Frame& frame) { frame.Tag(100); });
  NothingArrives("tag 0, priority 7", [](Frame& frame) { frame.Tag(0xE000); });
  NothingArrives("tag 4094, priority 7", [](Frame& frame) { frame.Tag(0xEFFE); });
  NothingArrives("two tags", [](Frame& frame) {
    frame.Tag(100);
    frame.Tag(200);
  });
}

TEST_F(HostileFrames, OnesToAnotherMacStay) {
  NothingArrives("another MAC", [](Frame& frame) { frame.ethernet().h_dest[5] ^= 0xFF; });
}

TEST_F(HostileFrames, BrokenHeadersStay) {
  NothingArrives(
      "wrong checksum", [](Frame& frame) { frame.v4().check ^= 1; }, true, false);
  NothingArrives(
      "too long",
      [](Frame& frame) {
        frame.v4().tot_len = htons(static_cast<uint16_t>(ntohs(frame.v4().tot_len) + 1));
        SetSum(frame);
      },
      true, false);
  NothingArrives(
      "too short",
      [](Frame& frame) {
        frame.v4().tot_len = htons(sizeof(iphdr) - 1);
        SetSum(frame);
      },
      true, false);
  NothingArrives(
      "too long",
      [](Frame& frame) {
        frame.v6().ip6_plen = htons(static_cast<uint16_t>(ntohs(frame.v6().ip6_plen) + 1));
      },
      false, true);
}

TEST_F(HostileFrames, FragmentsGoTheOrdinaryWay) {
  GoesTheOrdinaryWay("the last fragment", kFabricV4, [](Frame& frame) {
    frame.v4().frag_off = htons(100);
    SetSum(frame);
  });
  GoesTheOrdinaryWay("the first fragment", kFabricV4, [](Frame& frame) {
    frame.v4().frag_off = htons(IP_MF);
    SetSum(frame);
  });
}

TEST_F(HostileFrames, ErrorsGoTheOrdinaryWay) {
  GoesTheOrdinaryWay("an ICMP error", kFabricV4, [](Frame& frame) {
    frame.v4().protocol = IPPROTO_ICMP;
    frame.At<icmphdr>(ETH_HLEN + sizeof(iphdr)).type = ICMP_DEST_UNREACH;
    SetSum(frame);
  });
  GoesTheOrdinaryWay("an ICMPv6 error", kFabricV6, [](Frame& frame) {
    frame.v6().ip6_nxt = IPPROTO_ICMPV6;
    frame.At<icmp6_hdr>(ETH_HLEN + sizeof(ip6_hdr)).icmp6_type = ICMP6_PACKET_TOO_BIG;
  });
  GoesTheOrdinaryWay("destination options", kFabricV6,
                     [](Frame& frame) { frame.v6().ip6_nxt = IPPROTO_DSTOPTS; });
}

// Pings are no errors.
TEST_F(HostileFrames, EchoesGoFast) {
  Frame frame = Packet(kFabricV4);
  frame.v4().protocol = IPPROTO_ICMP;
  frame.At<icmphdr>(ETH_HLEN + sizeof(iphdr)).type = ICMP_ECHO;
  SetSum(frame);
  Send(frame, 1);
  EXPECT_EQ(CountsOf(one_->id).sent_packets, 1U);
}

}  // namespace
}  // namespace spoke::netagent
