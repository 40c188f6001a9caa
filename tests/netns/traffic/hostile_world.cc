#include "tests/netns/traffic/hostile_world.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/netlink/link.h"

namespace spoke::netagent {
namespace {

void Write(const ip::Address& address, in6_addr& to) {
  for (size_t i = 0; i < 8; ++i) {
    to.s6_addr[i] = static_cast<uint8_t>(address.high() >> (56 - 8 * i));
    to.s6_addr[8 + i] = static_cast<uint8_t>(address.low() >> (56 - 8 * i));
  }
}

}  // namespace

void SetSum(Frame& frame) {
  iphdr& header = frame.v4();
  header.check = 0;
  const auto* words = reinterpret_cast<const uint16_t*>(&header);
  uint32_t sum = 0;
  for (size_t i = 0; i < sizeof(header) / 2; ++i) sum += words[i];
  while (sum > 0xFFFF) sum = (sum & 0xFFFFU) + (sum >> 16U);
  header.check = static_cast<uint16_t>(~sum);
}

Listener::Listener(const netns::Netns& netns, const char* device) {
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

Listener::Heard Listener::Hear() {
  Heard heard;
  pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  while (::poll(&waiting, 1, 50) > 0) Take(heard);
  return heard;
}

void Listener::Take(Heard& heard) {
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

void HostileWorld::SetUp() {
  FastPathTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  fabric_ = std::make_unique<Listener>(node_->fabric(), "fabric");
  neighbour_ = std::make_unique<Listener>(two_->netns.netns(), "eth0");
}

Frame HostileWorld::Ethernet(uint16_t protocol, size_t payload) {
  Frame frame(ETH_HLEN + payload);
  const auto node = netlink::DumpLinks(node_->socket(), one_->pod.host_link).value();
  EXPECT_EQ(node.size(), 1U);
  if (node.empty()) return frame;
  const auto& to = node.front().mac.octets;
  const auto& from = one_->pod.pod_mac->octets;
  std::copy(to.begin(), to.end(), frame.ethernet().h_dest);
  std::copy(from.begin(), from.end(), frame.ethernet().h_source);
  frame.ethernet().h_proto = htons(protocol);
  return frame;
}

Frame HostileWorld::Packet(const ip::Address& to) {
  const bool v4 = to.is_v4();
  const size_t header = v4 ? sizeof(iphdr) : sizeof(ip6_hdr);
  const auto payload = static_cast<uint16_t>(sizeof(udphdr) + kMarker.size());
  Frame frame = Ethernet(v4 ? ETH_P_IP : ETH_P_IPV6, header + payload);
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

void HostileWorld::Send(const Frame& frame, int times) {
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

uint64_t HostileWorld::Refused(std::string_view reason) {
  const auto all = fast_->ReadRefused().value();
  for (const RefusedCount& refused : all) {
    if (refused.reason == reason) return refused.packets;
  }
  ADD_FAILURE() << reason;
  return 0;
}

void HostileWorld::ExpectNothingHeard() {
  EXPECT_EQ(fabric_->Hear().frames, 0);
  EXPECT_EQ(neighbour_->Hear().frames, 0);
  EXPECT_EQ(CountsOf(one_->id), FastCounts());
  EXPECT_EQ(CountsOf(two_->id), FastCounts());
}

}  // namespace spoke::netagent
