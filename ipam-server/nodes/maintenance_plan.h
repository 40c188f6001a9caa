// What the maintenance that a cloud has announced for a node means for its pods: a condition, a
// taint, an event. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "lib/kubernetes/node_objects.h"
#include "lib/node_api/maintenance.h"

namespace spoke::ipam {

inline constexpr std::string_view kMaintenanceTaint = "spoke.internal/maintenance";
inline constexpr std::string_view kMaintenanceCondition = "SpokeMaintenance";

// What becomes of pods when a node's machine is to be interrupted.
struct MaintenanceRemedy {
  enum class Effect : uint8_t { kNone, kNoSchedule, kNoExecute };
  Effect effect = Effect::kNoSchedule;
  // With kNoExecute: for how long no new pod may come before those that are there have to go.
  absl::Duration evict_after = absl::ZeroDuration();

  bool operator==(const MaintenanceRemedy&) const = default;
};

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

// `facts`: nullopt while the node's agent has not said. `since`: since when the node was to be
// interrupted.
DesiredMaintenance DesiredOf(const std::optional<MaintenanceFacts>& facts,
                             const kubernetes::Condition* present, const MaintenanceRemedy& remedy,
                             absl::Time since, absl::Time now);

}  // namespace spoke::ipam
