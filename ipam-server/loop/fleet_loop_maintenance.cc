// The maintenance that clouds announce for nodes, as their agents say. It is not stored: agents say
// it again in each session.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ipam-server/ledger/decisions/maintenance.h"
#include "ipam-server/loop/fleet_loop.h"

namespace spoke::ipam {
namespace {

using Announced = std::vector<node_api::MaintenanceEvent>;

const node_api::MaintenanceEvent* Find(const Announced& events, const std::string& id) {
  const auto found = std::find_if(events.begin(), events.end(),
                                  [&](const node_api::MaintenanceEvent& e) { return e.id == id; });
  return found == events.end() ? nullptr : &*found;
}

void LogMaintenance(const std::string& node, const Announced& before, const Announced& now,
                    telemetry::Log& log) {
  for (const node_api::MaintenanceEvent& event : now) {
    const node_api::MaintenanceEvent* const known = Find(before, event.id);
    if (known != nullptr && known->started == event.started) continue;
    log.Warn("maintenance_announced",
             {{"node", node},
              {"begun", event.started ? "yes" : "no"},
              {"event", event.id},
              {"kind", NameOf(event.kind)},
              {"not_before", absl::FormatTime(event.not_before, absl::UTCTimeZone())},
              {"description", event.description}});
  }
  for (const node_api::MaintenanceEvent& event : before) {
    if (Find(now, event.id) != nullptr) continue;
    log.Info("maintenance_over",
             {{"node", node}, {"event", event.id}, {"kind", NameOf(event.kind)}});
  }
}

}  // namespace

void FleetLoop::Handle(MaintenanceEvent event, Batch& batch) {
  Session* session = TouchSession(event.session, batch);
  if (session == nullptr) return;
  const NodeKey& node = *NodeOf(event.session);
  LogMaintenance(node.name, session->maintenance.value_or(node_api::Maintenance()).events,
                 event.maintenance.events, edges_.log);
  batch.effects.Merge(OnMaintenance(state_.fleet, node, event.maintenance, batch.now));
  session->maintenance = std::move(event.maintenance);
}

void FleetLoop::PostStartMaintenance(const std::string& node, std::vector<std::string> events,
                                     StartMaintenanceDone done) {
  edges_.mailbox.Post(
      OperatorEvent(StartMaintenanceEvent{node, std::move(events), std::move(done)}));
}

void FleetLoop::Handle(StartMaintenanceEvent event, Batch& /*batch*/) {
  const auto session = SessionToAsk(event.node);
  if (!session.ok()) return event.done(session.status());
  const Announced announced = (*session)->maintenance.value_or(node_api::Maintenance()).events;
  std::vector<std::string> ids = std::move(event.events);
  for (const std::string& id : ids) {
    if (Find(announced, id) != nullptr) continue;
    return event.done(absl::NotFoundError(
        fmt::format("no maintenance {} is announced for node {}; see: spokectl maintenance list",
                    id, event.node)));
  }
  if (ids.empty()) {
    for (const node_api::MaintenanceEvent& one : announced) {
      if (!one.started) ids.push_back(one.id);
    }
  }
  if (ids.empty()) {
    return event.done(absl::FailedPreconditionError(
        fmt::format("no maintenance is announced for node {} that has not begun", event.node)));
  }
  edges_.log.Info("maintenance_start_asked",
                  {{"node", event.node}, {"events", fmt::format("{}", fmt::join(ids, ","))}});
  edges_.agents.Send((*session)->id, node_api::MaintenanceStart{++(*session)->last_request, ids});
  event.done(std::move(ids));
}

}  // namespace spoke::ipam
