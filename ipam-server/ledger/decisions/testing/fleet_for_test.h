// What tests of the fleet have in common.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/testing/hello_for_test.h"

namespace spoke::ipam {

inline const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
inline const NodeKey kNode1{"node1", "vm-1"};
inline const NodeKey kNode2{"node2", "vm-2"};

inline ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
inline ip::Prefix One(std::string_view text) { return ip::Prefix::Host(A(text)); }
inline ip::Prefix Block(std::string_view text) { return ip::Prefix::Parse(text).value(); }

inline PoolSpec Pool(std::string name, std::string_view cidr) {
  return {.name = std::move(name), .cidr = ip::Prefix::Parse(cidr).value()};
}

inline FleetPolicy Policy() {
  return {
      .target = {.min = 4, .batch = 4, .spare = 0.5, .max = 64},
      .cooldown = absl::Seconds(30),
      .release = {
          .idle_time = absl::Minutes(5), .jitter_spread = absl::ZeroDuration(), .hysteresis = 4}};
}

// Returns the policy for a cloud that chooses the addresses itself.
inline FleetPolicy Choosing() {
  FleetPolicy policy = Policy();
  policy.cloud_chooses = true;
  return policy;
}

inline node_api::Hello HelloOf(const NodeKey& key, std::string boot = "boot-1") {
  return {.node = IdentityOf(key, std::move(boot))};
}

inline node_api::Assignment AssignmentOf(const ip::Address& address, uint64_t generation,
                                         std::string container = "c1") {
  return {.address = address,
          .generation = generation,
          .since = kNow,
          .lessee = {.container_id = std::move(container), .ifname = "eth0"}};
}

// What was asked of the cloud, where we choose the addresses.
inline std::vector<IpConfiguration> EntriesOf(const Fleet& fleet, const NodeKey& key) {
  std::vector<IpConfiguration> entries;
  for (const auto& [base, configuration] : fleet.ledger.Find(key)->configurations) {
    if (configuration.state == AddressState::kDetaching) continue;
    entries.push_back({configuration.name, configuration.range});
  }
  return entries;
}

inline std::set<ip::Prefix> RangesOf(const Fleet& fleet, const NodeKey& key) {
  std::set<ip::Prefix> ranges;
  for (const IpConfiguration& entry : EntriesOf(fleet, key)) ranges.insert(entry.range);
  return ranges;
}

// Returns the pool of that name; nullptr: there is none.
inline const PoolEntry* PoolNamed(const Fleet& fleet, const std::string& name) {
  const PoolSet& pools = fleet.ledger.pools();
  const size_t index = pools.IndexOf(name);
  return index < pools.size() ? &pools[index] : nullptr;
}

// The cloud does what was asked for.
inline Effects Attach(Fleet& fleet, const NodeKey& key, absl::Time now = kNow) {
  return OnNic(fleet, key, EntriesOf(fleet, key), now);
}

inline const Slot& SlotOf(const Fleet& fleet, const NodeKey& key, std::string_view address) {
  return fleet.ledger.Find(key)->Holding(A(address))->At(A(address));
}

// A fleet with a node that has said hello and whose addresses the cloud has attached.
inline Fleet WithAttachedNode(const std::vector<PoolSpec>& pools) {
  Fleet fleet(pools, Policy());
  OnHello(fleet, HelloOf(kNode1), kNow);
  Attach(fleet, kNode1);
  return fleet;
}

}  // namespace spoke::ipam
