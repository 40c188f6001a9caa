// Plans what to put into the model of an Azure scale set, so that its machines start with the
// addresses their pods will need, and the server seldom has to call Azure for more. Pure.
//
// Azure takes 500 updates a minute of machines of a subscription and region, and makes one for each
// machine that is to get more addresses. Those in the model come with the machine, without a call.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/prefix.h"

namespace spoke::ctl {

// The limits are those of
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
inline constexpr uint32_t kMaxOnNic = 256;     // IP configurations, the primary one included.
inline constexpr uint64_t kMaxInVnet = 65536;  // The most private addresses; a block counts as one.
inline constexpr uint32_t kMaxInScaleSet = 1000;
inline constexpr uint32_t kReservedInSubnet = 5;  // The first four addresses, and the last.
inline constexpr uint32_t kBlockSize = 16;        // Azure's blocks are /28.
// The rate is that of https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits
inline constexpr uint32_t kUpdatesAMinute = 500;
inline constexpr uint32_t kUpdatesAtOnce = 1500;

struct ModelInput {
  uint32_t nodes = 0;
  uint32_t pods_per_node = 0;
  uint32_t spare = 8;  // Addresses kept free beyond the pods.
  // The number of which what a node holds is a multiple; as in the server's configuration.
  uint32_t batch = 16;
  bool blocks = false;  // Whether to use /28 blocks instead of single addresses.
  std::optional<ip::Prefix> subnet;
  std::string subnet_id;  // The subnet; empty: the one of `nic`.
  std::string name_prefix = "spoke-";
  // One entry of networkInterfaceConfigurations, or a whole scale set, as Azure's REST API has it;
  // null: a NIC with nothing but its primary IP configuration.
  nlohmann::ordered_json nic;
};

struct ModelPlan {
  uint32_t addresses_per_node = 0;  // The addresses for pods.
  uint32_t ours = 0;                // IP configurations of ours on each NIC.
  uint32_t ours_already = 0;        // The number of these in the given model.
  uint32_t others = 0;              // The primary one, and what else there is.
  // The addresses that all nodes take of the subnet, Azure's own included.
  uint64_t subnet_addresses = 0;
  int prefix_length = 0;        // The length of the smallest subnet that holds them; 0: none does.
  uint32_t nodes_that_fit = 0;  // The nodes that fit into the given subnet.
  uint64_t in_vnet = 0;         // The number that counts against kMaxInVnet.
  uint32_t vnets = 0;           // The least number of VNets.
  uint32_t scale_sets = 0;      // The least number of scale sets.
  // The pods of a node without calls: with more, the server calls Azure for more.
  uint32_t pods_without_calls = 0;
  // The time that the calls would take if the model had no addresses.
  absl::Duration start_without;
  // The value for ipConfigurations: what was there, marked primary where several need it, and ours.
  // Null: no subnet is known.
  nlohmann::ordered_json configurations;
};

// Plans the model. Errors: kInvalidArgument (no nodes or pods, a name, id, subnet or NIC that is
// none); kResourceExhausted (more than a NIC, the subnet or its VNet holds; says what would fit).
absl::StatusOr<ModelPlan> PlanModel(const ModelInput& input);

}  // namespace spoke::ctl
