// What the server knows of one node, as values. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/core/lease_state.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

// A node is its name and its VM: a new VM under an old name is another node.
struct NodeKey {
  std::string name;
  std::string vm_id;

  auto operator<=>(const NodeKey&) const = default;
};

// Who an address is lent to: the attachment, and the pod for people to read.
struct Lessee {
  std::string container_id;
  std::string ifname;
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;

  bool operator==(const Lessee&) const = default;
};

// One address that is on a node's NIC, or on the way there or back.
struct HeldAddress {
  std::string pool;
  std::string configuration;  // Name of the IP configuration on the NIC.
  LeaseState state = LeaseState::kAttaching;
  Use use = Use::kIdle;
  absl::Time since;              // When it came into this state or use.
  uint64_t generation = 0;       // Of the last lending; stays after its end, as the fence.
  std::optional<Lessee> lessee;  // Exactly when lent.

  bool operator==(const HeldAddress&) const = default;
};

struct NodeRecord {
  NodeKey key;
  std::string boot_id;
  uint64_t session_epoch = 0;
  ip::MacAddress nic_mac;
  uint64_t next_configuration = 1;
  std::map<ip::Address, HeldAddress> addresses;

  bool operator==(const NodeRecord&) const = default;
};

// A lending as the agent tells it.
struct Lending {
  ip::Address address;
  uint64_t generation = 0;
  absl::Time since;
  Lessee lessee;

  bool operator==(const Lending&) const = default;
};

struct Hello {
  NodeKey key;
  std::string boot_id;
  ip::MacAddress nic_mac;
  std::vector<Lending> lent;
  std::vector<ip::Address> cooling;
  std::string agent_version;
};

struct Release {
  ip::Address address;
  uint64_t generation = 0;
};

struct LendingReport {
  uint64_t sequence = 0;
  std::vector<Lending> lent;
  std::vector<Release> released;
  std::vector<ip::Address> cooled;
};

// How many addresses of a node are in which state.
struct AddressCounts {
  uint32_t attaching = 0;
  uint32_t idle = 0;
  uint32_t lent = 0;
  uint32_t cooling = 0;
  uint32_t detaching = 0;

  void Add(const HeldAddress& held);
  uint32_t attached() const { return idle + lent + cooling; }
  uint32_t total() const { return attaching + attached() + detaching; }
  bool operator==(const AddressCounts&) const = default;
};

AddressCounts CountAddresses(const NodeRecord& record);
// Of one family only.
AddressCounts CountAddresses(const NodeRecord& record, ip::Family family);

}  // namespace spoke::ipam
