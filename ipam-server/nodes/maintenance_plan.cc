#include "ipam-server/nodes/maintenance_plan.h"

#include <algorithm>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string WhenOf(const node_api::MaintenanceEvent& event) {
  if (event.started) return "has begun";
  if (event.not_before == absl::InfinitePast()) return "may begin at any time";
  return fmt::format("begins not before {}", TimeText(event.not_before));
}

}  // namespace

MaintenanceFacts FactsOf(const node_api::Maintenance& maintenance) {
  const auto worst = std::max_element(maintenance.events.begin(), maintenance.events.end(),
                                      [](const auto& a, const auto& b) { return a.kind < b.kind; });
  if (worst == maintenance.events.end()) return {};
  std::string message =
      fmt::format("{} of this node's machine {}", NameOf(worst->kind), WhenOf(*worst));
  if (!worst->origin.empty()) message += fmt::format(", announced by {}", worst->origin);
  message += worst->description.empty() ? "." : fmt::format(": {}", worst->description);
  return {.reason = std::string(NameOf(worst->kind)),
          .message = std::move(message),
          .interrupts = worst->kind != node_api::MaintenanceKind::kFreeze};
}

DesiredMaintenance DesiredOf(const std::optional<MaintenanceFacts>& facts,
                             const kubernetes::Node& node, const Remedy& remedy,
                             absl::Duration since) {
  if (!facts) return {.unknown = true};
  const kubernetes::Condition* present = node.FindCondition(kMaintenanceCondition);
  DesiredMaintenance desired;
  const bool announced = !facts->reason.empty();
  // Most nodes never have any: they need no condition that says so.
  if (announced || (present != nullptr && present->status != "False")) {
    desired.condition = kubernetes::Condition{
        .type = std::string(kMaintenanceCondition),
        .status = announced ? "True" : "False",
        .reason = announced ? facts->reason : "None",
        .message = announced ? facts->message : "No maintenance is announced for the machine."};
  }
  if (facts->interrupts) {
    desired.taint = DueTaint({.key = kMaintenanceTaint, .value = facts->reason, .since = since},
                             remedy, node.FindTaint(kMaintenanceTaint));
  }
  return desired;
}

}  // namespace spoke::ipam
