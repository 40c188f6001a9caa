// What the server knows of one node, as values. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "ipam-server/ledger/address_state.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_api/session.h"

namespace spoke::ipam {

// A node is its name and its VM: a new VM under an old name is another node.
struct NodeKey {
  std::string name;
  std::string vm_id;

  auto operator<=>(const NodeKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H hash, const NodeKey& key) {
    return H::combine(std::move(hash), key.name, key.vm_id);
  }
};

NodeKey KeyOf(const node_api::Hello& hello);

// One address of an IP configuration, and what the agent does with it.
struct Slot {
  Use use = Use::kAvailable;
  uint64_t generation = 0;  // The last assignment's; stays after its end, as the fence.
  absl::Time since;         // When it came into this use.
  // The holder, exactly when assigned. Shared, since it never changes and history holds it too.
  std::shared_ptr<const node_api::Lessee> lessee;

  bool operator==(const Slot& other) const;
};

// One IP configuration that is on a node's NIC, or on the way there or back: a single address, or a
// block.
struct Configuration {
  ip::Prefix range;
  std::string pool;
  std::string name;  // The name on the NIC.
  AddressState state = AddressState::kAttaching;
  absl::Time since;                    // When it came into this state.
  absl::Time denied_until;             // The agent would not give it up: not asked before.
  absl::InlinedVector<Slot, 1> slots;  // One slot an address, in order.

  Configuration() = default;
  Configuration(const ip::Prefix& range_of, std::string pool_of, std::string name_of,
                absl::Time now);

  Slot& At(const ip::Address& address);
  const Slot& At(const ip::Address& address) const;
  ip::Address AddressAt(size_t slot) const { return ip::Advance(range.base(), slot); }
  // Returns whether nothing is in use or in cooldown: its agent could give it up.
  bool IsAvailable() const;
  // When the last of its slots became available.
  absl::Time AvailableSince() const;

  bool operator==(const Configuration&) const = default;
};

// One named entry on a NIC, as a cloud tells it.
struct IpConfiguration {
  std::string name;
  ip::Prefix range;  // One address, or a block.

  auto operator<=>(const IpConfiguration&) const = default;
};

// An entry whose address the cloud chooses, and has not told yet, or told one that cannot be used
// (yet).
struct WantedEntry {
  std::string pool;
  ip::Family family = ip::Family::kV4;
  int prefix_length = 32;
  absl::Time since;
  std::optional<ip::Prefix> given = {};  // What it chose; then `problem` says why that is no use.
  std::string problem = {};
  bool given_back = false;  // The cloud is asked to take `given` off the NIC.

  uint64_t size() const;
  bool operator==(const WantedEntry&) const = default;
};

enum class NodeMode : uint8_t {
  kActive,
  kDraining,  // Gets nothing more, and gives back what is available.
  kFrozen,    // Nothing is attached or taken back.
  kRetired,   // Another VM has its name now; its addresses go once the cloud says it is gone.
};
std::string_view NameOf(NodeMode mode);

struct NodeRecord {
  NodeKey key;
  std::string boot_id;
  uint64_t session_epoch = 0;
  ip::MacAddress nic_mac;
  uint64_t next_configuration = 1;
  NodeMode mode = NodeMode::kActive;
  std::map<std::string, std::string> labels;
  std::string vnet;
  std::map<ip::Address, Configuration> configurations;  // Keyed by first address.
  // The units off this node's NIC since then, and in cooldown: no node may have them yet.
  std::map<ip::Prefix, absl::Time> released;

  // --- Only where the cloud chooses addresses. ---
  std::string instance;             // The cloud's own name of the VM, in lower case.
  std::vector<ip::Prefix> subnets;  // Its NIC's; empty: not known.
  bool nic_read = false;            // The cloud has said what the NIC held before we changed it.
  std::map<std::string, WantedEntry> wanted;  // Keyed by name.

  // The configuration that holds `address`, or nullptr.
  const Configuration* Holding(const ip::Address& address) const;
  Configuration* Holding(const ip::Address& address);

  bool operator==(const NodeRecord&) const = default;
};

// How many addresses are in which state.
struct AddressCounts {
  uint64_t attaching = 0;
  uint64_t available = 0;
  uint64_t in_use = 0;
  uint64_t cooldown = 0;
  uint64_t detaching = 0;

  void Add(const Configuration& configuration);
  void Add(const WantedEntry& wanted) { attaching += wanted.size(); }
  AddressCounts& operator+=(const AddressCounts& other);
  AddressCounts& operator-=(const AddressCounts& other);
  uint64_t attached() const { return available + in_use + cooldown; }
  uint64_t used() const { return in_use + cooldown; }
  uint64_t staying() const { return attaching + attached(); }
  uint64_t total() const { return staying() + detaching; }
  bool operator==(const AddressCounts&) const = default;
};

AddressCounts CountAddresses(const NodeRecord& record);
AddressCounts CountAddresses(const Configuration& configuration);

}  // namespace spoke::ipam
