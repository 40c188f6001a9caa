#include "tests/search/fleet_of.h"

#include <memory>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "tests/search/names.h"

namespace spoke::search {
namespace {

const std::vector<ipam::PoolSpec>& Pools() {
  static const std::vector<ipam::PoolSpec> pools = {
      {.name = "pool",
       .cidr = ip::Prefix::Parse("10.0.0.0/30").value(),
       .reserve_first = 1,
       .reserve_last = 0}};
  return pools;
}

// One address more than is used, of two at the most; and no patience, since time is another thing
// here.
const ipam::FleetPolicy& Policy() {
  static const ipam::FleetPolicy of_all = [] {
    ipam::FleetPolicy policy{.target = {.min = 1, .batch = 1, .spare = 1, .max = 2},
                             .cooldown = kCooldown,
                             .release = {.idle_time = absl::ZeroDuration(),
                                         .jitter_spread = absl::ZeroDuration(),
                                         .hysteresis = 0,
                                         .denial_backoff = kCooldown},
                             .breaker = {.share = 1}};
    policy.lost_after = absl::InfiniteDuration();
    return policy;
  }();
  return of_all;
}

ipam::Slot SlotOf(const Held& held) {
  ipam::Slot slot{.use = static_cast<node_api::Use>(held.use),
                  .generation = held.generation,
                  .since = held.old ? kLongAgo : kNow};
  if (held.pod == 0) return slot;
  slot.lessee =
      std::make_shared<const node_api::Lessee>(ToAssignment(0, {held.pod, held.generation}).lessee);
  return slot;
}

ipam::NodeRecord RecordOf(const Record& from, const ipam::NodeKey& key, size_t node, size_t vm) {
  ipam::NodeRecord record{.key = key, .boot_id = BootOf(node, vm, from.boot)};
  record.mode = static_cast<ipam::NodeMode>(from.mode);
  for (size_t i = 0; i < kAddresses; ++i) {
    const Held& held = from.held[i];
    if (held.state == 0) continue;
    ipam::Configuration& configuration =
        record.configurations.try_emplace(AddressOf(i), PrefixOf(i), "pool", "entry", kNow)
            .first->second;
    configuration.state = static_cast<ipam::AddressState>(held.state);
    configuration.denied_until = held.denied ? kNow + kCooldown : absl::InfinitePast();
    configuration.slots.front() = SlotOf(held);
  }
  return record;
}

Record ReadRecord(const ipam::NodeRecord& from) {
  Record record{.present = true, .mode = static_cast<uint8_t>(from.mode)};
  if (!from.boot_id.empty()) record.boot = static_cast<uint8_t>(from.boot_id.back() - '0');
  for (const auto& [address, configuration] : from.configurations) {
    const ipam::Slot& slot = configuration.slots.front();
    const bool cools = slot.use == node_api::Use::kCooldown;
    record.held[NumberOf(address)] = {
        .state = static_cast<uint8_t>(configuration.state),
        .denied = configuration.denied_until > kNow,
        .use = static_cast<uint8_t>(slot.use),
        .old = cools && slot.since <= kLongAgo,
        .generation = GenerationOf(slot.generation),
        .pod = slot.lessee == nullptr ? uint8_t{0} : PodOf(slot.lessee->container_id)};
  }
  for (const auto& [range, at] : from.released) {
    record.released[NumberOf(range.base())] = at <= kLongAgo ? Cooling::kOld : Cooling::kRecent;
  }
  return record;
}

template <typename Take>
void ForEachRecord(const Take& take) {
  for (size_t node = 0; node < kNodes; ++node) {
    for (size_t vm = 0; vm < kVms; ++vm) take(node, vm, KeyOf(node, vm));
  }
}

void AddReleased(const Record& from, Cooling which, absl::Time at, ipam::NodeRecord& record) {
  for (size_t i = 0; i < kAddresses; ++i) {
    if (from.released[i] == which) record.released[PrefixOf(i)] = at;
  }
}

}  // namespace

ipam::Fleet FleetOf(const World& world, Defect defect, Loading loading,
                    std::set<ipam::NodeKey>* changed) {
  ipam::Fleet fleet(Pools(), Policy());
  if (defect == Defect::kNoServerCooldown) {
    ipam::FleetPolicy none = Policy();
    none.cooldown = absl::ZeroDuration();
    fleet = ipam::Fleet(Pools(), none);
  }
  ForEachRecord([&](size_t node, size_t vm, const ipam::NodeKey& key) {
    const Record& from = world.nodes[node].stored[vm];
    if (!from.present) return;
    ipam::NodeRecord record = RecordOf(from, key, node, vm);
    AddReleased(from, Cooling::kRecent, kNow, record);
    if (loading == Loading::kBegins) AddReleased(from, Cooling::kOld, kLongAgo, record);
    CHECK(fleet.ledger.Upsert(std::move(record)).ok(),
          "a store that a leader has written is whole");
  });
  std::set<ipam::NodeKey> anew = FinishLoading(fleet, kNow);
  if (changed != nullptr) *changed = std::move(anew);
  if (loading == Loading::kBegins) return fleet;
  fleet.hold.active = world.phase != Phase::kOpen;
  for (const ip::Prefix& prefix : PrefixesOf(world.doubtful)) fleet.hold.doubtful.insert(prefix);
  ForEachRecord([&](size_t node, size_t vm, const ipam::NodeKey& key) {
    ipam::NodeRecord* const record = fleet.ledger.Find(key);
    // What has cooled is in records, but in no cooldown.
    if (record != nullptr) {
      AddReleased(world.nodes[node].stored[vm], Cooling::kOld, kLongAgo, *record);
    }
    const Memory& memory = world.nodes[node].memory[vm];
    if (memory.missing) fleet.missing.insert(key);
    if (memory.greet_anew) fleet.hold.greet_anew.insert(key);
    for (const ip::Prefix& prefix : PrefixesOf(memory.claims)) {
      fleet.hold.claims.emplace(prefix, key);
    }
  });
  return fleet;
}

ipam::Recovery RecoveryOf(const World& world) {
  ipam::RecoveryState state{.store_id = "store", .epoch = world.store.epoch};
  if (world.cause) {
    state.cause =
        ipam::RecoveryState::Cause{.reason = "restored", .since = kNow, .nodes = world.cause_nodes};
  }
  ipam::Recovery recovery(std::move(state));
  if (world.phase == Phase::kProving) recovery.Begin({}, kNow);
  if (world.highest != 0) recovery.OnMark({"store", world.highest, 0}, kNow);
  ForEachRecord([&](size_t node, size_t vm, const ipam::NodeKey& key) {
    if (world.nodes[node].memory[vm].spoken) recovery.OnSpoken(key);
  });
  return recovery;
}

ipam::Session SessionOf(const Session& session) {
  return {.id = 1,
          .desired_version = 1,
          .told = PrefixesOf(session.told),
          .full_due = session.full_due,
          .last_request = 1,
          .reclaim_pending = session.reclaim_pending ? uint64_t{1} : 0,
          .reclaim_next = PrefixesOf(session.reclaim_next)};
}

bool WriteRecords(const ipam::Fleet& fleet, const std::set<ipam::NodeKey>& only, World& world) {
  bool others = false;
  ForEachRecord([&](size_t node, size_t vm, const ipam::NodeKey& key) {
    const ipam::NodeRecord* const found = fleet.ledger.Find(key);
    const Record record = found == nullptr ? Record() : ReadRecord(*found);
    Record& stored = world.nodes[node].stored[vm];
    if (only.contains(key)) {
      stored = record;
    } else if (stored != record) {
      others = true;
    }
  });
  return others;
}

void Remember(const ipam::Fleet& fleet, const ipam::Recovery& recovery, World& world) {
  switch (recovery.phase()) {
    case ipam::Recovery::Phase::kOpen:
      world.phase = Phase::kOpen;
      break;
    case ipam::Recovery::Phase::kProving:
      world.phase = Phase::kProving;
      break;
    case ipam::Recovery::Phase::kRecovering:
      world.phase = Phase::kRecovering;
      break;
  }
  const auto& cause = recovery.state().cause;
  world.cause = cause.has_value();
  world.cause_nodes = cause ? static_cast<uint8_t>(cause->nodes) : uint8_t{0};
  world.doubtful = 0;
  for (const ip::Prefix& prefix : fleet.hold.doubtful) {
    world.doubtful |= BitOf(NumberOf(prefix.base()));
  }
  const bool open = recovery.open();
  ForEachRecord([&](size_t node, size_t vm, const ipam::NodeKey& key) {
    Memory& memory = world.nodes[node].memory[vm];
    // Who has spoken matters only until it opens.
    memory = {.missing = fleet.missing.contains(key),
              .spoken = !open && recovery.spoken().contains(key),
              .greet_anew = fleet.hold.greet_anew.contains(key)};
  });
  for (const auto& [prefix, key] : fleet.hold.claims) {
    const auto node = static_cast<size_t>(key.name.front() - 'a');
    const auto vm = static_cast<size_t>(key.vm_id.front() - '0');
    world.nodes[node].memory[vm].claims |= BitOf(NumberOf(prefix.base()));
  }
}

}  // namespace spoke::search
