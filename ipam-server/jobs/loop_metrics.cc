#include "ipam-server/jobs/loop_metrics.h"

#include <algorithm>
#include <string>

namespace spoke::ipam {
namespace {

void PublishPools(const Fleet& fleet, ServerMetrics& metrics) {
  for (const PoolEntry& entry : fleet.pools()) {
    const std::string& name = entry.pool.spec().name;
    metrics.SetPool(name, {.usable = entry.pool.usable(),
                           .free = entry.free(),
                           .attaching = entry.counts.attaching,
                           .idle = entry.counts.idle,
                           .lent = entry.counts.lent,
                           .cooling = entry.counts.cooling,
                           .detaching = entry.counts.detaching,
                           .released = entry.pool.cooling(),
                           .quarantined = entry.pool.quarantined(),
                           .reserved = fleet.PromisedOf(name)});
  }
}

void PublishNodes(const LoopState& loop, ServerMetrics& metrics) {
  NodeMetrics nodes{.connected = loop.sessions.size()};
  PolicyMetrics policy{.version = loop.state.objects.version()};
  for (const auto& [key, record] : loop.state.fleet.nodes()) {
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
    nodes.in_shortage += loop.state.fleet.IsShort(record) ? 1 : 0;
  }
  nodes.pods_waiting = loop.state.fleet.WaitingPods();
  for (const auto& [key, session] : loop.sessions) {
    const bool behind = session.policy_acked != loop.state.bundles.version();
    policy.nodes_behind += behind ? 1 : 0;
    policy.nodes_refused += behind && !session.policy_error.empty() ? 1 : 0;
  }
  metrics.SetNodes(nodes);
  metrics.SetPolicy(policy);
}

}  // namespace

void PublishState(const LoopState& loop, absl::Time now, ServerMetrics& metrics) {
  const Fleet& fleet = loop.state.fleet;
  PublishPools(fleet, metrics);
  PublishNodes(loop, metrics);
  const Promises promises = fleet.AllPromises();
  ReservationMetrics reservations{.reservations = fleet.reservations().all().size(),
                                  .short_by = promises.short_by};
  for (const uint64_t promised : promises.by_pool) reservations.promised += promised;
  metrics.SetReservations(reservations);
  metrics.SetBreaker({.frozen = fleet.breaker().frozen(),
                      .trips = fleet.breaker().state().trips,
                      .headroom = fleet.breaker().Headroom(fleet.Counts().total(), now)});
  metrics.SetSessions(loop.sessions.size());
  metrics.SetHellosWaiting(loop.mailbox.waiting_hellos());
  metrics.SetMailbox(loop.mailbox.waiting_agents());
  const StoreStats stats = loop.store.Stats();
  metrics.SetStore(static_cast<uint64_t>(std::max<int64_t>(0, stats.file_bytes + stats.log_bytes)),
                   loop.writable);
}

}  // namespace spoke::ipam
