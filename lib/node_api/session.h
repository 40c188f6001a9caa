// How a session begins: who the node is and what it has, and what the server answers. Values and
// their codec. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_api/assignments.h"

namespace spoke::v1 {
class Hello;
class Welcome;
}  // namespace spoke::v1

namespace spoke::node_api {

// Who a node is.
struct NodeIdentity {
  std::string node_name;
  std::string vm_id;    // The cloud's: a new VM under an old name is a new node.
  std::string boot_id;  // Changes with each boot.
  std::string agent_version;
  std::map<std::string, std::string> labels;  // What pools and policy choose nodes by.
  std::string vnet;                           // Empty: unknown.
  // What the cloud's own API calls the VM, in lower case, and the subnets of its NIC; empty: not
  // asked.
  std::string instance = {};
  std::vector<ip::Prefix> subnets = {};

  bool operator==(const NodeIdentity&) const = default;
};

// The network device of the node that carries its addresses.
struct Nic {
  std::string name;
  ip::MacAddress mac;
  uint32_t mtu = 0;  // Bytes.
  std::vector<ip::Address> addresses;

  bool operator==(const Nic&) const = default;
};

// The first message of an agent, and only the first.
struct Hello {
  NodeIdentity node;
  Nic nic;
  std::vector<Assignment> in_use;     // All that is assigned now,
  std::vector<ip::Address> cooldown;  // and is in cooldown now.
  uint64_t policy_version = 0;        // Of the policy the agent keeps; 0: send all of it.
  std::string store_token = {};       // The last that a server told; empty: none yet.

  bool operator==(const Hello&) const = default;
};

struct Welcome {
  uint64_t session_epoch = 0;  // Rises with each session of the node.
  std::string server_version = {};
  std::string warning = {};  // For the log of the agent; empty: nothing.

  bool operator==(const Welcome&) const = default;
};

inline constexpr int kMaxNics = 64;
inline constexpr int kMaxLabels = 64;   // They go into records and indices.
inline constexpr int kMaxSubnets = 16;  // A NIC has one of each family.

void ToWire(const Hello& in, v1::Hello& out);
// Of several NICs the first is taken; an instance is put into lower case. Errors: kInvalidArgument
// (a name, id, label, address or subnet that is none, no NIC, more entries than may be), naming the
// node, the field and the place in it.
absl::StatusOr<Hello> FromWire(const v1::Hello& in);

// Warnings are cut.
void ToWire(const Welcome& in, v1::Welcome& out);
Welcome FromWire(const v1::Welcome& in);

}  // namespace spoke::node_api
