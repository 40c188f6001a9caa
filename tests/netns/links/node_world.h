// A node in a namespace: forwarding on, one network device, a second namespace behind it that plays
// the fabric. There are also ways to look at what the kernel holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"
#include "lib/netns/netns.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/kernel_links.h"
#include "netagent/links/testing/link_acts.h"
#include "tests/netns/links/local_address.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {

// The addresses of the node.
inline constexpr ip::Address kNodeV4 = ip::Address::V4(0x0A000104);  // 10.0.1.4
inline constexpr ip::Address kNodeV6 = ip::Address::V6(0xFD00'0000'0000'0001, 4);
inline constexpr const char* kNodeDevice = "nic0";

// Returns everything a namespace holds that an attachment could leave behind, one line each,
// sorted: all links and their queues, all addresses, rules, routes of all tables and neighbours.
// The exception is multicast and link-local IPv6, since the kernel adds that in its own time.
std::vector<std::string> Snapshot(netlink::Socket& socket);

// Sends the batch and expects it to be done.
void MustSend(netlink::Socket& socket, const std::vector<netlink::Request>& batch);

// The world. As long as it lives the calling thread is in the node's namespace. The node has lo and
// nic0 (kNodeV4 and kNodeV6 on it; MTU 1500), both up, and the default routes lead to the fabric.
class NodeWorld {
 public:
  // Returns null where namespaces cannot be made.
  static std::unique_ptr<NodeWorld> Make();

  netlink::Socket& socket() { return *socket_; }
  const netns::Netns& node() const { return *node_; }
  const netns::Netns& fabric() const { return *fabric_; }
  Nic nic() const;

 private:
  NodeWorld() = default;
  void AddNic();

  std::unique_ptr<testing_support::FreshNetns> fresh_;
  std::unique_ptr<netns::Netns> node_;
  std::unique_ptr<netns::Netns> fabric_;
  std::unique_ptr<netlink::Socket> socket_;
};

// Each test has a node of its own. Where namespaces cannot be made it is skipped, and node_ is
// null.
class NodeWorldTest : public testing::Test {
 protected:
  void SetUp() override;

  std::unique_ptr<NodeWorld> node_;
};

// A node with the agent's links on it.
class NodeLinksTest : public NodeWorldTest {
 protected:
  void SetUp() override;

  std::unique_ptr<KernelLinks> links_;
};

// A pod's namespace, with lo up as the runtime's loopback plugin leaves it.
class PodNetns {
 public:
  PodNetns();

  int fd() const { return netns_->fd(); }
  const netns::Netns& netns() const { return *netns_; }
  netlink::Socket& socket() { return *socket_; }

 private:
  std::unique_ptr<netns::Netns> netns_;
  std::unique_ptr<netlink::Socket> socket_;
};

// A UDP socket in `netns`, bound to `address`, which takes packets by then, and a port of the
// kernel's choice. Both calls on it give up after two seconds.
class UdpSocket {
 public:
  // Makes a socket at `port`; 0: a port of the kernel's choice.
  UdpSocket(const netns::Netns& netns, const ip::Address& address, uint16_t port = 0);

  uint16_t port() const { return port_; }
  int fd() const { return fd_.get(); }
  // Limits the socket to this peer from now on; ICMP errors then come back from the next call.
  void Connect(const ip::Address& address, uint16_t port);
  // Returns 0 or errno.
  int Send(const std::string& text);
  // Returns what arrives, or "" with errno.
  std::string Receive();
  // Sends the next thing that arrives back to where it came from.
  void EchoOnce();

 private:
  ip::Address local_;
  os::UniqueFd fd_;
  uint16_t port_ = 0;
};

// Returns whether a packet of `bytes` goes from one namespace to the other and back.
bool CanTalk(UdpSocket& client, UdpSocket& server, const ip::Address& server_address, size_t bytes);

}  // namespace spoke::netagent
