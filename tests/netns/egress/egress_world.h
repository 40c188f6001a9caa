// A node with a pod, a network behind it that has servers, and gateways beside it, all in
// namespaces: to see where packets really go, and from which address they come.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/ip/address.h"
#include "lib/netns/netns.h"
#include "lib/nft/connection.h"
#include "lib/os/unique_fd.h"
#include "netagent/policy/policy_bundle.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {

// The addresses of the node, its pod, a gateway, and servers, by family.
struct WorldAddresses {
  ip::Address node;
  ip::Address pod;
  std::vector<ip::Address> gateways;
  ip::Address internet;  // A server outside the cluster, and another.
  ip::Address internet_too;
  ip::Address peer;  // A server inside the cluster.
  ip::Address hub;
};
const WorldAddresses& AddressesOf(ip::Family family);

template <typename T>
void Put(Policy& policy, const std::string& key, T value) {
  policy.entries[key] = {.key = key, .bytes = {}, .value = std::move(value)};
}

// A policy that says what the cluster and the hub are.
Policy NetworkPolicy();

// A UDP socket that answers all it gets, and says who asked.
class UdpServer {
 public:
  UdpServer(const netns::Netns& netns, const ip::Address& address, uint16_t port);
  // Answers one packet. Returns the address it came from, or "" when none came.
  std::string AnswerOne();

 private:
  ip::Address address_;
  os::UniqueFd fd_;
};

// A UDP flow: one socket, connected.
class UdpFlow {
 public:
  UdpFlow(const netns::Netns& netns, const ip::Address& from, const ip::Address& to, uint16_t port);
  bool Send();
  // Returns whether an answer came.
  bool Receive();

 private:
  os::UniqueFd fd_;
};

// Sends a packet there and back. Returns the address that the server saw, or "nothing" when it saw
// none, or "no answer" when that did not come back.
std::string Ask(UdpFlow& flow, UdpServer& server);

// The network between the node, the gateways and the servers.
enum class EgressNetwork : uint8_t {
  kOneLink,  // All are neighbours on one link.
  kRouted    // A router that looks at nothing but the destination, as a virtual network does.
};

// The world. As long as it lives the calling thread is in the node's namespace.
class EgressWorld {
 public:
  // Returns null where namespaces cannot be made.
  static std::unique_ptr<EgressWorld> Make(EgressNetwork kind = EgressNetwork::kOneLink);

  const netns::Netns& node() const { return *node_; }
  const netns::Netns& pod() const { return *pod_; }
  const netns::Netns& network() const { return *network_; }
  const netns::Netns& outside() const { return *outside_; }
  const netns::Netns& gateway(size_t i) const { return *gateways_.at(i); }

  nft::Connection& tables() { return *tables_; }
  nft::Connection& gateway_tables(size_t i) { return *gateway_tables_.at(i); }

  UdpServer Serve(const ip::Address& address) const {
    return {outside_ == nullptr ? *network_ : *outside_, address, kPort};
  }
  UdpFlow Flow(const ip::Address& to) const;

  static constexpr uint16_t kPort = 443;
  static constexpr const char* kPodLink = "spk0123456789ab";
  static constexpr const char* kNic = "eth0";

 private:
  EgressWorld() = default;
  void AddLinks(EgressNetwork kind);
  void AddOneLink(ip::Family family);
  void AddRouter(ip::Family family);
  void AddPod();
  // The namespaces of the node, and then of the gateways.
  const netns::Netns& Host(size_t i) const { return i == 0 ? *node_ : *gateways_.at(i - 1); }

  std::unique_ptr<testing_support::FreshNetns> fresh_;
  std::unique_ptr<netns::Netns> node_;
  std::unique_ptr<netns::Netns> pod_;
  std::unique_ptr<netns::Netns> network_;
  // The namespace where the servers are; none: in the network.
  std::unique_ptr<netns::Netns> outside_;
  std::vector<std::unique_ptr<netns::Netns>> gateways_;
  std::unique_ptr<nft::Connection> tables_;
  std::vector<std::unique_ptr<nft::Connection>> gateway_tables_;
};

// Runs a command of iproute2's in the namespace, and expects it to be done.
void Ip(const netns::Netns& netns, const std::string& command);

}  // namespace spoke::netagent
