#include "ipam-server/loop/server_state.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/inventory.h"
#include "ipam-server/ledger/targets.h"
#include "ipam-server/operators/operator_keys.h"
#include "ipam-server/policy/kinds/pool.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/store/migration.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// Calls `take` with every record under `prefix` until one fails, and notes the revisions.
template <typename Take>
absl::Status ForEach(Store& store, std::string_view prefix, Revisions& revisions,
                     const Take& take) {
  absl::Status first_error;
  const absl::Status listed =
      store.List(prefix, [&](std::string_view key, const StoredRecord& stored) {
        revisions.emplace(key, stored.revision);
        first_error.Update(base::Annotate(take(stored.value), fmt::format("store key {}", key)));
      });
  RETURN_IF_ERROR(base::Annotate(listed, fmt::format("read the records {}", prefix)));
  return first_error;
}

absl::StatusOr<ObjectSet> LoadObjects(Store& store, Revisions& revisions) {
  RETURN_IF_ERROR(FinishPolicy(store));
  RETURN_IF_ERROR(ForEach(store, kPendingPolicyPrefix, revisions,
                          [](std::string_view) { return absl::OkStatus(); }));
  // A change that was cut short may have left what was before it, and be made again.
  RETURN_IF_ERROR(ForEach(store, kPolicyHistoryPrefix, revisions,
                          [](std::string_view) { return absl::OkStatus(); }));
  std::vector<PolicyObject> objects;
  RETURN_IF_ERROR(
      ForEach(store, kObjectKeyPrefix, revisions, [&](std::string_view value) -> absl::Status {
        ASSIGN_OR_RETURN(objects.emplace_back(), DecodeObject(value));
        return absl::OkStatus();
      }));
  SetVersion version;
  RETURN_IF_ERROR(
      ForEach(store, kPolicyVersionKey, revisions, [&](std::string_view value) -> absl::Status {
        ASSIGN_OR_RETURN(version, DecodePolicyVersion(value));
        return absl::OkStatus();
      }));
  return ObjectSet::Restore(std::move(objects), version);
}

// What is stored may lie ahead of the clock, which was set back since, or is another machine's.
// Times that began in the future began now; what ends, ends no later than its whole length from
// now. Returns whether that changed the record.
bool Clamp(NodeRecord& record, absl::Time now, const FleetPolicy& policy) {
  bool changed = false;
  const auto clamp = [&](absl::Time& time, absl::Time latest) {
    if (time <= latest) return;
    time = latest;
    changed = true;
  };
  for (auto& [base, configuration] : record.configurations) {
    clamp(configuration.since, now);
    clamp(configuration.denied_until, now + policy.release.denial_backoff);
    for (Slot& slot : configuration.slots) clamp(slot.since, now);
  }
  for (auto& [name, wanted] : record.wanted) clamp(wanted.since, now);
  for (auto& [range, at] : record.released) clamp(at, now);
  return changed;
}

void Clamp(Reservation& reservation, absl::Time now) {
  reservation.expires =
      std::min(reservation.expires, now + (reservation.expires - reservation.created));
  reservation.created = std::min(reservation.created, now);
}

void Clamp(Quarantine& quarantine, absl::Time now, const FleetPolicy& policy) {
  quarantine.since = std::min(quarantine.since, now);
  if (quarantine.until) {
    quarantine.until = std::min(*quarantine.until, now + policy.conflict.quarantine);
  }
}

// Few records are decoded sooner than threads are made.
constexpr size_t kRecordsAThread = 500;
constexpr size_t kMostThreads = 4;

// Decodes the values in their order, on several processors where there are many: it is most of the
// time until a server that takes over serves.
std::vector<absl::StatusOr<NodeRecord>> DecodeNodes(const std::vector<std::string>& values) {
  std::vector<absl::StatusOr<NodeRecord>> records(values.size());
  const size_t count = std::clamp<size_t>(
      std::min<size_t>(values.size() / kRecordsAThread, std::thread::hardware_concurrency()), 1,
      kMostThreads);
  std::atomic<size_t> next = 0;
  const auto decode = [&] {
    for (size_t i = next++; i < values.size(); i = next++) records[i] = DecodeNode(values[i]);
  };
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < count) threads.emplace_back(decode);
  } catch (const std::system_error&) {  // There may be no more: those that there are do it all.
  }
  decode();
  for (std::thread& thread : threads) thread.join();
  return records;
}

// Adds to `clamped` the nodes whose records are to be stored: as long as what was ahead stays, it
// is the latest time that is stored, and ends cooldowns which a server with a better clock began
// since.
absl::Status LoadFleet(Store& store, Revisions& revisions, absl::Time now, Fleet& fleet,
                       std::set<NodeKey>& clamped) {
  std::vector<std::string> keys;
  std::vector<std::string> values;
  RETURN_IF_ERROR(base::Annotate(store.List(kNodeKeyPrefix,
                                            [&](std::string_view key, const StoredRecord& stored) {
                                              revisions.emplace(key, stored.revision);
                                              keys.emplace_back(key);
                                              values.emplace_back(stored.value);
                                            }),
                                 fmt::format("read the records {}", kNodeKeyPrefix)));
  std::vector<absl::StatusOr<NodeRecord>> records = DecodeNodes(values);
  for (size_t i = 0; i < records.size(); ++i) {
    absl::Status status = records[i].status();
    if (status.ok()) {
      if (Clamp(*records[i], now, fleet.policy)) clamped.insert(records[i]->key);
      status = fleet.ledger.Upsert(*std::move(records[i])).status();
    }
    RETURN_IF_ERROR(base::Annotate(status, fmt::format("store key {}", keys[i])));
  }
  RETURN_IF_ERROR(
      ForEach(store, kQuarantineKeyPrefix, revisions, [&](std::string_view value) -> absl::Status {
        ASSIGN_OR_RETURN(auto entry, DecodeQuarantine(value));
        Clamp(entry.second, now, fleet.policy);
        fleet.ledger.SetQuarantine(entry.first, std::move(entry.second));
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(
      ForEach(store, kReservationKeyPrefix, revisions, [&](std::string_view value) -> absl::Status {
        ASSIGN_OR_RETURN(Reservation reservation, DecodeReservation(value));
        Clamp(reservation, now);
        fleet.reservations.Add(std::move(reservation), {});
        return absl::OkStatus();
      }));
  return ForEach(store, kBreakerKey, revisions, [&](std::string_view value) -> absl::Status {
    ASSIGN_OR_RETURN(const BreakerState state, DecodeBreaker(value));
    fleet.breaker = MassReleaseBreaker(fleet.policy.breaker, state);
    return absl::OkStatus();
  });
}

absl::StatusOr<HistoryKeyParts> NewestChunk(Store& store) {
  HistoryKeyParts newest;
  RETURN_IF_ERROR(
      store.List({.range = KeyRange::WithPrefix(kHistoryPrefix), .limit = 1, .descending = true},
                 [&](std::string_view key, const StoredRecord&) {
                   newest = ParseHistoryKey(key).value_or(HistoryKeyParts());
                 }));
  return newest;
}

}  // namespace

absl::StatusOr<LoadedState> LoadState(Store& store, const ServerSettings& settings,
                                      absl::Time now) {
  RETURN_IF_ERROR(CheckNotMoved(store));
  Revisions revisions;
  ASSIGN_OR_RETURN(ObjectSet objects, LoadObjects(store, revisions));
  PolicyWorld world;
  for (const PoolSpec& pool : settings.pools) world.configured.push_back(ConfiguredPool(pool));
  RETURN_IF_ERROR(CheckAgainst(objects, world));
  Fleet fleet(PoolsOf(settings, objects), settings.fleet);
  std::set<NodeKey> changed;
  RETURN_IF_ERROR(LoadFleet(store, revisions, now, fleet, changed));
  changed.merge(FinishLoading(fleet, now));
  RecoveryState recovery{.store_id = settings.new_store_id};
  RETURN_IF_ERROR(ForEach(store, kStoreKey, revisions, [&](std::string_view value) -> absl::Status {
    ASSIGN_OR_RETURN(recovery, DecodeStore(value));
    return absl::OkStatus();
  }));
  if (recovery.recovered != absl::InfinitePast()) {
    fleet.was_behind = true;
    const absl::Time began = std::min(recovery.recovered, now);
    if (now - began < settings.fleet.cooldown) fleet.ledger.RestFree(began);
  }
  BundleHistory bundles(objects);
  ASSIGN_OR_RETURN(const HistoryKeyParts newest_chunk, NewestChunk(store));
  return LoadedState{.state = {.fleet = std::move(fleet),
                               .objects = std::move(objects),
                               .bundles = std::move(bundles),
                               .configured = std::move(world.configured),
                               .recovery = Recovery(std::move(recovery))},
                     .revisions = std::move(revisions),
                     .newest_chunk = newest_chunk,
                     .changed = std::move(changed)};
}

std::set<NodeKey> NodesToAsk(const Fleet& fleet) {
  std::set<NodeKey> nodes;
  for (const auto& [key, record] : fleet.ledger.nodes()) {
    const AddressCounts counts = CountAddresses(record);
    const bool unseen = fleet.policy.cloud_chooses && !record.nic_read;
    if (!HasItsInstance(fleet.ledger, record)) continue;
    if (unseen || counts.attaching + counts.detaching > 0) nodes.insert(key);
  }
  return nodes;
}

Effects EndRecovery(ServerState& state, absl::Time now) {
  const Recovery& recovery = state.recovery;
  const bool recovered = recovery.phase() == Recovery::Phase::kRecovering;
  Effects effects = EndHold(state.fleet, recovery.spoken(), now);
  std::set<NodeKey> silent = recovery.forgotten();
  if (recovered) {
    state.fleet.was_behind = true;
    silent.clear();
    for (const auto& [key, record] : state.fleet.ledger.nodes()) {
      if (!recovery.spoken().contains(key)) silent.insert(key);
    }
  }
  Doubt(state.fleet, silent, effects, now);
  // Nodes have said what they have; but what one had until it booted, a store that is older than
  // that takes for free.
  if (recovered || !silent.empty()) state.fleet.ledger.RestFree(now);
  // What is on NICs was not in doubt, and each look is a call.
  if (!recovered) effects.attach = NodesToAsk(state.fleet);
  state.recovery.Open(now);
  effects.recovery = true;
  return effects;
}

absl::StatusOr<Effects> ConfirmRecovery(ServerState& state, uint64_t silent, absl::Time now) {
  Recovery& recovery = state.recovery;
  Effects effects;
  if (recovery.open() && recovery.refused().empty()) {
    return absl::FailedPreconditionError("there is nothing to confirm: no recovery is under way");
  }
  const uint64_t are_silent =
      recovery.open() ? 0 : recovery.Silent(NodesWithAddresses(state.fleet.ledger));
  if (are_silent != silent) {
    return absl::FailedPreconditionError(
        fmt::format("{} nodes have not spoken, not {}: look again with `spokectl recovery show`, "
                    "and confirm that number",
                    are_silent, silent));
  }
  if (!recovery.refused().empty()) recovery.AcceptUnverified(now);
  effects.recovery = true;
  if (!recovery.open()) effects.Merge(EndRecovery(state, now));
  return effects;
}

NicRequest NicOf(const NodeRecord& record, bool pods_wait) {
  NicRequest nic{.node = record.key, .nic_mac = record.nic_mac};
  for (const auto& [base, configuration] : record.configurations) {
    auto& entries =
        configuration.state == AddressState::kDetaching ? nic.removing : nic.configurations;
    entries.push_back({configuration.name, configuration.range});
  }
  nic.instance = record.instance;
  for (const auto& [name, wanted] : record.wanted) {
    if (!wanted.given) {
      nic.wanted.push_back({name, wanted.family, wanted.prefix_length});
    } else {
      (wanted.given_back ? nic.removing : nic.configurations).push_back({name, *wanted.given});
    }
  }
  const AddressCounts counts = CountAddresses(record);
  const bool looking = nic.wanted.empty() && nic.removing.empty();
  if (pods_wait || (counts.available == 0 && (looking || !nic.wanted.empty()))) {
    nic.lane = CloudLane::kBlocking;  // Pods wait for it, or the next one will have to.
  } else if (nic.wanted.empty() && !looking) {
    nic.lane = CloudLane::kRelease;
  }
  return nic;
}

std::vector<NicAddresses> AllNics(const Fleet& fleet) {
  std::vector<NicAddresses> nics;
  for (const auto& [key, record] : fleet.ledger.nodes()) {
    if (record.mode != NodeMode::kRetired) nics.push_back(NicOf(record).Configured());
  }
  return nics;
}

std::vector<PoolSpec> PoolsOf(const ServerSettings& settings, const ObjectSet& objects) {
  std::vector<PoolSpec> pools = settings.pools;
  std::vector<PoolSpec> applied = PoolsOf(objects);
  pools.insert(pools.end(), std::make_move_iterator(applied.begin()),
               std::make_move_iterator(applied.end()));
  return pools;
}

std::map<ObjectKey, ObjectUse> PoolUses(const Fleet& fleet) {
  std::map<ObjectKey, ObjectUse> uses;
  for (const PoolEntry& entry : fleet.ledger.pools()) {
    const AddressPool::InUse used = entry.pool.Used();
    if (used.addresses == 0) continue;
    uses[{"Pool", entry.pool.spec().name}] = {
        .held = used.addresses, .lowest = used.lowest, .highest = used.highest};
  }
  return uses;
}

}  // namespace spoke::ipam
