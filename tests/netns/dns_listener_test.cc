// The DNS listener against a real kernel: a host, a node and a pod that send each other datagrams.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "fmt/core.h"
#include "lib/netns/netns.h"
#include "netagent/dns/packet_dns_listener.h"
#include "netagent/dns/testing/dns_listener_contract.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {
namespace {

constexpr uint16_t kClientPort = 40'000;

void Shell(const std::string& command) {
  EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(cert-env33-c): fixed text.
}

// A socket's address of either family.
struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;

  Endpoint(const ip::Address& address, uint16_t port) {
    const std::string bytes = address.ToBytes();
    if (address.is_v4()) {
      auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
      *v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
      bytes.copy(reinterpret_cast<char*>(&v4->sin_addr), bytes.size());
      size = sizeof(*v4);
    } else {
      auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(port);
      bytes.copy(reinterpret_cast<char*>(&v6->sin6_addr), bytes.size());
      size = sizeof(*v6);
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// A datagram socket of `netns`, bound; receiving gives up after a while.
os::UniqueFd Bound(const netns::Netns& netns, const ip::Address& address, uint16_t port) {
  os::UniqueFd fd;
  const absl::Status status = netns.Run([&] {
    const int family = address.is_v4() ? AF_INET : AF_INET6;
    fd = os::UniqueFd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const Endpoint local(address, port);
    EXPECT_EQ(::bind(fd.get(), local.get(), local.size), 0) << address.ToString();
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  return fd;
}

class KernelWorld final : public DnsListenerWorld {
 public:
  static std::unique_ptr<KernelWorld> Make() {
    auto node = testing_support::FreshNetns::Enter();
    if (node == nullptr) return nullptr;
    return std::unique_ptr<KernelWorld>(new KernelWorld(std::move(node)));
  }

  const netns::Netns& host() const { return *host_; }
  const netns::Netns& pod() const { return *pod_; }

  DnsListener& listener() override { return listener_; }
  void Send(Way way, const ip::Address& source, const std::string& text, uint16_t port) override {
    const netns::Netns& sender = way == Way::kToNode ? *host_ : way == Way::kToPod ? *node_ : *pod_;
    const bool v4 = source.is_v4();
    ip::Address target = v4 ? kNode4 : kNode6;
    if (way == Way::kToPod) target = v4 ? kPod4 : kPod6;
    const os::UniqueFd fd = Bound(sender, source, port);
    const Endpoint to(target, kClientPort);
    EXPECT_EQ(::sendto(fd.get(), text.data(), text.size(), 0, to.get(), to.size),
              static_cast<ssize_t>(text.size()));
  }

 private:
  static constexpr ip::Address kNode4 = ip::Address::V4(0x0A000104);  // 10.0.1.4
  static constexpr ip::Address kNode6 = ip::Address::V6(0xFD00'0000'0000'0001, 4);

  explicit KernelWorld(std::unique_ptr<testing_support::FreshNetns> fresh)
      : fresh_(std::move(fresh)) {
    node_ = std::make_unique<netns::Netns>(netns::Netns::Current().value());
    const os::UniqueFd host = testing_support::NewNetns();
    host_ = std::make_unique<netns::Netns>(netns::Netns::FromDescriptor(host.get()).value());
    const os::UniqueFd pod = testing_support::NewNetns();
    pod_ = std::make_unique<netns::Netns>(netns::Netns::FromDescriptor(pod.get()).value());
    Shell(
        "ip link set lo up && ip addr add 10.96.0.10/32 dev lo && ip addr add fd96::a/128 dev lo");
    AddLink("nic0", *host_, "10.0.1", "fd00:0:0:1::");
    AddLink("spk0123456789ab", *pod_, "10.0.2", "fd00:0:0:2::");
    RunIn(*host_,
          "ip addr add 168.63.129.16/32 dev lo && ip addr add 168.63.129.17/32 dev lo && "
          "ip addr add fd53::1/128 dev lo && ip addr add fd53::2/128 dev lo");
    // The loop lasts until links have their carrier, and neighbours know each other.
    for (const char* there : {"10.0.1.7", "10.0.2.7", "fd00:0:0:1::7", "fd00:0:0:2::7"}) {
      Shell(fmt::format("ping -n -q -c 1 -i 0.2 -w 10 {} > /dev/null", there));
    }
  }

  // A link to `other`, with address 4 here and 7 there, which has its default routes by it.
  static void AddLink(const std::string& name, const netns::Netns& other, const std::string& v4,
                      const std::string& v6) {
    Shell(
        fmt::format("ip link add {0} type veth peer name eth0 netns /proc/{1}/fd/{2} && "
                    "ip addr add {3}.4/24 dev {0} && ip addr add {4}4/64 dev {0} nodad && "
                    "ip link set {0} up",
                    name, ::getpid(), other.fd(), v4, v6));
    RunIn(other, fmt::format("ip addr add {0}.7/24 dev eth0 && ip addr add {1}7/64 dev eth0 nodad "
                             "&& ip link set lo up && ip link set eth0 up && "
                             "ip route add default via {0}.4 && ip route add default via {1}4",
                             v4, v6));
  }
  static void RunIn(const netns::Netns& netns, const std::string& command) {
    const absl::Status status = netns.Run([&] {
      Shell(command);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }

  std::unique_ptr<testing_support::FreshNetns> fresh_;
  std::unique_ptr<netns::Netns> node_;
  std::unique_ptr<netns::Netns> host_;
  std::unique_ptr<netns::Netns> pod_;
  PacketDnsListener listener_;
};

INSTANTIATE_TEST_SUITE_P(Kernel, DnsListenerContract,
                         testing::Values(DnsListenerWorldFactory{"Kernel", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

class ClusterDnsTest : public DnsListenerContract {};

// A Service's address is translated on the way there, and back only when the answer is on the pod's
// link: on its way in it has the server's own address, which nobody believes.
TEST_P(ClusterDnsTest, IsHeardByItsServiceAddress) {
  const auto& world = static_cast<const KernelWorld&>(*world_);
  constexpr ip::Address kService = ip::Address::V4(0x0A600009);  // 10.96.0.9, of no device.
  Shell(
      "echo 1 > /proc/sys/net/ipv4/ip_forward && nft 'table ip t { chain c { type nat hook "
      "prerouting priority dstnat; ip daddr 10.96.0.9 udp dport 53 dnat to 168.63.129.16; }; }' && "
      "ip route add 168.63.129.16 via 10.0.1.7");
  Open({kService});
  const os::UniqueFd server = Bound(world.host(), World::kHost4, 53);
  const os::UniqueFd client = Bound(world.pod(), World::kPod4, kClientPort);
  const Endpoint service(kService, 53);
  ASSERT_EQ(::sendto(client.get(), "ask", 3, 0, service.get(), service.size), 3);
  char buffer[16];
  sockaddr_storage from{};
  socklen_t size = sizeof(from);
  auto* const asker = reinterpret_cast<sockaddr*>(&from);
  ASSERT_EQ(::recvfrom(server.get(), buffer, sizeof(buffer), 0, asker, &size), 3);
  for (const std::string text : {"answer", "end"}) {
    ASSERT_EQ(::sendto(server.get(), text.data(), text.size(), 0, asker, size),
              static_cast<ssize_t>(text.size()));
  }
  EXPECT_THAT(HearUntilEnd(), testing::ElementsAre(testing::Pair(kService, "answer")));
}

INSTANTIATE_TEST_SUITE_P(Kernel, ClusterDnsTest,
                         testing::Values(DnsListenerWorldFactory{"Kernel", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent
