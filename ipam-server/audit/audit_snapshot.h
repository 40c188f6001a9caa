// What an audit compares, as it is gathered from the loop, the cloud and the agents. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam-server/audit/audit.h"
#include "ipam-server/cloud/nic_request.h"
#include "ipam-server/ledger/ledger.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/assignments.h"

namespace spoke::ipam {

// Returns what the store says of the node.
StoredNode StoredNodeOf(const NodeRecord& record, const Quarantines& quarantines);

// Not thread-safe.
struct AuditSnapshot {
  void Add(const PoolEntry& entry);
  void Add(const NodeRecord& record, const Quarantines& quarantines);
  // Completes `input` by the listing and the inventories, and returns it.
  const AuditInput& Finish();

  AuditInput input;
  std::optional<std::vector<NicAddresses>> listing;  // nullopt: the cloud could not be listed.
  std::map<NodeKey, node_api::Inventory> inventories;
  std::map<std::string, NodeKey> on_instance;
  std::map<NodeKey, size_t> stored;  // Index into input.store.
  uint64_t connected = 0;
};

}  // namespace spoke::ipam
