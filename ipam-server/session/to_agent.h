// What the server's loop tells an agent, as values. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "lib/node_api/messages.h"

namespace spoke::ipam {

struct Bundle;

// The policy the node shall have, and the one it is known to have; nullptr: none that is known.
// Shared, as BundleHistory says. What is sent (node_api::PolicyUpdate) is the message that leads
// from one to the other: it is made once for all nodes that need the same, on the thread that sends
// it.
struct BundleUpdate {
  std::shared_ptr<const Bundle> from;
  std::shared_ptr<const Bundle> to;
  // How many of its connections the node may end by it, of a thousand; nullopt: all.
  std::optional<uint32_t> max_cut_permille = std::nullopt;

  bool operator==(const BundleUpdate&) const = default;
};

// What would this policy end on the node? It is not put in force.
struct BundleTrial {
  uint64_t id = 0;
  std::shared_ptr<const Bundle> policy;

  bool operator==(const BundleTrial&) const = default;
};

using ToAgent =
    std::variant<node_api::Welcome, node_api::DesiredState, node_api::ReportAck,
                 node_api::ReclaimRequest, node_api::InventoryRequest, node_api::Forecast,
                 node_api::AttachTracesRequest, node_api::ProbeRequest, node_api::BudgetGrants,
                 node_api::EndAssignment, node_api::MaintenanceStart, node_api::NodeDataRequest,
                 BundleUpdate, BundleTrial>;

}  // namespace spoke::ipam
