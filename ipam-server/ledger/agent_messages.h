// What the server tells an agent, as values. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/budget/budget_book.h"
#include "ipam-server/ledger/probe.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

struct Bundle;

// One IP configuration that the node shall have: an address or a block.
struct DesiredConfiguration {
  ip::Prefix range;
  std::string name;
  std::string pool;
  ip::MacAddress nic_mac;
  absl::Duration cooldown;  // Not to be assigned for this long.

  bool operator==(const DesiredConfiguration&) const = default;
};

struct PoolState {
  std::string name;
  std::string cidr;
  uint64_t usable = 0;
  uint64_t attached = 0;
  uint64_t free = 0;
  std::vector<std::string> namespaces;
  std::optional<ip::Address> unused = {};  // Given to no node, ever; nullopt: there is none.

  bool operator==(const PoolState&) const = default;
};

struct Welcome {
  uint64_t session_epoch = 0;
  std::string warning = {};  // For the log of the agent.

  bool operator==(const Welcome&) const = default;
};

struct DesiredState {
  uint64_t version = 0;
  bool full = false;
  std::vector<DesiredConfiguration> added;
  std::vector<ip::Prefix> removed;
  std::vector<PoolState> pools;
  std::string store_token = {};

  bool operator==(const DesiredState&) const = default;
};

struct ReportAck {
  uint64_t sequence = 0;

  bool operator==(const ReportAck&) const = default;
};

// Please give these up.
struct ReclaimRequest {
  uint64_t id = 0;
  std::vector<ip::Prefix> ranges;

  bool operator==(const ReclaimRequest&) const = default;
};

// The assignment is over, an operator says.
struct EndAssignment {
  ip::Address address;
  uint64_t generation = 0;
  std::string reason;

  bool operator==(const EndAssignment&) const = default;
};

struct InventoryRequest {
  uint64_t id = 0;

  bool operator==(const InventoryRequest&) const = default;
};

// How it stands with what its pods wait for.
struct Forecast {
  std::string reason;
  absl::Duration eta;  // From now; zero: unknown.

  bool operator==(const Forecast&) const = default;
};

// How did the last ADDs of this pod go?
struct AttachTracesRequest {
  uint64_t id = 0;
  std::string pod_namespace;
  std::string pod_name;

  bool operator==(const AttachTracesRequest&) const = default;
};

// The policy the node shall have, and the one it is known to have; nullptr: none that is known.
// Shared, as BundleHistory says.
struct PolicyUpdate {
  std::shared_ptr<const Bundle> from;
  std::shared_ptr<const Bundle> to;
  // How many of its connections the node may end by it, of a thousand; nullopt: all.
  std::optional<uint32_t> max_cut_permille = std::nullopt;

  bool operator==(const PolicyUpdate&) const = default;
};

// What would this policy end on the node? It is not put in force.
struct PolicyTrial {
  uint64_t id = 0;
  std::shared_ptr<const Bundle> policy;

  bool operator==(const PolicyTrial&) const = default;
};

using ToAgent = std::variant<Welcome, DesiredState, ReportAck, ReclaimRequest, InventoryRequest,
                             Forecast, AttachTracesRequest, ProbeRequest, BudgetGrants,
                             PolicyUpdate, EndAssignment, PolicyTrial>;

}  // namespace spoke::ipam
