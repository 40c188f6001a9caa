// What the maintenance that a cloud has announced for a node means for its pods: a condition, a
// taint, an event. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "ipam-server/nodes/node_remedy.h"
#include "lib/kubernetes/node_objects.h"
#include "lib/node_api/maintenance.h"

namespace spoke::ipam {

inline constexpr std::string_view kMaintenanceTaint = "spoke.internal/maintenance";
inline constexpr std::string_view kMaintenanceCondition = "SpokeMaintenance";

// What is announced for a node, as far as Kubernetes is told of it.
struct MaintenanceFacts {
  std::string reason;   // The word of the worst event: "Reboot"; empty: nothing is announced.
  std::string message;  // A sentence about it.
  // Pods do not survive it: all but a machine that stands still for some seconds.
  bool interrupts = false;

  bool operator==(const MaintenanceFacts&) const = default;
};

MaintenanceFacts FactsOf(const node_api::Maintenance& maintenance);

// What is to be there of a node at a moment.
struct DesiredMaintenance {
  std::optional<kubernetes::Condition> condition;  // nullopt: what is there stays.
  std::optional<kubernetes::Taint> taint;          // nullopt: none is to be there.
  // What is there stays as it is: nobody knows.
  bool unknown = false;

  bool operator==(const DesiredMaintenance&) const = default;
};

// `facts`: nullopt while the node's agent has not said. `since`: for how long the node is to be
// interrupted.
DesiredMaintenance DesiredOf(const std::optional<MaintenanceFacts>& facts,
                             const kubernetes::Node& node, const Remedy& remedy,
                             absl::Duration since);

}  // namespace spoke::ipam
