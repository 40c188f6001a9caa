#include "tests/netns/egress/egress_world.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "fmt/core.h"
#include "gtest/gtest.h"
#include "lib/base/check.h"
#include "lib/ip/socket_address.h"
#include "lib/policy/testing/blocks.h"
#include "tests/netns/links/local_address.h"

namespace spoke::netagent {
namespace {

constexpr size_t kGateways = 2;
// Long enough for a packet between namespaces on a busy machine; what must not arrive costs a test
// that long.
constexpr int kPatienceMs = 400;

ip::Address A(const char* text) { return ip::Address::Parse(text).value(); }

// Links made from now on can be used at once: no waiting for duplicates of their own addresses.
void WithoutDuplicateDetection(const netns::Netns& netns) {
  const absl::Status status = netns.Run([] {
    for (const char* which : {"all", "default"}) {
      std::ofstream(fmt::format("/proc/sys/net/ipv6/conf/{}/accept_dad", which)) << "0\n";
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

std::unique_ptr<netns::Netns> New() {
  const os::UniqueFd fd = testing_support::NewNetns();
  CHECK(fd.valid(), "a test makes a namespace");
  auto netns = std::make_unique<netns::Netns>(netns::Netns::FromDescriptor(fd.get()).value());
  Ip(*netns, "link set lo up");
  WithoutDuplicateDetection(*netns);
  return netns;
}

// Returns a path by which other processes can open it.
std::string PathOf(const netns::Netns& netns) {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), netns.fd());
}

std::unique_ptr<nft::Connection> OpenTables(const netns::Netns& netns) {
  std::unique_ptr<nft::Connection> connection;
  const absl::Status status = netns.Run([&] {
    connection = std::make_unique<nft::Connection>(nft::Connection::Open().value());
    return absl::OkStatus();
  });
  CHECK(status.ok(), "a test opens its namespace's tables");
  return connection;
}

void Forwarding(const netns::Netns& netns) {
  const absl::Status status = netns.Run([] {
    for (const char* path :
         {"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"}) {
      std::ofstream(path) << "1\n";
    }
    // A gateway sends packets back out of the device they came by.
    std::ofstream("/proc/sys/net/ipv4/conf/all/send_redirects") << "0\n";
    std::ofstream("/proc/sys/net/ipv4/conf/default/send_redirects") << "0\n";
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

os::UniqueFd BoundSocket(const netns::Netns& netns, const ip::Address& address, uint16_t port) {
  os::UniqueFd fd;
  const absl::Status status = netns.Run([&] {
    fd = os::UniqueFd(::socket(address.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  const timeval timeout{.tv_sec = 0, .tv_usec = kPatienceMs * 1000};
  EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
  ip::SocketAddress here = ip::ToSocketAddress(address, port);
  EXPECT_EQ(::bind(fd.get(), here.get(), here.size), 0)
      << address.ToString() << ": " << std::strerror(errno);
  if (!address.is_v4()) AwaitLocal(netns, address);
  return fd;
}

}  // namespace

const WorldAddresses& AddressesOf(ip::Family family) {
  static const auto* const v4 = new WorldAddresses{.node = A("10.1.255.1"),
                                                   .pod = A("10.1.0.5"),
                                                   .gateways = {A("10.1.0.100"), A("10.1.0.101")},
                                                   .internet = A("8.8.8.8"),
                                                   .internet_too = A("9.9.9.9"),
                                                   .peer = A("10.1.9.9"),
                                                   .hub = A("10.2.9.9")};
  static const auto* const v6 = new WorldAddresses{.node = A("fd00:1::ff:1"),
                                                   .pod = A("fd00:1::5"),
                                                   .gateways = {A("fd00:1::100"), A("fd00:1::101")},
                                                   .internet = A("2600::8"),
                                                   .internet_too = A("2600::9"),
                                                   .peer = A("fd00:1::9"),
                                                   .hub = A("fd00:2::9")};
  return family == ip::Family::kV4 ? *v4 : *v6;
}

void Ip(const netns::Netns& netns, const std::string& command) {
  const absl::Status status = netns.Run([&] {
    // These are a test's own words, no input of anybody's.
    const int result = std::system(("ip " + command).c_str());  // NOLINT(cert-env33-c)
    EXPECT_EQ(result, 0) << "ip " << command;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

UdpServer::UdpServer(const netns::Netns& netns, const ip::Address& address, uint16_t port)
    : address_(address), fd_(BoundSocket(netns, address, port)) {}

std::string UdpServer::AnswerOne() {
  char text[64];
  ip::SocketAddress from;
  const ssize_t got = ::recvfrom(fd_.get(), text, sizeof(text), 0, from.get(), &from.size);
  if (got < 0) return "";
  EXPECT_EQ(::sendto(fd_.get(), text, static_cast<size_t>(got), 0, from.get(), from.size), got);
  return ip::FromSocketAddress(from).value().first.ToString();
}

UdpFlow::UdpFlow(const netns::Netns& netns, const ip::Address& from, const ip::Address& to,
                 uint16_t port)
    : fd_(BoundSocket(netns, from, 0)) {
  const ip::SocketAddress there = ip::ToSocketAddress(to, port);
  EXPECT_EQ(::connect(fd_.get(), there.get(), there.size), 0) << std::strerror(errno);
}

bool UdpFlow::Send() { return ::send(fd_.get(), "ask", 3, 0) == 3; }

bool UdpFlow::Receive() {
  char text[64];
  return ::recv(fd_.get(), text, sizeof(text), 0) == 3;
}

std::string Ask(UdpFlow& flow, UdpServer& server) {
  if (!flow.Send()) return "nothing";
  const std::string from = server.AnswerOne();
  if (from.empty()) return "nothing";
  return flow.Receive() ? from : "no answer";
}

std::unique_ptr<EgressWorld> EgressWorld::Make(EgressNetwork kind) {
  auto world = std::unique_ptr<EgressWorld>(new EgressWorld());
  world->fresh_ = testing_support::FreshNetns::Enter();
  if (world->fresh_ == nullptr) return nullptr;
  world->node_ = std::make_unique<netns::Netns>(netns::Netns::Current().value());
  world->network_ = New();
  Ip(*world->node_, "link set lo up");
  WithoutDuplicateDetection(*world->node_);
  Forwarding(*world->node_);
  for (size_t i = 0; i < kGateways; ++i) {
    world->gateways_.push_back(New());
    Forwarding(*world->gateways_.back());
  }
  world->AddLinks(kind);
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    if (kind == EgressNetwork::kOneLink) world->AddOneLink(family);
    if (kind == EgressNetwork::kRouted) world->AddRouter(family);
  }
  world->AddPod();
  world->tables_ = OpenTables(*world->node_);
  for (const auto& gateway : world->gateways_) {
    world->gateway_tables_.push_back(OpenTables(*gateway));
  }
  return world;
}

void EgressWorld::AddLinks(EgressNetwork kind) {
  const netns::Netns& network = *network_;
  if (kind == EgressNetwork::kOneLink) {
    Ip(network, "link add br0 type bridge");
    Ip(network, "link set br0 up");
  } else {
    Forwarding(network);
    outside_ = New();
    Ip(network,
       fmt::format("link add outside type veth peer name {} netns {}", kNic, PathOf(*outside_)));
    Ip(network, "link set outside up");
    Ip(*outside_, fmt::format("link set {} up", kNic));
  }
  for (size_t i = 0; i <= kGateways; ++i) {
    const netns::Netns& netns = Host(i);
    Ip(network,
       fmt::format("link add port{} type veth peer name {} netns {}", i, kNic, PathOf(netns)));
    const char* master = kind == EgressNetwork::kOneLink ? " master br0" : "";
    Ip(network, fmt::format("link set port{}{} up", i, master));
    Ip(netns, fmt::format("link set {} up", kNic));
  }
}

void EgressWorld::AddOneLink(ip::Family family) {
  const netns::Netns& network = *network_;
  const WorldAddresses& all = AddressesOf(family);
  const bool v4 = family == ip::Family::kV4;
  const int bits = v4 ? 32 : 128;
  const std::string nodad = v4 ? "" : " nodad";
  const std::string route = v4 ? "route" : "-6 route";
  for (const ip::Address& server : {all.internet, all.internet_too, all.peer, all.hub}) {
    Ip(network, fmt::format("addr add {}/{} dev br0{}", server.ToString(), bits, nodad));
  }
  for (size_t i = 0; i <= kGateways; ++i) {
    const netns::Netns& netns = Host(i);
    const ip::Address own = i == 0 ? all.node : all.gateways[i - 1];
    Ip(netns, fmt::format("addr add {}/{} dev {}{}", own.ToString(), bits, kNic, nodad));
    Ip(netns, fmt::format("{} add default dev {}", route, kNic));
    Ip(network, fmt::format("{} add {}/{} dev br0", route, own.ToString(), bits));
    // The routes are where the fabric delivers the pod's address.
    if (i == 0) continue;
    Ip(netns, fmt::format("{} add {}/{} via {} dev {} onlink", route, all.pod.ToString(), bits,
                          all.node.ToString(), kNic));
  }
  Ip(network, fmt::format("{} add {}/{} via {} dev br0", route, all.pod.ToString(), bits,
                          all.node.ToString()));
}

void EgressWorld::AddRouter(ip::Family family) {
  const WorldAddresses& all = AddressesOf(family);
  const bool v4 = family == ip::Family::kV4;
  const int bits = v4 ? 32 : 128;
  const std::string nodad = v4 ? "" : " nodad";
  const std::string route = v4 ? "route" : "-6 route";
  const std::string router = v4 ? "10.1.255.254" : "fe80::77";
  const auto add = [&](const netns::Netns& host, const std::string& port,
                       const std::vector<ip::Address>& own) {
    Ip(*network_, fmt::format("addr add {}/{} dev {}{}", router, v4 ? 32 : 64, port, nodad));
    for (const ip::Address& address : own) {
      Ip(host, fmt::format("addr add {}/{} dev {}{}", address.ToString(), bits, kNic, nodad));
      Ip(*network_, fmt::format("{} add {}/{} dev {}", route, address.ToString(), bits, port));
    }
    Ip(host, fmt::format("{} add default via {} dev {} onlink", route, router, kNic));
  };
  for (size_t i = 0; i <= kGateways; ++i) {
    add(Host(i), fmt::format("port{}", i), {i == 0 ? all.node : all.gateways[i - 1]});
  }
  add(*outside_, "outside", {all.internet, all.internet_too, all.peer, all.hub});
  Ip(*network_, fmt::format("{} add {}/{} via {} dev port0 onlink", route, all.pod.ToString(), bits,
                            all.node.ToString()));
}

void EgressWorld::AddPod() {
  pod_ = New();
  Ip(*node_, fmt::format("link add {} type veth peer name eth0 netns {}", kPodLink, PathOf(*pod_)));
  Ip(*node_, fmt::format("link set {} up", kPodLink));
  Ip(*pod_, "link set eth0 up");
  const WorldAddresses& v4 = AddressesOf(ip::Family::kV4);
  const WorldAddresses& v6 = AddressesOf(ip::Family::kV6);
  Ip(*node_, "addr add 169.254.1.1/32 dev " + std::string(kPodLink));
  Ip(*node_, "addr add fe80::1/128 nodad dev " + std::string(kPodLink));
  Ip(*node_, fmt::format("route add {}/32 dev {}", v4.pod.ToString(), kPodLink));
  Ip(*node_, fmt::format("-6 route add {}/128 dev {}", v6.pod.ToString(), kPodLink));
  Ip(*pod_, fmt::format("addr add {}/32 dev eth0", v4.pod.ToString()));
  Ip(*pod_, fmt::format("addr add {}/128 nodad dev eth0", v6.pod.ToString()));
  Ip(*pod_, "route add default via 169.254.1.1 dev eth0 onlink");
  Ip(*pod_, "-6 route add default via fe80::1 dev eth0");
}

UdpFlow EgressWorld::Flow(const ip::Address& to) const {
  const ip::Family family = to.family();
  return {*pod_, AddressesOf(family).pod, to, kPort};
}

Policy NetworkPolicy() {
  Policy policy{.version = 1};
  Put(policy, "ClusterNetwork/main",
      policy::ClusterNetwork{.cluster = policy::Blocks({"10.1.0.0/16", "fd00:1::/32"}),
                             .hub = policy::Blocks({"10.2.0.0/16", "fd00:2::/32"}),
                             .peer_spoke = {},
                             .platform = {},
                             .storage = {},
                             .services = {}});
  return policy;
}

}  // namespace spoke::netagent
