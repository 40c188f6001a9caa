// Frames that a pod with NET_RAW makes by itself: those that routing would not forward do not leave
// by the fast path either, and what it forwards only after a look goes the ordinary way.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "lib/netlink/link.h"
#include "tests/netns/fast_path_world.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kMarker = "a frame of a hostile pod";
constexpr int kFrames = 1000;

class Frame {
 public:
  explicit Frame(size_t size) : padded_(kPad + size) {}

  const uint8_t* data() const { return padded_.data() + kPad; }
  size_t size() const { return padded_.size() - kPad; }
  template <typename Header>
  Header& At(size_t offset) {
    return *reinterpret_cast<Header*>(padded_.data() + kPad + offset);
  }
  ethhdr& ethernet() { return At<ethhdr>(0); }
  iphdr& v4() { return At<iphdr>(ETH_HLEN); }
  ip6_hdr& v6() { return At<ip6_hdr>(ETH_HLEN); }
  // Before the network header; call it last.
  void Tag(uint16_t tci) {
    const std::array<uint8_t, 4> tag = {0x81, 0x00, static_cast<uint8_t>(tci >> 8U),
                                        static_cast<uint8_t>(tci)};
    padded_.insert(padded_.begin() + kPad + 2 * ETH_ALEN, tag.begin(), tag.end());
  }

 private:
  static constexpr size_t kPad = 2;  // So that the network header is aligned.
  std::vector<uint8_t> padded_;
};

// RFC 1071.
uint16_t SumOf(const iphdr& header) {
  const auto* words = reinterpret_cast<const uint16_t*>(&header);
  uint32_t sum = 0;
  for (size_t i = 0; i < sizeof(header) / 2; ++i) sum += words[i];
  while (sum > 0xFFFF) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<uint16_t>(~sum);
}

void SetSum(Frame& frame) {
  frame.v4().check = 0;
  frame.v4().check = SumOf(frame.v4());
}

// Counts the frames with the marker that a device of a namespace receives.
class Listener {
 public:
  Listener(const netns::Netns& netns, const char* device) {
    const absl::Status status = netns.Run([&] {
      fd_ = os::UniqueFd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
      sockaddr_ll at{};
      at.sll_family = AF_PACKET;
      at.sll_protocol = htons(ETH_P_ALL);
      at.sll_ifindex = static_cast<int>(::if_nametoindex(device));
      EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
      const int on = 1;
      EXPECT_EQ(::setsockopt(fd_.get(), SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)), 0);
      const int room = 16 << 20;
      EXPECT_EQ(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }

  // Those that came, and of them those with a VLAN tag, until nothing comes for a while.
  struct Heard {
    int frames = 0;
    int tagged = 0;
  };
  Heard Hear() {
    Heard heard;
    pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    while (::poll(&waiting, 1, 200) > 0) Take(heard);
    return heard;
  }

 private:
  void Take(Heard& heard) {
    std::array<char, 2048> data{};
    std::array<char, 256> control{};
    iovec part{data.data(), data.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    sockaddr_ll from{};
    message.msg_name = &from;
    message.msg_namelen = sizeof(from);
    const ssize_t got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (got <= 0 || from.sll_pkttype == PACKET_OUTGOING) return;
    const std::string_view text(data.data(), static_cast<size_t>(got));
    if (text.find(kMarker) == std::string_view::npos) return;
    ++heard.frames;
    for (const cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr;
         c = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(c))) {
      if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) continue;
      tpacket_auxdata aux{};
      std::memcpy(&aux, CMSG_DATA(c), sizeof(aux));
      heard.tagged += (aux.tp_status & TP_STATUS_VLAN_VALID) != 0 ? 1 : 0;
    }
  }

  os::UniqueFd fd_;
};

class HostileFrames : public FastPathTest {
 protected:
  void SetUp() override {
    FastPathTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fabric_ = std::make_unique<Listener>(node_->fabric(), "fabric");
    neighbour_ = std::make_unique<Listener>(two_->netns.netns(), "eth0");
  }

  // A UDP packet of the first pod's, as it may be.
  Frame Packet(const ip::Address& to) {
    const bool v4 = to.is_v4();
    const size_t header = v4 ? sizeof(iphdr) : sizeof(ip6_hdr);
    Frame frame(ETH_HLEN + header + sizeof(udphdr) + kMarker.size());
    FillEthernet(frame, v4 ? ETH_P_IP : ETH_P_IPV6);
    const auto payload = static_cast<uint16_t>(sizeof(udphdr) + kMarker.size());
    if (v4) {
      iphdr& packet = frame.v4();
      packet.version = 4;
      packet.ihl = 5;
      packet.ttl = 64;
      packet.protocol = IPPROTO_UDP;
      packet.tot_len = htons(static_cast<uint16_t>(header + payload));
      packet.saddr = htonl(static_cast<uint32_t>(kFirstV4.low()));
      packet.daddr = htonl(static_cast<uint32_t>(to.low()));
      SetSum(frame);
    } else {
      ip6_hdr& packet = frame.v6();
      packet.ip6_vfc = 0x60;
      packet.ip6_hlim = 64;
      packet.ip6_nxt = IPPROTO_UDP;
      packet.ip6_plen = htons(payload);
      Write(kFirstV6, packet.ip6_src);
      Write(to, packet.ip6_dst);
    }
    auto& udp = frame.At<udphdr>(ETH_HLEN + header);
    udp.source = htons(1000);
    udp.dest = htons(2000);
    udp.len = htons(payload);
    udp.check = v4 ? 0 : 0xFFFF;  // Nobody takes it for its own.
    std::copy(kMarker.begin(), kMarker.end(), &frame.At<char>(ETH_HLEN + header + sizeof(udphdr)));
    return frame;
  }

  void Send(const Frame& frame, int times) {
    const absl::Status status = one_->netns.netns().Run([&] {
      const os::UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
      sockaddr_ll to{};
      to.sll_family = AF_PACKET;
      to.sll_ifindex = static_cast<int>(::if_nametoindex("eth0"));
      for (int i = 0; i < times; ++i) {
        EXPECT_EQ(::sendto(fd.get(), frame.data(), frame.size(), 0,
                           reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
                  static_cast<ssize_t>(frame.size()));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
  }

  // To a host beyond the fabric, to a fast pod here, in both families.
  void NothingArrives(const std::string& kind, const std::function<void(Frame&)>& spoil,
                      bool v4 = true, bool v6 = true) {
    for (const ip::Address& to : {kFabricV4, kSecondV4, kFabricV6, kSecondV6}) {
      if (!(to.is_v4() ? v4 : v6)) continue;
      SCOPED_TRACE(kind + " to " + to.ToString());
      Frame frame = Packet(to);
      spoil(frame);
      Send(frame, kFrames);
      EXPECT_EQ(fabric_->Hear().frames, 0);
      EXPECT_EQ(neighbour_->Hear().frames, 0);
      EXPECT_EQ(CountsOf(one_->id), FastCounts());
      EXPECT_EQ(CountsOf(two_->id), FastCounts());
    }
  }

  // It arrives, but by routing, which connection tracking looks at.
  void GoesTheOrdinaryWay(const std::string& kind, const ip::Address& to,
                          const std::function<void(Frame&)>& change) {
    SCOPED_TRACE(kind);
    Frame frame = Packet(to);
    change(frame);
    Send(frame, 3);
    EXPECT_EQ(fabric_->Hear().frames, 3);
    EXPECT_EQ(CountsOf(one_->id), FastCounts());
  }

  std::unique_ptr<Listener> fabric_;
  std::unique_ptr<Listener> neighbour_;

 private:
  static void Write(const ip::Address& address, in6_addr& to) {
    for (size_t i = 0; i < 8; ++i) {
      to.s6_addr[i] = static_cast<uint8_t>(address.high() >> (56 - 8 * i));
      to.s6_addr[8 + i] = static_cast<uint8_t>(address.low() >> (56 - 8 * i));
    }
  }

  void FillEthernet(Frame& frame, uint16_t protocol) {
    const auto node = netlink::DumpLinks(node_->socket(), one_->pod.host_link).value();
    const auto pod = netlink::DumpLinks(one_->netns.socket(), "eth0").value();
    ASSERT_FALSE(node.empty() || pod.empty());
    const auto& to = node.front().mac.octets;
    const auto& from = pod.front().mac.octets;
    std::copy(to.begin(), to.end(), frame.ethernet().h_dest);
    std::copy(from.begin(), from.end(), frame.ethernet().h_source);
    frame.ethernet().h_proto = htons(protocol);
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
  NothingArrives("tag 4094, priority 7", [](Frame& frame) { frame.Tag(0xEFFE); });
  NothingArrives("two tags", [](Frame& frame) {
    frame.Tag(100);
    frame.Tag(200);
  });
}

// The kernel takes a tag of VLAN 0 off, and routes the packet.
TEST_F(HostileFrames, APriorityIsTakenOff) {
  for (const ip::Address& to : {kFabricV4, kFabricV6}) {
    SCOPED_TRACE(to.ToString());
    Frame frame = Packet(to);
    frame.Tag(0xE000);
    Send(frame, 3);
    const Listener::Heard heard = fabric_->Hear();
    EXPECT_EQ(heard.frames, 3);
    EXPECT_EQ(heard.tagged, 0);
    EXPECT_EQ(CountsOf(one_->id), FastCounts());
  }
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
