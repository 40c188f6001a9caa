#include "ipam-server/nodes/fleet_facts.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/targets.h"
#include "ipam-server/loop/loop_call.h"
#include "ipam-server/policy/kinds/node_remedy.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace spoke::ipam {
namespace {

// What was judged this many rounds ago is old.
constexpr int kRoundsMissed = 4;

std::string FrozenBy(const Fleet& fleet) {
  if (fleet.hold.active) return "a recovery is under way";
  if (fleet.breaker.frozen()) return "releases are frozen";
  return {};
}

// Returns why a pod of any namespace would get no address of this group; empty: it would. Addresses
// in cooldown are free before long.
std::string WhyExhausted(const PoolSet& pools, const GroupState& state) {
  const AddressCounts& counts = state.counts;
  if (!state.group->namespaces.empty() || counts.available + counts.attaching > 0 ||
      counts.cooldown > 0) {
    return {};
  }
  const std::string_view family = state.group->family == ip::Family::kV4 ? "IPv4" : "IPv6";
  if (counts.staying() >= state.group->target.max) {
    return fmt::format("All {} {} addresses that a node may have are in use.", counts.staying(),
                       family);
  }
  const bool has_room = std::any_of(state.group->pools.begin(), state.group->pools.end(),
                                    [&](size_t pool) { return pools[pool].free() > 0; });
  if (has_room) return {};
  return fmt::format("All {} {} addresses of the node are in use, and its pools have no other.",
                     counts.staying(), family);
}

// Returns what keeps pods from working, or else what does not, with the remedies; cut, since a
// condition has a limit.
std::string TextOf(const std::vector<node_api::NodeFinding>& findings, bool blocking) {
  constexpr size_t kMaxBytes = 1024;
  std::string why;
  for (const node_api::NodeFinding& finding : findings) {
    if (finding.blocking != blocking) continue;
    why += fmt::format("{}{}: {} {}. Remedy: {}", why.empty() ? "" : " ", finding.check,
                       finding.object, finding.what, finding.remedy);
  }
  return base::CutText(why, kMaxBytes);
}

bool IsWarned(const Session& session, absl::Time now) {
  return std::any_of(session.warnings.begin(), session.warnings.end(),
                     [&](const Warning& warning) { return now - warning.since >= kWarnedFor; });
}

}  // namespace

FitnessFacts FactsOf(const Fleet& fleet, const NodeRecord& record, const Session* session,
                     absl::Time now) {
  FitnessFacts facts{.connected = session != nullptr,
                     .told = session != nullptr && session->acked_version > 0,
                     .leaving = IsLeaving(record),
                     .usable = CountAddresses(record).attached()};
  if (session != nullptr) {
    facts.policy_error = session->policy_error;
    facts.blocked = TextOf(session->findings, /*blocking=*/true);
    if (IsWarned(*session, now)) facts.warned = TextOf(session->findings, /*blocking=*/false);
    if (session->maintenance) facts.maintenance = FactsOf(*session->maintenance);
  }
  if (IsLeaving(fleet, record)) return facts;
  for (const GroupState& state : GroupStatesOf(fleet, record)) {
    facts.exhausted = WhyExhausted(fleet.ledger.pools(), state);
    if (!facts.exhausted.empty()) break;
  }
  return facts;
}

void AddSuspicions(const Reachability* judged, const ReachabilitySettings& settings, absl::Time now,
                   FleetFacts& facts) {
  if (settings.interval <= absl::ZeroDuration()) return;  // Nodes do not probe.
  // A round may take as long as its interval, and one may fail.
  const bool is_fresh = judged != nullptr && now - judged->at <= kRoundsMissed * settings.interval;
  const bool is_whole =
      is_fresh && judged->unjudged.empty() && judged->window + settings.interval >= settings.window;
  for (auto& [name, of] : facts.nodes) of.reach_unknown = !is_whole;
  if (!is_fresh) return;
  for (const NodeReach& node : judged->nodes) {
    const auto of = facts.nodes.find(node.node.name);
    if (of != facts.nodes.end()) of->second.loses = node.suspicion;
  }
}

absl::StatusOr<FleetFacts> ReadFleetFacts(FleetLoop& loop, const std::string& domain_label,
                                          absl::Duration patience) {
  FleetFacts facts;
  RETURN_IF_ERROR(AskLoop(loop, patience, [&](const FleetView& view) {
    facts.frozen = FrozenBy(view.fleet);
    facts.remedies = RemediesOf(view.state.objects);
  }));
  RETURN_IF_ERROR(VisitNodes(loop, patience, [&](const FleetView& view, const NodeRecord& record) {
    // Another VM has its name now.
    if (record.mode == NodeMode::kRetired) return;
    const auto session = view.sessions.find(record.key);
    FitnessFacts of = FactsOf(
        view.fleet, record, session == view.sessions.end() ? nullptr : &session->second, view.now);
    const auto domain = record.labels.find(domain_label);
    if (domain != record.labels.end()) of.domain = domain->second;
    facts.nodes.insert_or_assign(record.key.name, std::move(of));
  }));
  return facts;
}

}  // namespace spoke::ipam
