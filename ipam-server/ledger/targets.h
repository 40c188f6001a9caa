// How many addresses a node should have, how many it has, and why it has fewer. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/ledger/pool_set.h"

namespace spoke::ipam {

// How a node stands with one group of its pools.
struct GroupState {
  const PoolGroup* group;
  uint32_t target;
  AddressCounts counts;
  uint32_t waiting = 0;  // Pods that it is meant for, and that have no address yet.
};

// Returns one for each group that the node draws from. They borrow the groups.
std::vector<GroupState> GroupStatesOf(const Fleet& fleet, const NodeRecord& record);

// Returns whether the node is to give back all that it has, as the records say.
bool IsLeaving(const NodeRecord& record);
// Returns whether the cloud is about to delete the node's machine.
bool IsEnding(const Fleet& fleet, const NodeKey& key);
// The same as IsLeaving(), or since the cloud is about to delete its machine.
bool IsLeaving(const Fleet& fleet, const NodeRecord& record);
// Returns how many addresses the node should hold, over all pools it draws from.
uint64_t TargetOf(const Fleet& fleet, const NodeRecord& record);
// Returns whether it has fewer than that.
bool IsShort(const Fleet& fleet, const NodeRecord& record);
// Returns why the node has fewer addresses than its target, in words; empty: it has not.
std::string ShortageOf(const Fleet& fleet, const NodeRecord& record);
// Returns what is wrong with what the cloud gave it and it cannot use; empty: nothing.
std::string ProblemOf(const NodeRecord& record);

}  // namespace spoke::ipam
