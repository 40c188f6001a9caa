// Everything that exists in the simulated Azure: groups, networks, scale sets, instances, NICs.
// Pure; not thread-safe. Rules are elsewhere: this holds the state and its indexes.
//
// Made to hold 7,500 instances with dozens of addresses each: what a request names is found by its
// id, never by a search.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tests/azure-sim/knobs.h"
#include "tests/azure-sim/resources/spec.h"
#include "tests/azure-sim/resources/subnet_pool.h"

namespace spoke::azure_sim {

using Json = nlohmann::ordered_json;

// Properties that the simulator only carries. Shared, since thousands of instances have the same
// ones; null: none.
using Extra = std::shared_ptr<const Json>;

enum class State : uint8_t { kSucceeded, kCreating, kUpdating, kDeleting, kFailed, kCanceled };
std::string_view NameOf(State state);

struct Subnet {
  std::string id;
  std::string name;
  SubnetPool v4;
  std::optional<SubnetPool> v6;
  uint64_t version = 1;
  uint64_t serial = 0;
};

struct VirtualNetwork {
  std::string id;
  std::string name;
  std::string location;
  std::vector<std::string> prefixes;
  Extra tags;
  uint64_t version = 1;
  uint64_t serial = 0;
  std::map<std::string, std::unique_ptr<Subnet>> subnets;  // The subnets by name in lower case.
};

// An IP configuration as Compute's model has it: a name, but no address.
struct IpConfig {
  std::string name;
  Subnet* subnet = nullptr;
  ip::Family family = ip::Family::kV4;
  int block_length = 0;  // The length, 28 for a block; 0: one address.
  std::optional<bool> primary;
  std::optional<ip::Address> fixed;  // A static address; only NICs of their own have it.
  Extra extra;

  bool operator==(const IpConfig& other) const;
};

struct NicConfig {
  std::string name;
  bool primary = false;
  Extra extra;
  std::vector<IpConfig> ip_configs;

  bool operator==(const NicConfig& other) const;
};

using NetworkProfile = std::vector<NicConfig>;

// An IP configuration as the NIC has it: with its address.
struct NicEntry {
  std::string name;
  ip::Prefix range;
  bool primary = false;
  bool is_static = false;
  Subnet* subnet = nullptr;
  Extra extra;
  int block_length = 0;
};

struct Instance;
struct ResourceGroup;

struct Nic {
  std::string id;
  std::string name;
  std::string location;
  ip::MacAddress mac;
  uint64_t serial = 0;  // The number that its GUIDs are made of.
  uint64_t version = 1;
  bool primary = true;
  State state = State::kSucceeded;
  Extra extra;
  Extra tags;                     // The tags; only NICs of their own have them.
  std::vector<NicEntry> entries;  // The entries on the wire.
  // The entries that readers still see, until `shown_from`.
  std::vector<NicEntry> before;
  uint64_t version_before = 1;
  absl::Time shown_from = absl::InfinitePast();
  Instance* vm = nullptr;
  std::string operation;  // The operation that runs on it; empty: none.
  bool standalone = false;

  const std::vector<NicEntry>& EntriesAt(absl::Time now) const {
    return now < shown_from ? before : entries;
  }
  uint64_t VersionAt(absl::Time now) const { return now < shown_from ? version_before : version; }
  const NicEntry* FindEntry(std::string_view entry_name) const;
};

struct ScaleSet;

struct Instance {
  ScaleSet* set = nullptr;
  int64_t number = 0;
  std::string id;
  std::string name;  // The name, such as "pool_0".
  std::string computer_name;
  std::string node;  // The node in the attachments file.
  std::string vm_id;
  uint64_t etag = 1;
  State state = State::kSucceeded;
  bool latest_model = true;
  bool own_model = false;  // Whether its network profile was written for it alone.
  NetworkProfile profile;  // The profile; empty in a Flexible set.
  Extra properties;        // Others that were written: protectionPolicy and the like.
  Extra tags;              // The tags; only machines of Flexible sets have them.
  std::vector<Nic*> nics;
  std::vector<std::unique_ptr<Nic>> owned_nics;  // The NICs in a Uniform set.
  std::string operation;                         // The operation that runs on it; empty: none.
  absl::Time created;
  absl::Time listed_from = absl::InfinitePast();
  bool gone = false;         // Whether it is deleted; lists may show it a while longer.
  std::string foreign_pool;  // The pool that another writer put into its model.
  // The fabric's set, as the metadata service still has it.
  absl::Time imds_changed = absl::InfinitePast();
  std::vector<std::vector<NicEntry>> imds_before;
};

struct ScaleSet {
  ResourceGroup* group = nullptr;
  ScaleSetSpec spec;
  std::string id;
  std::string key;  // The id in lower case.
  std::string unique_id;
  uint64_t etag = 1;
  State state = State::kSucceeded;
  std::string sku;
  int64_t capacity = 0;
  bool overprovision = false;
  std::string upgrade_mode = "Manual";
  Extra tags;
  NetworkProfile model;
  std::string operation;
  std::map<int64_t, std::unique_ptr<Instance>> instances;
  int64_t next_instance = 0;
  absl::Time created;

  size_t Living() const;
};

struct ResourceGroup {
  std::string subscription;
  std::string name;
  std::string location;
  std::map<std::string, std::unique_ptr<ScaleSet>> sets;  // The sets, all by name in lower case.
  std::map<std::string, std::unique_ptr<VirtualNetwork>> networks;
  std::map<std::string, std::unique_ptr<Nic>> nics;  // The standalone NICs.
  std::map<std::string, Instance*> vms;              // The machines of Flexible sets.
};

class World {
 public:
  // Builds the world. `now` is when all of it was made. Errors: kInvalidArgument (a set names a
  // subnet that is not there, or has more addresses than it; ids that are none).
  static absl::StatusOr<std::unique_ptr<World>> Build(const SimSpec& spec, absl::Time now);

  bool HasSubscription(std::string_view subscription) const;
  // Finds a group by text in any case, as the others do; null: not there.
  ResourceGroup* FindGroup(std::string_view subscription, std::string_view name);
  ScaleSet* FindSet(std::string_view id);
  static Instance* FindInstance(ScaleSet& set, int64_t number);
  // Finds an instance by its id: of a scale set or of a virtual machine.
  Instance* FindInstance(std::string_view id);
  Subnet* FindSubnet(std::string_view id);

  std::map<std::string, std::map<std::string, std::unique_ptr<ResourceGroup>>>& groups() {
    return groups_;
  }
  const std::map<std::string, std::map<std::string, std::unique_ptr<ResourceGroup>>>& groups()
      const {
    return groups_;
  }

  ResourceGroup& AddGroup(std::string_view subscription, std::string_view name,
                          std::string_view location);
  // Errors: kInvalidArgument (the id is none, or there already).
  absl::StatusOr<Subnet*> AddSubnet(const SubnetSpec& spec);
  absl::StatusOr<ScaleSet*> AddSet(const ScaleSetSpec& spec, absl::Time now);
  // Adds one more, with the set's model. Errors: kResourceExhausted (the subnet is full: nothing
  // has been made); kInvalidArgument (a wanted address is taken).
  absl::StatusOr<Instance*> AddInstance(ScaleSet& set, absl::Time now);
  Nic& AddNic(ResourceGroup& group, std::string_view name, std::string_view location);
  // Removes the instance from lists, indexes and memory. Its addresses are the caller's to free.
  void Forget(Instance& instance);

  // Gives `config` an address of its subnet. nullopt: full, or the one it wants is taken.
  static std::optional<NicEntry> Assign(const IpConfig& config);
  static void Release(const NicEntry& entry);

  SeededRandom& random() { return random_; }
  uint64_t NextSerial() { return ++serial_; }
  // Returns a number that goes up with each change of what is on a wire.
  uint64_t wire_version() const { return wire_version_; }
  void WireChanged() { ++wire_version_; }

 private:
  explicit World(uint64_t seed) : random_(seed) {}
  NetworkProfile ModelOf(const ScaleSetSpec& spec, Subnet* subnet) const;
  absl::StatusOr<std::vector<NicEntry>> AssignAll(const NicConfig& config,
                                                  const std::optional<ip::Address>& wanted);
  std::unique_ptr<Nic> MakeNic(const Instance& instance, const NicConfig& config);

  std::map<std::string, std::map<std::string, std::unique_ptr<ResourceGroup>>> groups_;
  // The subnets by id in lower case; so are the next two.
  std::unordered_map<std::string, Subnet*> subnets_;
  std::unordered_map<std::string, ScaleSet*> sets_;
  std::unordered_map<std::string, Instance*> vms_;
  SeededRandom random_;
  uint64_t serial_ = 0;
  uint64_t wire_version_ = 0;
};

bool SameExtra(const Extra& a, const Extra& b);

// Returns a GUID that is a function of both.
std::string GuidOf(uint64_t serial, uint64_t version);

}  // namespace spoke::azure_sim
