// The beginning of a session: who the node is and what it has, and what the server answers. Values
// and their codec. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_api/assignments.h"

namespace spoke::v1 {
class Hello;
class Welcome;
}  // namespace spoke::v1

namespace spoke::node_api {

// The identity of a node.
struct NodeIdentity {
  std::string node_name;
  std::string vm_id;    // The cloud's id: a new VM under an old name is a new node.
  std::string boot_id;  // The id changes with each boot.
  std::string agent_version;
  std::map<std::string, std::string> labels;  // The labels that pools and policy choose nodes by.
  std::string vnet;                           // The virtual network; empty: unknown.
  // The name that the cloud's own API has for the VM, in lower case, and the subnets of its NIC;
  // empty: not asked.
  std::string instance = {};
  std::vector<ip::Prefix> subnets = {};

  bool operator==(const NodeIdentity&) const = default;
};

// The network device of the node that carries its addresses.
struct Nic {
  std::string name;
  ip::MacAddress mac;
  uint32_t mtu = 0;  // The MTU in bytes.
  std::vector<ip::Address> addresses;

  bool operator==(const Nic&) const = default;
};

// The first message of an agent, and only the first.
struct Hello {
  NodeIdentity node;
  Nic nic;
  std::vector<Assignment> in_use;     // All that is assigned now.
  std::vector<ip::Address> cooldown;  // All that is in cooldown now.
  uint64_t policy_version = 0;   // The version of the policy the agent keeps; 0: send all of it.
  std::string store_token = {};  // The last token that a server told; empty: none yet.

  bool operator==(const Hello&) const = default;
};

struct Welcome {
  uint64_t session_epoch = 0;  // The epoch rises with each session of the node.
  std::string server_version = {};
  std::string warning = {};  // The warning for the log of the agent; empty: nothing.
  // The time within which an agent with nothing to say comes back once this session is lost; zero:
  // the agent's own choice.
  absl::Duration reconnect_within = absl::ZeroDuration();

  bool operator==(const Welcome&) const = default;
};

inline constexpr int kMaxNics = 64;
inline constexpr int kMaxLabels = 64;   // The most labels; they go into records and indices.
inline constexpr int kMaxSubnets = 16;  // The most subnets; a NIC has one of each family.

void ToWire(const Hello& in, v1::Hello& out);
// Takes the first of several NICs; an instance is put into lower case. Errors: kInvalidArgument
// (a name, id, label, address or subnet that is none, no NIC, more entries than may be), naming the
// node, the field and the place in it.
absl::StatusOr<Hello> FromWire(const v1::Hello& in);

// The longest Welcome::reconnect_within that is taken; a longer one counts as this.
inline constexpr absl::Duration kMaxReconnectWithin = absl::Minutes(1);

// Warnings are cut. Milliseconds are what is said of times.
void ToWire(const Welcome& in, v1::Welcome& out);
Welcome FromWire(const v1::Welcome& in);

}  // namespace spoke::node_api
