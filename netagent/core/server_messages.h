// What agent and server tell each other, as values. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/core/lendings.h"

namespace spoke::netagent {

// Who this node is.
struct NodeIdentity {
  std::string node_name;
  std::string vm_id;    // The cloud's: a new VM under an old name is a new node.
  std::string boot_id;  // Changes with each boot.
  std::string agent_version;
};

struct DesiredAddress {
  ip::Address address;
  std::string pool;
  absl::Duration cooling;  // Not to be lent for this long.

  bool operator==(const DesiredAddress&) const = default;
};

// A pool as the server sees it, to explain an empty node with.
struct PoolState {
  std::string name;
  std::string cidr;
  uint64_t usable = 0;
  uint64_t attached = 0;
  uint64_t free = 0;

  bool operator==(const PoolState&) const = default;
};

struct DesiredState {
  uint64_t version = 0;
  bool full = false;
  std::vector<DesiredAddress> added;
  std::vector<ip::Address> removed;
  std::vector<PoolState> pools;

  bool operator==(const DesiredState&) const = default;
};

// What the server has to know to begin a session: all that is lent and cooling now.
struct Greeting {
  std::vector<Lending> lent;
  std::vector<ip::Address> cooling;

  bool operator==(const Greeting&) const = default;
};

// What has changed since.
struct LendingReport {
  std::vector<Lending> lent;
  std::vector<Lending> released;
  std::vector<ip::Address> cooled;

  bool operator==(const LendingReport&) const = default;
};

}  // namespace spoke::netagent
