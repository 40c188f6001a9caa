#include "tests/netns/links/node_world.h"

#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/core.h"
#include "lib/ip/socket_address.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/socket.h"
#include "netagent/node/node_setup.h"

namespace spoke::netagent {
namespace {

constexpr int32_t kLoopback = 1;
constexpr int32_t kNicIndex = 100;
constexpr int32_t kFabricIndex = 101;
constexpr uint32_t kNicMtu = 1500;
constexpr ip::MacAddress kNicMac{{2, 0, 0, 0, 0, 4}};
constexpr ip::MacAddress kFabricMac{{2, 0, 0, 0, 0, 1}};
constexpr ip::Address kFabricV4 = ip::Address::V4(0x0A000101);  // 10.0.1.1
constexpr ip::Address kFabricV6 = ip::Address::V6(0xFD00'0000'0000'0001, 1);

std::unique_ptr<netlink::Socket> OpenSocketIn(const netns::Netns& netns) {
  std::unique_ptr<netlink::Socket> socket;
  const absl::Status status = netns.Run([&socket] {
    socket = std::make_unique<netlink::Socket>(netlink::Socket::Open().value());
    return absl::OkStatus();
  });
  CHECK(status.ok(), "a test opens a socket in its namespace");
  return socket;
}

// Duplicate detection and router solicitation would change what the kernel holds while a test
// compares it.
netlink::LinkSettings WithoutLinkLocal() {
  return {.ipv4 = {}, .address_generation = uint8_t{IN6_ADDR_GEN_MODE_NONE}};
}

// What belongs to a link-local address comes when its duplicate detection is through.
bool IsLinkLocal(const ip::Address& address) {
  return !address.is_v4() && (address.high() >> 54U) == (0xFE80U >> 6U);
}

}  // namespace

std::vector<std::string> Snapshot(netlink::Socket& socket) {
  std::vector<std::string> lines;
  const std::vector<netlink::Link> links = netlink::DumpLinks(socket, "").value();
  lines.reserve(links.size());
  for (const netlink::Link& link : links) {
    lines.push_back(fmt::format("link {} {} {} mtu {} {}", link.index, link.name, link.kind,
                                link.mtu, link.up ? "up" : "down"));
  }
  const auto qdiscs = netlink::DumpQdiscs(socket, 0).value();
  for (const netlink::Qdisc& qdisc : qdiscs) {
    if (qdisc.handle == 0) continue;
    lines.push_back(fmt::format("qdisc {:x} {} link {}", qdisc.handle, qdisc.kind, qdisc.link));
  }
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const auto rules = netlink::DumpRules(socket, family, RTPROT_UNSPEC).value();
    for (const netlink::Rule& rule : rules) {
      lines.push_back(fmt::format("rule {} from {} table {}", rule.priority,
                                  rule.from ? rule.from->ToString() : "all", rule.table));
    }
    const auto routes = netlink::DumpAllRoutes(socket, family).value();
    const auto neighbours = netlink::DumpNeighbours(socket, family, 0).value();
    const auto addresses = netlink::DumpAddresses(socket, family, 0).value();
    for (const netlink::Route& route : routes) {
      if (IsLinkLocal(route.destination.base())) continue;
      lines.push_back(fmt::format("route {} table {} protocol {} type {} link {} metric {}",
                                  route.destination.ToString(), route.table, route.protocol,
                                  route.type, route.link, route.metric));
    }
    for (const netlink::Neighbour& neighbour : neighbours) {
      if (neighbour.state == NUD_NOARP || IsLinkLocal(neighbour.address)) continue;
      lines.push_back(fmt::format("neighbour {} link {} state {}", neighbour.address.ToString(),
                                  neighbour.link, neighbour.state));
    }
    for (const netlink::LinkAddress& address : addresses) {
      if (IsLinkLocal(address.address)) continue;
      lines.push_back(fmt::format("address {}/{} link {}", address.address.ToString(),
                                  address.prefix_length, address.link));
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

void MustSend(netlink::Socket& socket, const std::vector<netlink::Request>& batch) {
  const netlink::BatchResult result = netlink::SendBatch(socket, batch);
  ASSERT_TRUE(result.status.ok()) << result.status;
}

std::unique_ptr<NodeWorld> NodeWorld::Make() {
  auto world = std::unique_ptr<NodeWorld>(new NodeWorld());
  world->fresh_ = testing_support::FreshNetns::Enter();
  if (world->fresh_ == nullptr) return nullptr;
  world->node_ = std::make_unique<netns::Netns>(netns::Netns::Current().value());
  const os::UniqueFd fabric = testing_support::NewNetns();
  world->fabric_ =
      std::make_unique<netns::Netns>(netns::Netns::FromDescriptor(fabric.get()).value());
  world->socket_ = std::make_unique<netlink::Socket>(netlink::Socket::Open().value());
  EXPECT_TRUE(PrepareNode().failed.empty());
  world->AddNic();
  return world;
}

void NodeWorld::AddNic() {
  const auto fabric_socket = OpenSocketIn(*fabric_);
  MustSend(*fabric_socket,
           {netlink::SetLinkUp(kLoopback, true),
            netlink::CreateVeth({"fabric", kFabricIndex, kFabricMac},
                                {kNodeDevice, kNicIndex, kNicMac}, node_->fd(), kNicMtu),
            netlink::ConfigureLink(kFabricIndex, WithoutLinkLocal())});
  netlink::Route default_v4{.link = kNicIndex, .gateway = kFabricV4};
  netlink::Route default_v6{
      .destination = ip::Prefix::Of(kNodeV6, 0).value(), .link = kNicIndex, .gateway = kFabricV6};
  netlink::Route fabric_v4{
      .destination = ip::Prefix::Host(kFabricV4), .scope = RT_SCOPE_LINK, .link = kNicIndex};
  netlink::Route fabric_v6{.destination = ip::Prefix::Host(kFabricV6), .link = kNicIndex};
  MustSend(*socket_, {netlink::SetLinkUp(kLoopback, true),
                      netlink::ConfigureLink(kNicIndex, WithoutLinkLocal()),
                      netlink::SetLinkUp(kNicIndex, true), netlink::AddAddress(kNicIndex, kNodeV4),
                      netlink::AddAddress(kNicIndex, kNodeV6),
                      netlink::SetPermanentNeighbour(kNicIndex, kFabricV4, kFabricMac),
                      netlink::SetPermanentNeighbour(kNicIndex, kFabricV6, kFabricMac),
                      netlink::AddRoute(fabric_v4), netlink::AddRoute(fabric_v6),
                      netlink::AddRoute(default_v4), netlink::AddRoute(default_v6)});
  AwaitLocal(*socket_, kNodeV6);
}

Nic NodeWorld::nic() const { return {kNodeDevice, kNicMac, kNicMtu, {kNodeV4, kNodeV6}}; }

void NodeWorldTest::SetUp() {
  node_ = NodeWorld::Make();
  if (node_ != nullptr) return;
  // A skip must not pass for a success: scripts/test.sh sets the variable, so there this fails.
  ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
  GTEST_SKIP() << "cannot make network namespaces";
}

void NodeLinksTest::SetUp() {
  NodeWorldTest::SetUp();
  if (node_ != nullptr) links_ = KernelLinks::Create().value();
}

PodNetns::PodNetns() {
  const os::UniqueFd fd = testing_support::NewNetns();
  netns_ = std::make_unique<netns::Netns>(netns::Netns::FromDescriptor(fd.get()).value());
  socket_ = OpenSocketIn(*netns_);
  MustSend(*socket_, {netlink::SetLinkUp(kLoopback, true)});
}

UdpSocket::UdpSocket(const netns::Netns& netns, const ip::Address& address, uint16_t port)
    : local_(address) {
  const absl::Status status = netns.Run([this] {
    fd_ = os::UniqueFd(::socket(local_.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  const timeval timeout{.tv_sec = 2, .tv_usec = 0};
  EXPECT_EQ(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
  const int on = 1;  // Without this the kernel keeps most ICMP errors to itself.
  EXPECT_EQ(local_.is_v4() ? ::setsockopt(fd_.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof(on))
                           : ::setsockopt(fd_.get(), IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on)),
            0);
  ip::SocketAddress here = ip::ToSocketAddress(local_, port);
  EXPECT_EQ(::bind(fd_.get(), here.get(), here.size), 0) << std::strerror(errno);
  EXPECT_EQ(::getsockname(fd_.get(), here.get(), &here.size), 0);
  port_ = ip::FromSocketAddress(here).value().second;
  if (!local_.is_v4()) AwaitLocal(netns, local_);
}

void UdpSocket::Connect(const ip::Address& address, uint16_t port) {
  const ip::SocketAddress there = ip::ToSocketAddress(address, port);
  EXPECT_EQ(::connect(fd_.get(), there.get(), there.size), 0) << std::strerror(errno);
}

int UdpSocket::Send(const std::string& text) {
  return ::send(fd_.get(), text.data(), text.size(), 0) < 0 ? errno : 0;
}

std::string UdpSocket::Receive() {
  std::string text(65536, '\0');
  const ssize_t got = ::recv(fd_.get(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

void UdpSocket::EchoOnce() {
  std::string text(65536, '\0');
  ip::SocketAddress from;
  const ssize_t got = ::recvfrom(fd_.get(), text.data(), text.size(), 0, from.get(), &from.size);
  if (got < 0) return;
  EXPECT_EQ(::sendto(fd_.get(), text.data(), static_cast<size_t>(got), 0, from.get(), from.size),
            got)
      << std::strerror(errno);
}

bool CanTalk(UdpSocket& client, UdpSocket& server, const ip::Address& server_address,
             size_t bytes) {
  const std::string text(bytes, 'x');
  client.Connect(server_address, server.port());
  if (client.Send(text) != 0) return false;
  server.EchoOnce();
  return client.Receive() == text;
}

}  // namespace spoke::netagent
