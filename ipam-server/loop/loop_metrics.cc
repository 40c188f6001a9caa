#include "ipam-server/loop/loop_metrics.h"

#include <algorithm>

#include "ipam-server/ledger/decisions/demand.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/promises.h"
#include "ipam-server/ledger/targets.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kPublishPeriod = absl::Seconds(10);
constexpr size_t kNodesAStep = 512;

void PublishPools(const Fleet& fleet, const Promises& promises, ServerMetrics& metrics) {
  for (size_t i = 0; i < fleet.ledger.pools().size(); ++i) {
    const PoolEntry& entry = fleet.ledger.pools()[i];
    metrics.SetPool(entry.pool.spec().name,
                    {.usable = entry.pool.usable(),
                     .free = entry.free(),
                     .attaching = entry.counts.attaching,
                     .available = entry.counts.available,
                     .in_use = entry.counts.in_use,
                     .cooldown = entry.counts.cooldown,
                     .detaching = entry.counts.detaching,
                     .released = entry.pool.cooldown(),
                     .quarantined = entry.pool.quarantined(),
                     .reserved = i < promises.by_pool.size() ? promises.by_pool[i] : 0});
  }
}

// Counts the nodes for whose machines something is announced, by the worst of it.
void CountMaintenance(const std::map<NodeKey, Session>& sessions, NodeMetrics& nodes) {
  for (const auto& [key, session] : sessions) {
    if (!session.maintenance || session.maintenance->events.empty()) continue;
    const auto& events = session.maintenance->events;
    const auto worst = std::max_element(
        events.begin(), events.end(), [](const auto& a, const auto& b) { return a.kind < b.kind; });
    ++nodes.maintenance.at(static_cast<size_t>(worst->kind));
  }
}

// Counts the nodes that checks warn on.
void CountWarnings(const std::map<NodeKey, Session>& sessions, absl::Time now, NodeMetrics& nodes) {
  for (const auto& [key, session] : sessions) {
    for (const Warning& warning : session.warnings) {
      WarnedNodes& warned = nodes.warned.at(warning.check);
      ++warned.nodes;
      warned.longest = std::max(warned.longest, now - warning.since);
    }
  }
}

void PublishPolicy(const LoopState& loop, ServerMetrics& metrics) {
  PolicyMetrics policy{.version = loop.state.objects.version()};
  for (const auto& [key, session] : loop.sessions) {
    const bool behind = session.policy_acked != loop.state.bundles.version();
    policy.nodes_behind += behind ? 1 : 0;
    policy.nodes_refused += behind && !session.policy_error.empty() ? 1 : 0;
  }
  metrics.SetPolicy(policy);
}

void Count(const Fleet& fleet, const NodeRecord& record, NodeMetrics& nodes) {
  switch (record.mode) {
    case NodeMode::kActive:
      ++nodes.active;
      break;
    case NodeMode::kDraining:
      ++nodes.draining;
      break;
    case NodeMode::kFrozen:
      ++nodes.frozen;
      break;
    case NodeMode::kRetired:
      ++nodes.retired;
      break;
  }
  nodes.in_shortage += IsShort(fleet, record) ? 1 : 0;
}

}  // namespace

void StatePublisher::Step(const LoopState& loop, absl::Time now, ServerMetrics& metrics) {
  if (!counting_) {
    if (now - begun_ < kPublishPeriod) return;
    begun_ = now;
    counted_ = NodeKey();
    nodes_ = NodeMetrics();
  }
  const Fleet& fleet = loop.state.fleet;
  counting_ = CountSome(fleet);
  if (counting_) return;
  nodes_.connected = loop.sessions.size();
  nodes_.pods_waiting = WaitingPods(fleet);
  CountMaintenance(loop.sessions, nodes_);
  CountWarnings(loop.sessions, now, nodes_);
  metrics.SetNodes(nodes_);
  PublishPolicy(loop, metrics);
  const Promises promises = AllPromises(fleet);
  PublishPools(fleet, promises, metrics);
  ReservationMetrics reservations{.reservations = fleet.reservations.all().size(),
                                  .short_by = promises.short_by};
  for (const uint64_t promised : promises.by_pool) reservations.promised += promised;
  metrics.SetReservations(reservations);
  metrics.SetBreaker({.frozen = fleet.breaker.frozen(),
                      .trips = fleet.breaker.state().trips,
                      .headroom = fleet.breaker.Headroom(AddressesHeld(fleet), now)});
  metrics.SetDoubled(fleet.doubled.size());
  metrics.SetSessions(loop.sessions.size());
  metrics.SetHellosWaiting(loop.mailbox.waiting_hellos());
  metrics.SetMailbox(loop.mailbox.waiting_agents());
  const StoreStats stats = loop.store.Stats();
  metrics.SetStore(static_cast<uint64_t>(std::max<int64_t>(0, stats.file_bytes + stats.log_bytes)),
                   loop.writable);
}

// Returns true if there are more.
bool StatePublisher::CountSome(const Fleet& fleet) {
  const auto& nodes = fleet.ledger.nodes();
  auto it = nodes.upper_bound(counted_);
  for (size_t i = 0; i < kNodesAStep && it != nodes.end(); ++i, ++it) {
    Count(fleet, it->second, nodes_);
    counted_ = it->first;
  }
  return it != nodes.end();
}

}  // namespace spoke::ipam
