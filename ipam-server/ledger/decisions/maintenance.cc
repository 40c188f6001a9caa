#include "ipam-server/ledger/decisions/maintenance.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ipam-server/ledger/decisions/plan.h"

namespace spoke::ipam {

Effects OnMaintenance(Fleet& fleet, const NodeKey& key, const node_api::Maintenance& maintenance,
                      absl::Time now) {
  const auto deletes = std::find_if(
      maintenance.events.begin(), maintenance.events.end(),
      [](const node_api::MaintenanceEvent& announced) { return Deletes(announced.kind); });
  const bool announced = deletes != maintenance.events.end();
  const auto known = fleet.ending.find(key);
  if (!announced && known == fleet.ending.end()) return {};
  EndingMachine& ending = known == fleet.ending.end() ? fleet.ending[key] : known->second;
  const bool was_believed = ending.believed;
  if (ending.announced && !announced) ending.called_off = now;
  ending.announced = announced;
  ending.unsaid_since = absl::InfiniteFuture();
  if (announced) ending.kind = std::string(NameOf(deletes->kind));
  ending.believed = announced && (was_believed || now - ending.called_off >= kNotBelieved);
  return ending.believed == was_believed ? Effects() : ReviewNode(fleet, key, {}, now);
}

void ExpireMaintenance(Fleet& fleet, Effects& effects, absl::Time now) {
  for (auto it = fleet.ending.begin(); it != fleet.ending.end();) {
    const NodeKey& key = it->first;
    EndingMachine& ending = it->second;
    const bool was_believed = ending.believed;
    if (ending.announced && now - ending.unsaid_since >= kUnsaidFor) {
      ending.announced = ending.believed = false;
      ending.called_off = now;
    }
    const bool is_calm = now - ending.called_off >= kNotBelieved;
    if (ending.announced && is_calm) ending.believed = true;
    if (ending.believed != was_believed) effects.Merge(ReviewNode(fleet, key, {}, now));
    it = !ending.announced && is_calm ? fleet.ending.erase(it) : std::next(it);
  }
}

}  // namespace spoke::ipam
